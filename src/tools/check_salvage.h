/* SPDX-License-Identifier: BSD-3-Clause
 *
 * salvage: a new snapshot, increment, journal or data directory of everything
 * in an old one that is intact. A server starts on it. The exit status is 0
 * if nothing was lost, 1 if something was.
 */
#pragma once

#include "tools/check.h"

void check_salvage(struct check *check, const char *path, const char *out);
