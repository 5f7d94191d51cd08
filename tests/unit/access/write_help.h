/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One user changed at once, and all users as an aclfile, for tests and fuzz
 * targets.
 */
#pragma once

#include "access/users_file.h"

/* Applies rules to a user, which is made if it is missing. False: nothing has
 * changed; without memory the reason is SELECTOR_NO_MEMORY. */
MUST_CHECK static inline bool
users_set(struct users *users, struct slice name, const struct slice *words,
          size_t count, struct user_refusal *ret_refusal)
{
    struct users_edit edit;
    bool has_memory = users_edit_begin(users, name, &edit);
    bool fits =
        has_memory && user_rules_apply(&edit.rules, words, count, ret_refusal);
    bool done = fits && users_edit_end(users, name, &edit) == USERS_EDITED;

    if (!has_memory || (fits && !done)) {
        *ret_refusal = (struct user_refusal){ .reason = SELECTOR_NO_MEMORY };
    }
    if (has_memory) {
        user_rules_fini(&edit.rules);
    }
    return done;
}

/* Writes all users, as ACL SAVE does. */
static inline bool
write_all(const struct users *users, struct buf *text, struct buf *errors)
{
    struct users_copy copy = { 0 };
    enum users_copied copied;
    bool done;

    do {
        copied = users_copy_next(users, &copy);
    } while (copied == USERS_COPY_ONE);
    done =
        copied == USERS_COPY_ALL && users_file_write(&copy.draft, text, errors);
    users_copy_fini(&copy);
    return done;
}
