/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When all connections together take more than maxmemory-clients (usage.h), the
 * one that takes the most is cut, then the next one, until the rest fits.
 * Connections on the operator's places are never cut, nor those with CLIENT
 * NO-EVICT.
 */
#pragma once

#include "net/loop.h"

/* Asks the loops of the largest connections to close them. Called at the end of
 * a turn in which this loop went above the limit (loop->above). */
void shed_largest(struct loop *loop);
