/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backup: a second directory with one state of a data directory or journal,
 * which a live server may be writing to: everything that was acknowledged
 * before is in it.
 */
#pragma once

#include "tools/check.h"

void check_backup(struct check *check, const char *path, const char *out);
