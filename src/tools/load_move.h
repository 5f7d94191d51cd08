/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-load move: moves slots of a cluster from one node to another. The
 * server of the target copies them first; then the nodes move them by their own
 * protocol, and the server goes on from its copy.
 */
#pragma once

#include "tools/load.h"

void load_move(struct load *load, const char *slots, const char *from,
               const char *to);
