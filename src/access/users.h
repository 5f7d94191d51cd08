/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of users. The thread that has raised the gate owns it: ACL SETUSER,
 * DELUSER and LOAD, CONFIG SET, a reload and the start change it. All commands
 * read it inside their section of the gate, without a lock.
 *
 * After each change `changes` is higher, and every loop closes those of its
 * connections that have lost their user or the right to a subscription
 * (revoke.h).
 */
#pragma once

#include "access/user.h"
#include "base/map.h"

struct users {
    struct map by_name;
    struct user *standard; /* "default", the user of a new connection */
    _Atomic uint64_t changes;
    unsigned char required[AUTH_DIGEST]; /* of the last requirepass that the
                                            default user got */
    bool is_required;                    /* requirepass is not empty */
};

struct users *users_new(void);
void users_free(struct users *users); /* sessions may still refer to users */

/* Finds a user by name; NULL: there is none. */
struct user *users_find(const struct users *users, struct slice name);

/* Returns whether a new connection must authenticate first. */
bool users_ask_password(const struct users *users);

/* Returns the user, or NULL if there is none, if it is off, or if the digest
 * belongs to none of its passwords; all of these take the same time. Counts
 * failures in METRIC_AUTH_FAILURES. */
struct user *users_login(const struct users *users, struct slice name,
                         const unsigned char digest[AUTH_DIGEST]);

/* The rules of a user while they are changed; the change takes effect at the
 * end. All zero: there is no change. */
struct users_edit {
    struct user_rules rules;
    uint64_t changed; /* the user's `changed`; 0: there is no such user */
    size_t at;        /* the next word */
};

/* Begins with the user's present rules. False without memory. */
MUST_CHECK bool users_edit_begin(const struct users *users, struct slice name,
                                 struct users_edit *edit);

/* Gives the rules to the user, which is made if it is missing. The caller then
 * frees the rules of the edit. */
enum users_edited { USERS_EDITED, USERS_CHANGED_MEANWHILE, USERS_NO_MEMORY };
MUST_CHECK enum users_edited
users_edit_end(struct users *users, struct slice name, struct users_edit *edit);

/* Deletes a user other than the default one. False: there is none. */
bool users_delete(struct users *users, struct slice name);

/* Gives the default user the password of requirepass, if that has changed since
 * the last call. */
void users_follow_password(struct users *users, struct slice requirepass);

/* Returns whether requirepass is set, but is no password of the default user,
 * since a file of users has changed that user. */
bool users_ignore_password(const struct users *users);

/* Returns all users in the order of their names; to be freed with mem_free.
 * NULL without memory. */
struct user **users_sorted(const struct users *users, size_t *ret_count);

/* ---- a file -------------------------------------------------------------- */

/* Users that are not in force yet. All zero: no users. */
struct users_draft {
    struct map by_name;
    struct user **list;
    size_t count, capacity;
};
void users_draft_free(struct users_draft *draft);

/* Adds a user that is off and may do nothing, and borrows it. NULL: there is
 * already a user of this name, or no memory (*ret_no_memory). */
struct user *users_draft_add(struct users_draft *draft, struct slice name,
                             bool *ret_no_memory);

/* If the default user is missing, adds it with the rules of the start and the
 * present requirepass. False without memory. */
MUST_CHECK bool users_draft_complete(struct users_draft *draft,
                                     const struct users *users);

/* A draft that is copied from the server's users, one at a time. All zero at
 * its beginning. */
struct users_copy {
    struct users_draft draft;
    struct user **users; /* borrowed, while `changes` is the same */
    size_t count;
    uint64_t changes;
};

/* Copies the next user. If a user was changed since the last call, begins anew.
 * At the end it has all users, as they were at one moment. */
enum users_copied { USERS_COPY_ONE, USERS_COPY_ALL, USERS_COPY_NO_MEMORY };
MUST_CHECK enum users_copied users_copy_next(const struct users *users,
                                             struct users_copy *copy);
void users_copy_fini(struct users_copy *copy);

/* Sorts the list by name. */
void users_draft_sort(struct users_draft *draft);

/* Replaces all users by the draft, which is empty then. Sessions keep their
 * user if the draft has one of the same name. Cannot fail. */
void users_take(struct users *users, struct users_draft *draft);
