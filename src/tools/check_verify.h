/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verify and info: print cards about what a path is and whether it is intact.
 * info reads only the header of a snapshot.
 */
#pragma once

#include "tools/check.h"

void check_verify(struct check *check, const char *path, bool whole);
