/* SPDX-License-Identifier: BSD-3-Clause
 *
 * server --follow: becomes a replica of a Redis or Valkey, restores the filters
 * of its RDB, and applies its stream of commands until it is told to stop.
 */
#pragma once

#include "load/load.h"

void load_follow(struct load *load);
