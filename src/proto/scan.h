/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The zero-copy scanner: parses complete and canonical multibulk commands in
 * the read buffer. It refuses nothing: all other commands (incomplete, inline,
 * unusual, above a limit) are left to the reader, so that errors are found in
 * one place. Pure, apart from the batch's growth.
 */
#pragma once

#include "proto/batch.h"
#include "proto/parse.h"

/* Adds the commands of `data`, from *at on, to the batch. Stops when the batch
 * is full, or before a command that is not canonical and complete. Moves *at
 * behind the last added command. Returns ERR_NOMEM if memory is too short for
 * the first command; if it runs out later, the added commands stay. */
MUST_CHECK enum err scan_commands(struct slice data,
                                  const struct parse_limits *limits,
                                  struct batch *batch, size_t *at);
