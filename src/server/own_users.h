/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the aclfile at the start, before there are clients.
 */
#pragma once

#include <stdbool.h>

struct buf;
struct conf;
struct users;

/* Takes the commands of disabled-commands from all users. Call it before there
 * are users. */
void own_users_forbid(const struct conf *conf);

/* Fills a new table with the users of conf: requirepass and aclfile. False,
 * with the reason appended: the file cannot be read or has an error, or
 * disabled-commands names an unknown command. The server must not start then:
 * without its users it could let in clients that it should refuse. */
bool own_users_read(struct users *users, const struct conf *conf,
                    struct buf *ret_reason);
