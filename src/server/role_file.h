/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The role as it survives a restart: a small file in dir, written anew at each
 * change, read after the configuration and stronger than it, since a Sentinel's
 * word is newer and /etc may be read-only. role_file.c draws it. A disk's work,
 * so a thread writes, and tries again as long as it fails; only the newest wish
 * counts.
 */
#pragma once

#include "engine/role.h"
#include "persist/history.h"

#include <stdbool.h>
#include <stdint.h>

#define ROLE_FILE_NAME    "replication.state"
#define ROLE_FILE_DAMAGED ROLE_FILE_NAME ".damaged"

enum { ROLE_BEFORE_MAX = 3, ROLE_FOLLOWERS_MAX = 8 };

struct role_state {
    bool known; /* there was a file */
    bool replica;
    char host[ROLE_HOST_MAX]; /* of the primary; role_host_is_valid */
    uint32_t port;            /* 1..65535 */
    uint64_t key;             /* 0: none */
    bool replicas;
    char history[HISTORY_ID_CHARS + 1]; /* of the data; "": none */
    /* Of a primary: the histories before it, newest first, that a replica which
     * has not come back since may still be in; "": no more. */
    char before[ROLE_BEFORE_MAX][HISTORY_ID_CHARS + 1];
    /* Of a primary: who followed it last (grace.c says what the numbers are);
     * 0: no more. And whether there were more than that. */
    uint64_t followers[ROLE_FOLLOWERS_MAX];
    bool more_followers;
};

/* Whether both would be written alike. */
bool role_state_same(const struct role_state *one,
                     const struct role_state *other);

/* Before the loops. dir_fd: of dir. False: it is there and cannot be read, or
 * is of a newer version (reason); *ret_state is then as of no file. True with a
 * reason that is not empty: it was damaged, and set aside under
 * ROLE_FILE_DAMAGED; nothing is known. */
bool role_file_read(int dir_fd, struct role_state *ret_state, char *ret_reason,
                    unsigned reason_size);

struct role_file;

/* written: called by the thread after each attempt; it may ask for outcomes. */
struct role_file *role_file_new(const char *dir, void (*written)(void *ctx),
                                void *ctx);

/* Tries what was asked for and is not on the disk yet once more. NULL is
 * fine. */
void role_file_free(struct role_file *file);

/* Asks for it; the newest wins. Any thread, waits for no disk. Returns a
 * ticket. */
uint64_t role_file_write(struct role_file *file,
                         const struct role_state *state);

/* 0: not yet; 1: it, or what was asked for after it, is on the disk; -1: it
 * failed (logged, and tried again). Any thread. */
int role_file_outcome(const struct role_file *file, uint64_t ticket);
