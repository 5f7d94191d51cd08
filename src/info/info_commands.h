/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sections of INFO that have a line for each command, or for each kind of
 * error. Any loop.
 */
#pragma once

#include "base/buf.h"
#include "engine/service.h"

void info_commands_write(const struct service *service, struct buf *text);
void info_commands_write_errors(const struct service *service,
                                struct buf *text);
void info_commands_write_latency(const struct service *service,
                                 struct buf *text);

/* Calls visit for each kind of error that has been replied since the last
 * reset. */
typedef void (*info_error_fn)(void *ctx, const char *prefix, uint64_t count);
void info_commands_each_error(const struct service *service,
                              info_error_fn visit, void *ctx);
