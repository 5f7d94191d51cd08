/* SPDX-License-Identifier: BSD-3-Clause
 *
 * salvage: makes a new snapshot, increment, journal or data directory from the
 * intact parts of an old one. A server can start on it. The exit status is 0 if
 * nothing was lost, and 1 if something was.
 */
#pragma once

#include "check/check.h"

void check_salvage(struct check *check, const char *path, const char *out);
