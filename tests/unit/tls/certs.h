/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Certificates and keys for tests of TLS, made when they are first wanted and
 * removed at the end of the program: small EC keys, so that handshakes are
 * fast. `server` is for localhost and 127.0.0.1.
 */
#pragma once

#include "tls/tls_context.h"

#include <stddef.h>

struct certs {
    char dir[64];
    char ca[96], other_ca[96];              /* authorities */
    char server[96], client[96], stale[96]; /* signed by ca; stale: expired */
    char stranger[96];                      /* signed by other_ca */
    /* Each key is in the same file as its certificate. */
    char locked[96],
        locked_key[96]; /* server's, the key with LOCKED_PASSWORD */
};

#define LOCKED_PASSWORD "a key's password"

const struct certs *certs_get(void);

/* Settings of a server that asks each client for a certificate of ca. */
struct tls_settings certs_settings(void);

/* Loads settings that must be right. */
void certs_load(struct tls_contexts *contexts,
                const struct tls_settings *settings);
