/* SPDX-License-Identifier: BSD-3-Clause */
#include "info/expose.h"

#include "base/err.h"
#include "info/info_put.h"
#include "info/json.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const kind_names[] = {
    [EXPOSE_COUNTER] = "counter",
    [EXPOSE_GAUGE] = "gauge",
    [EXPOSE_HISTOGRAM] = "histogram",
};

/* ---- families ------------------------------------------------------------ */

static void
put_head(struct expose *expose, const char *word, const char *value)
{
    bool total = expose->kind == EXPOSE_COUNTER && !expose->open;

    buf_append_slice(expose->text, slice_lit("# "));
    buf_append_slice(expose->text, slice_of(word));
    buf_append(expose->text, " ", 1);
    buf_append_slice(expose->text, slice_of(expose->name));
    buf_append_slice(expose->text, slice_of(total ? "_total " : " "));
    buf_append_slice(expose->text, slice_of(value));
    buf_append(expose->text, "\n", 1);
}

void
expose_family(struct expose *expose, const char *name, enum expose_kind kind,
              const char *unit, const char *help)
{
    int len = snprintf(expose->name, sizeof(expose->name), "bloomery_%s%s%s",
                       name, unit[0] != '\0' ? "_" : "", unit);

    CHECK(len > 0 && len < EXPOSE_NAME_MAX);
    expose->kind = kind;
    expose->labels.len = 0;
    put_head(expose, "HELP", help);
    put_head(expose, "TYPE", kind_names[kind]);
    if (expose->open && unit[0] != '\0') {
        put_head(expose, "UNIT", unit);
    }
}

/* ---- samples ------------------------------------------------------------- */

static void
begin_sample(struct expose *expose, const char *suffix)
{
    buf_append_slice(expose->text, slice_of(expose->name));
    buf_append_slice(expose->text, slice_of(suffix));
    if (expose->labels.len > 0) {
        buf_append(expose->text, "{", 1);
        buf_append_slice(expose->text, buf_slice(&expose->labels));
        buf_append(expose->text, "}", 1);
    }
    buf_append(expose->text, " ", 1);
}

static const char *
suffix_of(const struct expose *expose)
{
    CHECK(expose->kind != EXPOSE_HISTOGRAM);
    return expose->kind == EXPOSE_COUNTER ? "_total" : "";
}

void
expose_count(struct expose *expose, uint64_t value)
{
    begin_sample(expose, suffix_of(expose));
    buf_printf(expose->text, "%" PRIu64 "\n", value);
}

void
expose_number(struct expose *expose, double value)
{
    begin_sample(expose, suffix_of(expose));
    buf_printf(expose->text, "%.6g\n", value);
}

static void
put_seconds(struct buf *text, uint64_t ns)
{
    buf_printf(text, "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
               ns % 1000000000);
}

void
expose_ns(struct expose *expose, uint64_t ns)
{
    begin_sample(expose, suffix_of(expose));
    put_seconds(expose->text, ns);
    buf_append(expose->text, "\n", 1);
}

void
expose_one(struct expose *expose, const char *name, const char *unit,
           const char *help, uint64_t value)
{
    expose_family(expose, name, EXPOSE_GAUGE, unit, help);
    expose_count(expose, value);
}

void
expose_one_total(struct expose *expose, const char *name, const char *unit,
                 const char *help, uint64_t value)
{
    expose_family(expose, name, EXPOSE_COUNTER, unit, help);
    expose_count(expose, value);
}

void
expose_one_ns(struct expose *expose, const char *name, const char *help,
              uint64_t ns)
{
    expose_family(expose, name, EXPOSE_GAUGE, "seconds", help);
    expose_ns(expose, ns);
}

void
expose_bucket(struct expose *expose, uint64_t upper_ns, uint64_t count)
{
    struct buf *text = expose->text;

    CHECK(expose->kind == EXPOSE_HISTOGRAM);
    buf_append_slice(text, slice_of(expose->name));
    buf_append_slice(text, slice_lit("_bucket{"));
    buf_append_slice(text, buf_slice(&expose->labels));
    buf_append_slice(text,
                     slice_of(expose->labels.len > 0 ? ",le=\"" : "le=\""));
    if (upper_ns == UINT64_MAX) {
        buf_append_slice(text, slice_lit("+Inf"));
    } else {
        put_seconds(text, upper_ns);
    }
    buf_printf(text, "\"} %" PRIu64 "\n", count);
}

