/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the user of a session may not do is refused with NOPERM and noted in ACL
 * LOG. Inside a section of the gate, on the session's loop.
 */
#pragma once

#include "access/user.h"
#include "engine/request.h"

/* Where the checks of a command have got to that take more than a slice: of its
 * rights, and of the slots of its keys (route.h). All zero: at the beginning.
 * It is session->rights until the command ends. */
struct rights_walk {
    uint64_t changed; /* of the user, when it began */
    struct user_progress progress;
    bool done; /* all of it is permitted */
    struct {
        size_t next;   /* position */
        uint32_t slot; /* of the keys before it, +1; 0: there is none */
        bool done;
    } route;
};

/* Returns whether commands of the session have to be checked at all. */
static inline bool
rights_are_limited(const struct session *session)
{
    return session->user != NULL && !session->user->unrestricted;
}

/* Checks the command of a request whose arity fits, by the rules of its
 * session's user. ERR_NOPERM: it is refused, counted and noted. ERR_AGAIN: it
 * has so many names, or takes so much work, that the check goes on when the
 * request is resumed, or begins anew if the rules have changed. After it, a
 * request that pauses is not checked again under the same rules. */
MUST_CHECK enum err rights_check(const struct request *req);

/* Forgets what a check has kept, when the command ends. */
void rights_forget(struct session *session);

/* Names the present rules of the session's user, for req->rights. */
uint64_t rights_now(const struct session *session);

/* Whether the session's user may execute another command, which takes little
 * work to check. */
bool rights_allow_short(const struct request *req,
                        const struct command *command, const struct slice *argv,
                        size_t argc);

/* Says what a user may not do, for DRYRUN. UNDECIDED: the handler returns
 * ERR_AGAIN, and then calls it again. */
enum denial rights_of(const struct user *user, struct request *req,
                      const struct command *command, const struct slice *argv,
                      size_t argc, size_t *ret_at);

/* Adds an entry to ACL LOG. */
void rights_note(const struct request *req, const char *reason,
                 struct slice object, struct slice user);
