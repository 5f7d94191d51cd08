/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes batches: gathers runs (run.h), checks and admits them, takes the
 * locks that the rows name, calls their functions, turns errors into replies,
 * counts, and passes effects on while the stripes are still locked. Needs no
 * socket: a session and a buffer will do (tests, benchmarks, replay).
 */
#pragma once

#include "engine/request.h"
#include "proto/stream.h"

struct worker *dispatch_new_worker(struct service *service, unsigned index);
void dispatch_free_worker(struct worker *worker);

/* Executes the batch's commands from `first` on, in order, and appends the
 * replies. Returns the index of the first command that is not done. It is below
 * the batch's count when the session closes, when a handler paused
 * (session->again is set), when LOOP_FLUSH_BYTES of replies have gathered, or
 * when clock_mono_ns has passed until_ns (UINT64_MAX: never). At least one
 * command or run is done, however late it is, since parsing a large one may
 * take longer than a turn. None is done if the session must wait first
 * (session->wait is set). worker->hold is the position that the replies have to
 * wait for, 0 for none. */
uint32_t dispatch_batch(struct worker *worker, struct session *session,
                        const struct batch *batch, uint32_t first,
                        uint64_t until_ns, struct buf *out);