void
expose_sum(struct expose *expose, uint64_t sum_ns, uint64_t count)
{
    CHECK(expose->kind == EXPOSE_HISTOGRAM);
    begin_sample(expose, "_sum");
    put_seconds(expose->text, sum_ns);
    buf_append(expose->text, "\n", 1);
    begin_sample(expose, "_count");
    buf_printf(expose->text, "%" PRIu64 "\n", count);
}

/* ---- the table ----------------------------------------------------------- */

static bool
cut_end(struct slice *name, const char *end)
{
    size_t len = strlen(end);

    if (name->len <= len ||
        memcmp(name->data + name->len - len, end, len) != 0) {
        return false;
    }
    name->len -= len;
    return true;
}

/* Writes the name of a row as the families have it, without its unit. */
static void
name_row(const struct metric_row *row, char ret_name[EXPOSE_NAME_MAX])
{
    static const char total[] = "total_";
    struct slice name = slice_of(row->name);
    bool cut = false;

    if (strncmp(name.data, total, sizeof(total) - 1) == 0) {
        name.data += sizeof(total) - 1;
        name.len -= sizeof(total) - 1;
    }
    switch (row->unit) {
    case METRIC_IN_COUNT:
        cut = cut_end(&name, "_count");
        break;
    case METRIC_IN_BYTES:
        cut = cut_end(&name, "_bytes");
        break;
    case METRIC_IN_US:
        cut = cut_end(&name, "_usec");
        break;
    case METRIC_IN_MS:
        cut = cut_end(&name, "_time");
        break;
    }
    (void)cut; /* the word may be missing */
    (void)snprintf(ret_name, EXPOSE_NAME_MAX, "%.*s", (int)name.len, name.data);
}

/* Makes a sentence of the text of a row. */
static void
put_help(const struct metric_row *row, struct buf *ret_help)
{
    char first = row->text[0];

    if (first >= 'a' && first <= 'z') {
        first = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[first - 'a'];
    }
    ret_help->len = 0;
    buf_append(ret_help, &first, 1);
    buf_append(ret_help, row->text + 1, strlen(row->text + 1));
    buf_append(ret_help, ".", 2); /* with a NUL */
}

void
expose_table(struct expose *expose)
{
    struct buf help = { 0 };
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        [METRIC_IN_COUNT] = { "", 0 },
        [METRIC_IN_BYTES] = { "bytes", 0 },
        [METRIC_IN_US] = { "seconds", 1000 },
        [METRIC_IN_MS] = { "seconds", 1000000 },
    };

    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        const struct metric_row *row = &metric_table[i];
        uint64_t value = info_put_metric_value((enum metric)i);
        char name[EXPOSE_NAME_MAX];

        name_row(row, name);
        put_help(row, &help);
        expose_family(
            expose, name,
            row->kind == METRIC_COUNTER ? EXPOSE_COUNTER : EXPOSE_GAUGE,
            units[row->unit].name, help.failed ? row->text : help.data);
        if (units[row->unit].ns > 0) {
            expose_ns(expose, value * units[row->unit].ns);
        } else {
            expose_count(expose, value);
        }
    }
    buf_free(&help);
}

/* ---- labels and the end -------------------------------------------------- */

void
expose_more_label(struct expose *expose, const char *name, struct slice value)
{
    struct buf *labels = &expose->labels;

    buf_append_slice(labels, slice_of(labels->len > 0 ? "," : ""));
    buf_append_slice(labels, slice_of(name));
    buf_append_slice(labels, slice_lit("=\""));
    json_append_quoted(labels, value);
    buf_append(labels, "\"", 1);
    expose->text->failed = expose->text->failed || labels->failed;
}

void
expose_label(struct expose *expose, const char *name, struct slice value)
{
    expose->labels.len = 0;
    expose_more_label(expose, name, value);
}

void
expose_end(struct expose *expose)
{
    if (expose->open) {
        buf_append_slice(expose->text, slice_lit("# EOF\n"));
    }
    buf_free(&expose->labels);
}
