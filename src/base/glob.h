/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Redis's glob patterns: * ? [a-z] [^a-z] and \ to take the next byte as it
 * is. What is between two stars is looked for from left to right, and its
 * leftmost place is as good as any. Where it is literal, that takes time linear
 * in the text; where it has ? or classes, up to its length times that of the
 * text, and so all work is counted and bounded.
 */
#pragma once

#include "base/slice.h"

enum { GLOB_PATTERN_MAX = 1024 };

/* How much work one text may take. A unit is a byte of a pattern that was
 * compared, or two bytes of text that were searched: some nanoseconds. */
enum { GLOB_WORK = 1 << 20 };

/* False for a pattern with special bytes that is longer than that. */
bool glob_is_fair(struct slice pattern);

/* GLOB_OVER: it took all of *work, and nothing is known. Else *work is what is
 * left. */
enum glob_verdict { GLOB_NO, GLOB_YES, GLOB_OVER };
enum glob_verdict glob_match(struct slice pattern, struct slice text,
                             bool ignore_case, size_t *work);

/* What no text of so many bytes can exceed, case being told apart. */
size_t glob_work_max(struct slice pattern, size_t text_len);

/* True if the pattern has no special byte, so that it can only equal itself. */
bool glob_is_plain(struct slice pattern);
