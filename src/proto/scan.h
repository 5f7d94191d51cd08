/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The zero-copy scanner: parses complete and canonical multibulk commands in
 * the read buffer. It refuses nothing: any other command (incomplete, inline,
 * unusual, above a limit) is left to the reader, so that errors are found in
 * one place. Pure, apart from the batch's growth.
 */
#pragma once

#include "proto/batch.h"
#include "proto/parse.h"

/* Adds the commands of data from *at on to the batch, until it is full or the
 * next command is not canonical and complete. Moves *at after the last command
 * added. ERR_NOMEM only if not even one could be stored. */
MUST_CHECK enum err scan_commands(struct slice data,
                                  const struct parse_limits *limits,
                                  struct batch *batch, size_t *at);
