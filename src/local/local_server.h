/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threads of the library. One thread looks after up to LOCAL_SERVER_COPIES
 * copies from the same server; further copies get another thread. A thread ends
 * with the last of its copies. All signals are blocked in it. A mutex guards
 * the registry of servers: any thread may call these functions.
 *
 * A forked child has none of the threads: its copies are closed, and it may
 * open its own. If a server is reached by TLS, the threads are stopped when the
 * program exits, before OpenSSL ends.
 */
#pragma once

#include "local/local_member.h"
#include "local/local_url.h"

enum { LOCAL_SERVER_COPIES = 63, LOCAL_FILE_BYTES = 4096 };

/* The PEM files of TLS, or "". */
struct local_files {
    const char *ca, *cert, *key;
};

/* Gives a copy to the thread of its server, with a reference. On failure
 * *ret_reason, of TLS_REASON_MAX bytes, may say more. */
enum bloomery_local_code local_server_join(const struct local_url *url,
                                           const struct local_files *files,
                                           struct bloomery_local *member,
                                           char *ret_reason);

/* Makes the thread end a closed copy. */
void local_server_wake(struct bloomery_local *member);
