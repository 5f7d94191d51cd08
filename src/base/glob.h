/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Redis's glob patterns: * ? [a-z] [^a-z], and \ before a literal byte. The
 * segments between stars are searched from left to right; the leftmost match of
 * a segment is as good as any. A literal segment takes time linear in the text.
 * A segment with ? or classes may take its length times the text's length. So
 * all work is counted and bounded.
 */
#pragma once

#include "base/slice.h"

enum { GLOB_PATTERN_MAX = 1024 };

/* The usual limit of work. A unit, some nanoseconds, is one byte of a pattern
 * compared or two bytes of text searched. */
enum { GLOB_WORK = 1 << 20 };

/* Returns false for a pattern that has special bytes and is longer than
 * GLOB_PATTERN_MAX. */
bool glob_is_fair(struct slice pattern);

/* Matches the whole text, and subtracts the work done from *work. GLOB_OVER:
 * *work was not enough, so the answer is unknown. */
enum glob_verdict { GLOB_NO, GLOB_YES, GLOB_OVER };
enum glob_verdict glob_match(struct slice pattern, struct slice text,
                             bool ignore_case, size_t *work);

/* Returns an upper bound of the work for a text of this length, without
 * ignore_case. */
size_t glob_work_max(struct slice pattern, size_t text_len);

/* Returns true if the pattern has no special byte, so that it matches only
 * itself. */
bool glob_is_plain(struct slice pattern);
