/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The questions of the sidecar to other daemons, as commands, and their
 * replies. Pure.
 */
#pragma once

#include "base/buf.h"
#include "cluster/sidecar_hooks.h"
#include "proto/answers.h"

/* Appends the command. own: the id of the node that asks. */
void sidecar_asks_write(struct buf *out, const struct sidecar_ask *ask,
                        const char *own);

/* Appends the command that asks what a server has of slots. */
void sidecar_asks_count(struct buf *out, const struct slot_set *set);

/* Reads the reply. holdings and granted are storage that the answer points to;
 * reason, of `size`, likewise. A reply that makes no sense counts as
 * SIDECAR_SILENT. */
struct sidecar_answer sidecar_asks_read(const struct answer *reply,
                                        struct holdings *holdings,
                                        struct slot_set *granted, char *reason,
                                        size_t size);
