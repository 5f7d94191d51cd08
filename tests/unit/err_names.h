/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The names of the rows of tbl/errors.def, for what tests print and expect.
 */
#pragma once

#include "base/err.h"

static inline const char *
err_name(enum err err)
{
#define ERR(id, prefix, text)                                                  \
    if (err == ERR_##id) {                                                     \
        return #id;                                                            \
    }
#include "tbl/errors.def"
#undef ERR
    return "OK";
}
