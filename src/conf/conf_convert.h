/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns a redis.conf or valkey.conf into a configuration file of this server.
 * Blocks on the disk.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "conf/conf_error.h"

/* Reads the file, and each included file at its `include` line. Appends our
 * configuration file to *ret_text: the options that differ from our defaults,
 * and, as comments, notes about options that do nothing. The `user` lines go to
 * *ret_users, in the form of an aclfile; if there are any, *ret_text has the
 * option `aclfile` with this name. *ret_error has the line of the first
 * mistake. */
MUST_CHECK bool conf_convert(const char *path, const char *aclfile,
                             struct buf *ret_text, struct buf *ret_users,
                             struct conf_error *ret_error);
