/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash slot of a name, as Redis Cluster assigns it: CRC-16 (XMODEM) of the
 * hash tag, modulo 16,384. The tag is what stands between the first `{` and the
 * next `}` behind it. If that text is empty or missing, the tag is the whole
 * name. Pure.
 */
#pragma once

#include "base/slice.h"
#include "base/slot_set.h"

#include <stdint.h>

enum { HASH_SLOTS = CLUSTER_SLOTS };

uint32_t hash_slot_of(struct slice name);
