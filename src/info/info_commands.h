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
