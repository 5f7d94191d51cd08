/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes and frees keyspaces. The server makes one at its start; a replica makes
 * others for a while, with the data of a primary, when memory may be short.
 */
#pragma once

#include "keyspace/expire.h"
#include "keyspace/keyspace.h"

struct keyspace_options {
    unsigned threads;   /* number of loops that will use it */
    unsigned databases; /* 1..65535 */
    struct keyspace_expiry expiry;
};

/* Starts the thread that frees large filters. keyspace_new is for the server's
 * start and aborts without memory; keyspace_try_new returns NULL. */
struct keyspace *keyspace_new(const struct keyspace_options *options);
struct keyspace *keyspace_try_new(const struct keyspace_options *options);

/* Frees a keyspace that no other thread uses. Waits until all filters are
 * freed, about a second for some million of them: a loop may call it only when
 * the server ends. */
void keyspace_free(struct keyspace *ks);
