/* SPDX-License-Identifier: BSD-3-Clause
 *
 * server: copies the filters of a running server, one after the other.
 */
#pragma once

#include "load/load.h"

void load_copy(struct load *load);
