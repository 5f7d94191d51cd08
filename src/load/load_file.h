/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdb and aof: bring the filters of files of Redis or Valkey into a server.
 */
#pragma once

#include "load/load.h"

void load_rdb(struct load *load, const char *path);

/* Loads an AOF. The path is an AOF, with or without an RDB in front, "-" for
 * standard input, a directory of Redis 7 with a manifest, or that manifest. */
void load_aof(struct load *load, const char *path);
