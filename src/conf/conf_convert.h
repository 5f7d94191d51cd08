/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns a redis.conf or valkey.conf into a configuration file of this server.
 * Blocks on the disk.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "conf/conf_error.h"

/* Reads the file, and those that it includes, in the places of their lines.
 * Appends our file: what differs from our defaults, and as comments the notes
 * about what does nothing. Its `user` lines go to *ret_users, in the form of an
 * aclfile, which *ret_text names as `aclfile` if there are any. *ret_error has
 * the line of the first mistake. */
MUST_CHECK bool conf_convert(const char *path, const char *aclfile,
                             struct buf *ret_text, struct buf *ret_users,
                             struct conf_error *ret_error);
