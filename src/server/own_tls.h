/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options tls-* in force: at the start, by CONFIG SET, by SIGHUP.
 */
#pragma once

#include "tls/tls_context.h"

#include <stdbool.h>

struct conf;
struct conf_changes;
struct server;

/* Reads the files that `conf` names and puts its TLS options in force, or says
 * why it cannot and changes nothing. Does nothing where none of tls-port,
 * tls-replication and sidecar-tls is set. */
bool own_tls_load(struct server *server, const struct conf *conf,
                  char ret_reason[TLS_REASON_MAX]);

/* Does the same for CONFIG SET, if it changes a TLS option. Without TLS it only
 * checks the options. Under the raised gate; called as a hook (struct service).
 */
bool own_tls_change(void *ctx, const struct conf *conf,
                    const struct conf_changes *changes,
                    char ret_reason[TLS_REASON_MAX]);
