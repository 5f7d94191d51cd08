/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The questions of the sidecar to other daemons, as commands, and their
 * replies. Pure.
 */
#pragma once

#include "base/buf.h"
#include "cluster/sidecar_hooks.h"
#include "proto/answers.h"

/* Appends the command for a question. own: the id of our node, in whose name
 * this daemon asks. */
void sidecar_asks_write(struct buf *out, const struct sidecar_ask *ask,
                        const char *own);

/* Appends the command that asks what a server has of these slots. */
void sidecar_asks_count(struct buf *out, const struct slot_set *set);

/* Reads the reply. holdings, granted, and reason, of `size` bytes, are storage
 * for what the answer points to. A reply that makes no sense counts as
 * SIDECAR_SILENT. */
struct sidecar_answer sidecar_asks_read(const struct answer *reply,
                                        struct holdings *holdings,
                                        struct slot_set *granted, char *reason,
                                        size_t size);
