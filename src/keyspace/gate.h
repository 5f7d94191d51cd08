/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The gate. A loop is inside its section of the gate while it executes
 * commands. A thread that needs the whole keyspace and all settings (FLUSHALL,
 * CONFIG SET, ...) raises the gate: it waits until every other thread has left
 * its section, and then owns everything without a stripe lock. Lock order: gate
 * before stripes. No thread waits for a disk or a socket inside a section.
 *
 * Entering costs one sequentially consistent store and one load of a cache line
 * that is rarely written. With one loop it costs nothing, as long as no other
 * thread walks through the keys (gate_share).
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct gate;

/* Makes a gate for `threads` loops. Up to GATE_WALKERS threads that walk
 * through the keys may enter, too; their indexes begin at `threads`. Returns
 * NULL without memory. */
enum { GATE_WALKERS = 2 };
struct gate *gate_try_new(unsigned threads);
void gate_free(struct gate *gate);

/* Says whether, from now on, a walking thread enters the gate. With one loop,
 * call it on this loop, outside its section, while the gate is down. With
 * several loops it does nothing, so it may be called at any time. */
void gate_share(struct gate *gate, bool on);

/* Enter and leave the section of the loop with this index. Entering waits while
 * another thread has raised the gate. Not recursive. */
void gate_enter(struct gate *gate, unsigned thread);
void gate_leave(struct gate *gate, unsigned thread);

/* Enters, or returns false where gate_enter would wait. */
MUST_CHECK bool gate_try_enter(struct gate *gate, unsigned thread);

/* Raises the gate, from outside this thread's section, and returns when all
 * other threads are outside theirs. Raisers wait for each other. The thread
 * that raised the gate lowers it. */
void gate_raise(struct gate *gate, unsigned thread);
void gate_lower(struct gate *gate, unsigned thread);

/* Returns true between this thread's raise and lower. */
bool gate_is_mine(const struct gate *gate, unsigned thread);
