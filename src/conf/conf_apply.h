/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets options by name, as a command line, a line of redis.conf or a file gives
 * them: our own options, those of Redis and Valkey that do nothing here
 * (conf_foreign.h), and loadmodule and rename-command, which stand for other
 * options. Pure.
 */
#pragma once

#include "conf/conf.h"

/* Where options come from. As in Redis, the rules of several `save` lines in
 * one place add up, and an empty `save` removes those before it. */
struct conf_source {
    struct conf *conf;
    struct conf_notes *notes; /* NULL: nobody reads them */
    struct buf *mistakes;     /* gets all mistakes; NULL: stop at one */
    const char *where;        /* in notes: "the command line", "file:3" */
    bool save_seen;           /* there was a `save` in this place */
};

/* Sets an option of ours to the text of its value. */
MUST_CHECK bool conf_apply_row(struct conf_source *source,
                               const struct conf_row *row, struct slice value,
                               struct conf_error *ret_error);

/* Returns whether the values of an option may stand as several words. */
bool conf_apply_joins(const struct conf_row *row);

/* Sets any option to words, of which there may be none. The error names the
 * option only if it is unknown. */
MUST_CHECK bool conf_apply_words(struct conf_source *source, struct slice name,
                                 const struct slice *words, size_t count,
                                 struct conf_error *ret_error);

/* Returns whether the option is none of ours, but conf_apply_words knows it. */
bool conf_apply_is_foreign(struct slice name);

/* Splits a line of redis.conf into words, with its quotes and escapes: the
 * words are stored in *store, whose former contents are lost. False: a quote is
 * not closed, or there are more than `max` words. */
MUST_CHECK bool conf_apply_split(struct slice line, struct buf *store,
                                 struct slice *ret_words, size_t max,
                                 size_t *ret_count);
