/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes metrics in the two text forms of Prometheus: its own (version 0.0.4)
 * and OpenMetrics 1.0. A family is a kind, a unit, a help text, and samples
 * with labels:
 *
 *   # HELP bloomery_keys Keys of a database.
 *   # TYPE bloomery_keys gauge
 *   bloomery_keys{db="0"} 12
 *
 * All names begin with bloomery_. The unit is the last word of a family's name
 * (seconds, bytes), and the samples of a counter add _total. The two forms
 * differ only in the names of counters' families, the UNIT lines and the end.
 */
#pragma once

#include "base/buf.h"
#include "base/metrics.h"

enum expose_kind { EXPOSE_COUNTER, EXPOSE_GAUGE, EXPOSE_HISTOGRAM };

enum { EXPOSE_NAME_MAX = 96 };

struct expose {
    struct buf *text;
    bool open; /* OpenMetrics */
    enum expose_kind kind;
    char name[EXPOSE_NAME_MAX]; /* name of the family, with bloomery_ */
    struct buf labels;          /* of the next samples */
};

/* Begins a family. unit: "seconds", "bytes" or "". */
void expose_family(struct expose *expose, const char *name,
                   enum expose_kind kind, const char *unit, const char *help);

/* Give the next samples only this label, or one more label. The value may be
 * any bytes: what is not printable ASCII is written as \xNN. A family begins
 * without labels. */
void expose_label(struct expose *expose, const char *name, struct slice value);
void expose_more_label(struct expose *expose, const char *name,
                       struct slice value);

/* Add a sample: a count, or a time, which is written in seconds. */
void expose_count(struct expose *expose, uint64_t value);
void expose_ns(struct expose *expose, uint64_t ns);

/* Adds a sample of a finite number with six significant digits. */
void expose_number(struct expose *expose, double value);

/* Begin a family and add its only sample. */
void expose_one(struct expose *expose, const char *name, const char *unit,
                const char *help, uint64_t value);
void expose_one_total(struct expose *expose, const char *name, const char *unit,
                      const char *help, uint64_t value);
void expose_one_ns(struct expose *expose, const char *name, const char *help,
                   uint64_t ns);

/* Add samples of a histogram: one of a bucket for values of at most upper_ns
 * (UINT64_MAX: all), and the sum and the count. */
void expose_bucket(struct expose *expose, uint64_t upper_ns, uint64_t count);
void expose_sum(struct expose *expose, uint64_t sum_ns, uint64_t count);

/* Adds every row of tbl/metrics.def as a family. It has the row's name
 * without "total_" in front and without a word for its unit at the end. */
void expose_table(struct expose *expose);

/* Ends the text; the struct then owns nothing. */
void expose_end(struct expose *expose);
