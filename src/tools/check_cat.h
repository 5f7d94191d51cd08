/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cat: what a snapshot or a journal holds, as commands on standard output: a
 * filter as RESTORE, an increment as its effects. Of a journal that is damaged
 * only what stands before the damage, which is what its end was built on.
 */
#pragma once

#include "tools/check.h"

void check_cat(struct check *check, const char *path);
