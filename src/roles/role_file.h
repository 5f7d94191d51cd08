/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The role file: a small file in dir that keeps the role for the next start. It
 * is rewritten at each change. It overrides the configuration, since a
 * Sentinel's command is newer and /etc may be read-only. role_file.c draws it.
 */
#pragma once

#include "engine/role.h"
#include "journal/history.h"
#include "persist/kept_file.h"

#include <stdbool.h>
#include <stdint.h>

#define ROLE_FILE_NAME    "replication.state"
#define ROLE_FILE_DAMAGED ROLE_FILE_NAME ".damaged"

enum { ROLE_BEFORE_MAX = 3, ROLE_FOLLOWERS_MAX = 8 };

struct role_state {
    bool known; /* there is a file */
    bool replica;
    char host[ROLE_HOST_MAX]; /* of the primary; valid by role_host_is_valid */
    uint32_t port;            /* 1..65535 */
    uint64_t key;             /* key of the seals; 0: none */
    bool replicas; /* the server had replicas: keep a backlog from the start on
                    */
    char history[HISTORY_ID_CHARS + 1]; /* history of the data; "": none */
    /* For a primary: the earlier histories in which replicas that are not back
     * yet may still be. Newest first; "" ends the list. */
    char before[ROLE_BEFORE_MAX][HISTORY_ID_CHARS + 1];
    /* For a primary: its last replicas, each as the hash of its address
     * (grace.c); 0 ends the list. more_followers: there were more than these.
     */
    uint64_t followers[ROLE_FOLLOWERS_MAX];
    bool more_followers;
};

/* Returns whether both states are stored as the same file. */
bool role_state_same(const struct role_state *one,
                     const struct role_state *other);

/* Reads the file before the loops run. dir_fd: the open dir. False, with a
 * reason: the file cannot be read, is of a newer version, or is damaged and
 * cannot be renamed. True with a reason: the file was damaged, and was renamed
 * to ROLE_FILE_DAMAGED. In both cases *ret_state is as without a file. */
bool role_file_read(int dir_fd, struct role_state *ret_state, char *ret_reason,
                    unsigned reason_size);

/* Begins to keep the file up to date (kept_file.h). The owner frees the result.
 */
struct kept_file *role_file_new(const char *dir, void (*written)(void *ctx),
                                void *ctx);

/* Passes a state, which must be a valid one, to the file's thread. Returns a
 * ticket for kept_file_outcome. Any thread, waits for no disk. */
uint64_t role_file_write(struct kept_file *file,
                         const struct role_state *state);
