/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A test that opened the reserve leaves none to the next one.
 */
#pragma once

#include "../test.h"
#include "base/reserve.h"

#include <sys/mman.h>

static inline void
reserve_close(void)
{
    assert_int_equal(0, reserve_used());
    assert_int_equal(0, munmap(reserve_base, RESERVE_BYTES));
    reserve_base = NULL;
}
