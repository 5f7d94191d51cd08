/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The zero-copy scanner: takes complete and canonical multibulk commands where
 * they lie in the read buffer. It refuses nothing: whatever it does not take
 * (incomplete, inline, odd, against a limit) is left to the reader, so that
 * errors are found in one place. Pure, apart from the batch's growth.
 */
#pragma once

#include "proto/batch.h"
#include "proto/parse.h"

/* Adds commands of data, from *at on, to the batch until it is full or the
 * next one is none of the scanner's. *at moves behind the last one taken.
 * ERR_NOMEM only if not even one could be stored. */
MUST_CHECK enum err scan_commands(struct slice data,
                                  const struct parse_limits *limits,
                                  struct batch *batch, size_t *at);
