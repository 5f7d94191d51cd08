/* SPDX-License-Identifier: BSD-3-Clause
 *
 * export: writes the filters of a running server, or of its files, into a file
 * of commands, which `redis-cli --pipe` feeds to RedisBloom, valkey-bloom or
 * another Bloomery.
 */
#pragma once

#include "load/load.h"

void load_export(struct load *load, const char *path);
