/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks what the user of a session may do. Anything else is refused with
 * NOPERM and noted in ACL LOG. Inside a section of the gate, on the session's
 * loop.
 */
#pragma once

#include "access/user.h"
#include "engine/request.h"

/* How far the checks of a long command have come, which take several turns of
 * the loop: the check of its rights, and of the slots of its keys (route.h).
 * All zero at the beginning. It is session->rights until the command ends; ACL
 * DRYRUN keeps one with request_pause instead. */
struct rights_walk {
    uint64_t changed; /* changes of the user when the check began */
    struct user_progress progress;
    bool done; /* the whole command is permitted */
    struct {
        size_t next;   /* the next position in argv */
        uint32_t slot; /* slot of the keys before it, +1; 0: none so far */
        bool done;
    } route;
};

/* Returns whether the rules of the session's user restrict anything. */
static inline bool
rights_are_limited(const struct session *session)
{
    return session->user != NULL && !session->user->unrestricted;
}

/* Checks the command of a request whose arity fits, by the rules of its
 * session's user. ERR_NOPERM: it is refused, counted and noted. ERR_AGAIN: it
 * has so many names, or takes so much work, that the check goes on when the
 * request is resumed, or begins anew if the rules have changed. A request that
 * returns ERR_AGAIN later is not checked again under the same rules. */
MUST_CHECK enum err rights_check(const struct request *req);

/* Frees the state of a check, when the command ends. */
void rights_forget(struct session *session);

/* Returns a number for the present rules of the session's user, for
 * req->rights. */
uint64_t rights_now(const struct session *session);

/* Returns whether the session's user may execute this command, if little work
 * decides that; else false. */
bool rights_allow_short(const struct request *req,
                        const struct command *command, const struct slice *argv,
                        size_t argc);

/* Returns what a user may not do, for ACL DRYRUN. UNDECIDED: the handler must
 * return ERR_AGAIN, and call this again when it resumes. */
enum denial rights_of(const struct user *user, struct request *req,
                      const struct command *command, const struct slice *argv,
                      size_t argc, size_t *ret_at);

/* Adds an entry to ACL LOG. */
void rights_note(const struct request *req, const char *reason,
                 struct slice object, struct slice user);
