/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options of tbl/options.def and their values: struct conf has one field
 * for each row, named by the row's id (conf->port, conf->bf_fp_rate.value).
 *
 * The loops read the values in force without locks, inside a section of the
 * gate. So once the loops run, a value changes only while the gate is raised,
 * and no pointer into struct conf outlives a section. Nothing here logs, locks
 * or exits; conf/conf_load.h reads files.
 */
#pragma once

#include "base/buf.h"
#include "conf/conf_error.h"
#include "conf/conf_types.h"

/* One field for each row, in the order of the table; there are more than 30, as
 * there are so many options. There are few instances, so padding does not
 * matter. NOLINTNEXTLINE(*Padding) */
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

/* Set all defaults. conf_init() aborts without memory: it is for the start.
 * After a failure of conf_try_init() conf_fini() is allowed, but not needed. */
void conf_init(struct conf *conf);
MUST_CHECK bool conf_try_init(struct conf *conf, struct conf_error *ret_error);
void conf_fini(struct conf *conf);

/* Returns the row with this full name, or NULL. Case does not matter. */
const struct conf_row *conf_find(struct slice name);

/* Returns the row of the option that names the file of this secret. */
const struct conf_row *conf_file_row(const struct conf_row *row);

/* Returns the path of the file that has the value, or NULL if there is none. */
const char *conf_file_of(const struct conf *conf, const struct conf_row *row);

/* Returns the option's name inside its section of the file: the full name,
 * without "bf." in [bf]. */
const char *conf_key(const struct conf_row *row);

/* Parses and sets one value, whatever row->when is. On failure nothing changed,
 * and *ret_error has the reason in Redis's words. */
MUST_CHECK bool conf_set(struct conf *conf, const struct conf_row *row,
                         struct slice value, struct conf_error *ret_error);

/* Appends the value as CONFIG GET shows it: "********" for a password. */
void conf_get(const struct conf *conf, const struct conf_row *row,
              struct buf *ret_text);

/* Appends the value as conf_set reads it back: secrets are shown. */
void conf_show(const struct conf *conf, const struct conf_row *row,
               struct buf *ret_text);

bool conf_same(const struct conf *a, const struct conf *b,
               const struct conf_row *row);

/* Returns whether a CONF_STRING or CONF_SECRET is not empty. */
bool conf_has_text(const struct conf *conf, const struct conf_row *row);

/* Makes a copy that shares nothing with conf. False without memory. */
MUST_CHECK bool conf_copy(const struct conf *conf, struct conf *ret_copy,
                          struct conf_error *ret_error);

/* What a change has done, for each option. */
struct conf_changes {
    bool changed[CONF_OPTION_COUNT]; /* the option has another value now */
    bool needs_restart[CONF_OPTION_COUNT]; /* CONF_START: the option keeps the
                                              old value until a restart */
};

/* Sets `count` pairs of names and values, all or none, for CONFIG SET. On
 * failure *ret_error has the text after "ERR ", which may quote bytes of the
 * client. Under the raised gate. */
MUST_CHECK bool conf_set_many(struct conf *conf, const struct slice *pairs,
                              size_t count, struct conf_changes *ret_changes,
                              struct conf_error *ret_error);

/* For a reload, exchanges between conf and `fresh` all values that can change
 * without a restart. The caller then frees `fresh`. So the values of the files
 * and the command line replace those of CONFIG SET. Under the raised gate. */
void conf_take(struct conf *conf, struct conf *fresh,
               struct conf_changes *ret_changes);
