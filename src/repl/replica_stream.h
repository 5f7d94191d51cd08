/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cuts the bytes that arrive into pieces and passes them on. Loop 0.
 */
#pragma once

#include "repl/replica_state.h"

/* Reads the gathered bytes, and then the fresh ones. */
void replica_stream_read(struct replica *replica, struct slice fresh,
                         uint64_t now_ms);
