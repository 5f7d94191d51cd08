/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The world gate. A loop is inside its section while it executes commands; who
 * needs the whole world (FLUSHALL, CONFIG SET, ...) raises the gate, waits
 * until every other loop is outside, and then owns everything without taking a
 * single stripe lock. Lock order: gate < stripes. Nobody waits for a disk or a
 * socket inside a section.
 *
 * Entering costs one sequentially consistent store and one load of a line that
 * nobody writes; with one thread it costs nothing.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct gate;

/* NULL without memory. */
struct gate *gate_try_new(unsigned threads);
void gate_free(struct gate *gate);

/* Around the execution of commands, by the loop with this index. Waits while
 * the gate is raised by another. Not recursive. */
void gate_enter(struct gate *gate, unsigned thread);
void gate_leave(struct gate *gate, unsigned thread);

/* Enters, or is false where gate_enter would wait. */
MUST_CHECK bool gate_try_enter(struct gate *gate, unsigned thread);

/* From outside any section of this thread. Returns when all other threads are
 * outside theirs; raisers queue up. A thread that never enters may raise too,
 * under an index of its own that is not below `threads` (with more than one
 * thread). Lowering is for the thread that raised. */
void gate_raise(struct gate *gate, unsigned thread);
void gate_lower(struct gate *gate, unsigned thread);

/* True between this thread's raise and lower. */
bool gate_is_mine(const struct gate *gate, unsigned thread);
