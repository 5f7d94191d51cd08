/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buf_printf is for short texts; long texts are appended in pieces.
 */
#include "info/info_put.h"

#include <inttypes.h>

void
info_put_number(struct buf *text, const char *name, uint64_t value)
{
    buf_printf(text, "%s:%" PRIu64 "\r\n", name, value);
}

void
info_put_since(struct buf *text, const char *name, uint64_t count,
               const _Atomic uint64_t *before)
{
    info_put_number(text, name,
                    count - atomic_load_explicit(before, memory_order_relaxed));
}

void
info_put_zeros(struct buf *text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        info_put_number(text, names[i], 0);
    }
}

void
info_put_signed(struct buf *text, const char *name, int64_t value)
{
    buf_printf(text, "%s:%" PRId64 "\r\n", name, value);
}

void
info_put_ratio(struct buf *text, const char *name, double value)
{
    buf_printf(text, "%s:%.2f\r\n", name, value);
}

void
info_put_text(struct buf *text, const char *name, const char *value)
{
    buf_append_slice(text, slice_of(name));
    buf_append(text, ":", 1);
    buf_append_slice(text, slice_of(value != NULL ? value : ""));
    buf_append(text, "\r\n", 2);
}

double
info_put_scaled(uint64_t bytes, unsigned last, unsigned *ret_unit)
{
    double value = (double)bytes;

    for (*ret_unit = 0; value >= 1024 && *ret_unit < last; ++*ret_unit) {
        value /= 1024;
    }
    return value;
}

void
info_put_human(struct buf *text, const char *name, uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    unsigned unit;
    double value = info_put_scaled(bytes, sizeof(units) - 2, &unit);

    buf_printf(text, unit == 0 ? "%s_human:%.0f%c\r\n" : "%s_human:%.2f%c\r\n",
               name, value, units[unit]);
}

void
info_put_bytes(struct buf *text, const char *name, uint64_t bytes)
{
    info_put_number(text, name, bytes);
    info_put_human(text, name, bytes);
}

void
info_put_option(struct buf *text, const struct conf *conf,
                const struct conf_row *row)
{
    const char *dot = strchr(row->name, '.');
    const char *name = dot != NULL ? dot + 1 : row->name;

    for (; *name != '\0'; name++) {
        buf_append(text, *name == '-' ? "_" : name, 1);
    }
    buf_append(text, ":", 1);
    conf_get(conf, row, text);
    buf_append(text, "\r\n", 2);
}

uint64_t
info_put_metric_value(enum metric metric)
{
    int64_t sum = metric_sum(metric);

    return sum > 0 ? (uint64_t)sum : 0;
}
