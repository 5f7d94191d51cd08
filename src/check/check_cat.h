/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cat: prints a snapshot or a journal as commands on standard output: filters
 * as RESTORE, increments as their effects. A damaged journal is printed up to
 * the damage.
 */
#pragma once

#include "check/check.h"

void check_cat(struct check *check, const char *path);
