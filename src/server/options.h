/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts options in force: at the start, by CONFIG SET, by SIGHUP.
 */
#pragma once

#include "conf/conf_args.h"
#include "tls/tls_context.h"

struct server;

/* Copies the options that other threads read without the gate. Call it under
 * the raised gate, or before there are threads. */
void options_apply(struct server *server);

/* Returns whether CONFIG SET may change these options; reads the certificates
 * that they name. If not, writes the reason. Under the raised gate; it is
 * called as a hook (struct service). */
bool options_allow(void *ctx, const struct conf *conf,
                   const struct conf_changes *changes,
                   char ret_reason[TLS_REASON_MAX]);

/* Applies what CONFIG SET has changed. Any loop, under the raised gate; it is
 * called as a hook (struct service). */
void options_changed(void *ctx, const struct conf_changes *changes);

/* Applies what the ACL commands have changed. Any loop, under the raised gate;
 * it is called as a hook (struct service). */
void options_users_changed(void *ctx);

/* Reads the configuration again. Loop 0. */
void options_reload(struct server *server);

/* Logs the notes about the configuration, and which options of rewritten.conf
 * override it. */
void options_log_notes(const struct server *server,
                       const struct conf_args *args);
