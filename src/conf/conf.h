/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options of tbl/options.def and their values: one field of struct conf a
 * row, named by the row's id (conf->port, conf->bf_fp_rate.value).
 *
 * The loops read the values in force without locks, inside their section of
 * the world gate. So once the loops run, a value changes only while the gate
 * is raised, and nobody keeps a pointer into struct conf past his section.
 * Nothing here logs, locks or exits; files are read by conf/conf_load.h.
 */
#pragma once

#include "base/buf.h"
#include "conf/conf_error.h"
#include "conf/conf_types.h"

/* In the order of the table, which is the reader's; one instance, so that
 * padding does not matter. NOLINTNEXTLINE(*Padding) */
struct conf {
#define OPT(id, type, ...) CONF_FIELD_##type id;
#define ALIAS(...)
#include "tbl/options.def"
#undef ALIAS
#undef OPT
};

static inline bool
conf_policy_is_lfu(const struct conf *conf)
{
    return (conf->maxmemory_policy & CONF_POLICY_LFU) != 0;
}

enum conf_option {
#define OPT(id, ...)   CONF_OPTION_##id,
#define ALIAS(id, ...) CONF_OPTION_##id,
#include "tbl/options.def"
#undef ALIAS
#undef OPT
    CONF_OPTION_COUNT
};

extern const struct conf_row conf_table[CONF_OPTION_COUNT];

/* All defaults. The first aborts without memory: it is for the start. After a
 * failure of the other there is nothing to be freed, though conf_fini does no
 * harm. */
void conf_init(struct conf *conf);
MUST_CHECK bool conf_try_init(struct conf *conf, struct conf_error *ret_error);
void conf_fini(struct conf *conf);

/* The row with this full name in any case; NULL if there is none. */
const struct conf_row *conf_find(struct slice name);

/* Of a secret that a file may give: the option that names the file. */
const struct conf_row *conf_file_row(const struct conf_row *row);

/* The path of the file that gives the value, or NULL if none does. */
const char *conf_file_of(const struct conf *conf, const struct conf_row *row);

/* The option's name inside its section of the file: the full name, without
 * "bf." in [bf]. */
const char *conf_key(const struct conf_row *row);

/* Parses and sets one value. On failure nothing changed and *ret_error says
 * why, in Redis's words. Does not look at row->when. */
MUST_CHECK bool conf_set(struct conf *conf, const struct conf_row *row,
                         struct slice value, struct conf_error *ret_error);

/* Appends the value as CONFIG GET shows it: a set password is "********". */
void conf_get(const struct conf *conf, const struct conf_row *row,
              struct buf *ret_text);

/* Appends the value as conf_set reads it back: secrets are shown. */
void conf_show(const struct conf *conf, const struct conf_row *row,
               struct buf *ret_text);

bool conf_same(const struct conf *a, const struct conf *b,
               const struct conf_row *row);

/* Of a CONF_STRING or CONF_SECRET: whether it is not empty. */
bool conf_has_text(const struct conf *conf, const struct conf_row *row);

/* A copy of its own, for who needs the values outside of any section. False
 * without memory. */
MUST_CHECK bool conf_copy(const struct conf *conf, struct conf *ret_copy,
                          struct conf_error *ret_error);

/* Options by what a change did to them. */
struct conf_changes {
    bool changed[CONF_OPTION_COUNT];       /* has another value now */
    bool needs_restart[CONF_OPTION_COUNT]; /* asked for, but CONF_START */
};

/* CONFIG SET: `count` pairs, names at even places. All or nothing; on failure
 * *ret_error is what stands after "ERR " (it may quote bytes of the client).
 * Under the world gate. */
MUST_CHECK bool conf_set_many(struct conf *conf, const struct slice *pairs,
                              size_t count, struct conf_changes *ret_changes,
                              struct conf_error *ret_error);

/* A reload: moves the CONF_RUNTIME values of `fresh` into conf and leaves the
 * old ones in fresh, which the caller frees. A value that CONFIG SET gave goes
 * back to what file and command line say. Under the world gate. */
void conf_take(struct conf *conf, struct conf *fresh,
               struct conf_changes *ret_changes);
