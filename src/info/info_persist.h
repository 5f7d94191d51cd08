/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The section Persistence of INFO. Any loop.
 */
#pragma once

#include "base/buf.h"
#include "engine/service.h"

void info_persist_write(const struct service *service, struct buf *text);

/* Those figures of the section Stats that are about forks. */
void info_persist_write_forks(const struct service *service, struct buf *text);

/* What CONFIG RESETSTAT sets to zero of all that: saves, rewrites, forks. */
void info_persist_reset(struct service *service);

/* The position of the log, which replicas would follow; 0 without one. */
uint64_t info_persist_position(const struct service *service);
