/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of an aclfile: one line "user NAME RULE ..." for each user, as ACL
 * LIST shows it; empty lines and comments (#) are skipped. Pure, except that
 * users_file_read takes the present requirepass from the table.
 */
#pragma once

#include "access/users.h"

/* Fills a draft with the users of a text, and the default user if it is
 * missing. False: the draft is empty, and *ret_error says what is wrong in
 * which lines of the file `path`, in Redis's words. */
MUST_CHECK bool users_file_read(const struct users *users, const char *path,
                                struct slice text,
                                struct users_draft *ret_draft,
                                struct buf *ret_error);

/* Does the same on any thread, without the default user, which the caller adds.
 */
MUST_CHECK bool users_file_parse(const char *path, struct slice text,
                                 struct users_draft *ret_draft,
                                 struct buf *ret_error);

/* Appends the text of the users of a draft, which it sorts, and reads it back.
 * False: a later start could not read the same users from it, and *ret_error
 * says why. Any thread. */
MUST_CHECK bool users_file_write(struct users_draft *draft, struct buf *text,
                                 struct buf *ret_error);
