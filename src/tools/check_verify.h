/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verify and info: cards about what a path is and whether it is intact. info
 * reads of a snapshot the header alone.
 */
#pragma once

#include "tools/check.h"

void check_verify(struct check *check, const char *path, bool whole);
