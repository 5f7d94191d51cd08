/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that this program sends to other servers. Only login_words knows
 * how a client logs in. Pure functions, any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

/* Appends a command of these words in RESP. */
void compose_command(struct buf *out, const struct slice *words, size_t count);

/* Writes the words of AUTH, or with protocol 3 those of HELLO 3 with AUTH in
 * it, and returns their number. AUTH leaves out an empty user, and HELLO says
 * "default" for it. Without a password (data is NULL) there is no AUTH; if 0 is
 * returned, nothing has to be sent. The words are borrowed. */
enum { LOGIN_WORDS_MAX = 5, LOGIN_ANY_PROTOCOL = 0 };
size_t login_words(unsigned protocol, struct slice user, struct slice password,
                   struct slice ret_words[LOGIN_WORDS_MAX]);

/* Appends AUTH. Returns false, and appends nothing, if the password is empty.
 */
bool compose_login(struct buf *out, struct slice user, struct slice password);
