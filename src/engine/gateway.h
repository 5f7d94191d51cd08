/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hooks that join net to dispatch: a connection came, sent commands, broke
 * the protocol, or is gone.
 */
#pragma once

#include "net/conn.h"

/* What a loop calls; loop->owner is its struct worker. */
extern const struct conn_handler gateway_handler;
