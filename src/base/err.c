/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Expands tbl/errors.def, and ends the process after a failed CHECK.
 */
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>

struct err_row {
    const char *prefix, *text;
};

static const struct err_row rows[ERR_COUNT] = {
    [OK] = { "", "" },
#define ERR(id, pre, txt) [ERR_##id] = { pre, txt },
#include "tbl/errors.def"
#undef ERR
};

const char *
err_prefix(enum err err)
{
    return rows[err].prefix;
}

const char *
err_text(enum err err)
{
    return rows[err].text;
}

void
err_check_failed(const char *file, int line, const char *expression)
{
    (void)fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, expression);
    abort();
}
