/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the aclfile at the start, before there are clients.
 */
#pragma once

#include <stdbool.h>

struct server;

/* Returns false, with an error in the log, if the file cannot be read or has
 * an error: a server without its users could let in too many. */
bool own_users_load(struct server *server);
