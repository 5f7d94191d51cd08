/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Redis's glob patterns: * ? [a-z] [^a-z] and \ to take the next byte as it
 * is. Iterative: at most len(pattern) x len(text) steps, no recursion.
 */
#pragma once

#include "base/slice.h"

enum { GLOB_PATTERN_MAX = 1024 };

/* False for a pattern with special bytes that is longer than that: matching
 * costs up to its length times that of each text. */
bool glob_is_fair(struct slice pattern);

bool glob_match(struct slice pattern, struct slice text, bool ignore_case);

/* True if the pattern has no special byte, so that it can only equal itself. */
bool glob_is_plain(struct slice pattern);
