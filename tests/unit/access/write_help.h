/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All users as an aclfile, for tests and fuzz targets.
 */
#pragma once

#include "access/users_file.h"

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
