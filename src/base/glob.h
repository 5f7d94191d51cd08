/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Redis's glob patterns: * ? [a-z] [^a-z] and \ to take the next byte as it
 * is. Iterative: at most len(pattern) x len(text) steps, no recursion.
 */
#pragma once

#include "base/slice.h"

bool glob_match(struct slice pattern, struct slice text, bool ignore_case);

/* True if the pattern has no special byte, so that it can only equal itself. */
bool glob_is_plain(struct slice pattern);
