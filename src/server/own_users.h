/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the aclfile at the start, before there are clients.
 */
#pragma once

#include <stdbool.h>

struct buf;
struct conf;
struct users;

/* Takes the commands of disabled-commands from all users. Before there are any.
 */
void own_users_forbid(const struct conf *conf);

/* Fills a new table with the users of conf: requirepass and aclfile. False: the
 * file cannot be read or has an error, or disabled-commands names a command
 * that nobody has, and the reason is appended. A server without its users could
 * let in too many. */
bool own_users_read(struct users *users, const struct conf *conf,
                    struct buf *ret_reason);
