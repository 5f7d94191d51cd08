/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The filters of the modules that loadmodule loads are built in, so the
 * arguments of these modules are options here.
 */
#include "conf/conf_apply.h"

#include "base/hex.h"
#include "conf/conf_foreign.h"

#include <stdio.h>
#include <strings.h>

bool
conf_apply_row(struct conf_source *source, const struct conf_row *row,
               struct slice value, struct conf_error *ret_error)
{
    struct buf all = { 0 };
    bool set;

    if (row->type != CONF_SAVE) {
        return conf_set(source->conf, row, value, ret_error);
    }
    if (source->save_seen && value.len > 0) {
        conf_get(source->conf, row, &all);
        buf_append(&all, " ", 1);
    }
    buf_append_slice(&all, value);
    if (all.failed) {
        conf_error_no_memory(ret_error);
        set = false;
    } else {
        set = conf_set(source->conf, row, buf_slice(&all), ret_error);
    }
    source->save_seen = true;
    buf_free(&all);
    return set;
}

bool
conf_apply_joins(const struct conf_row *row)
{
    return row->type == CONF_SAVE || row->type == CONF_STRINGS ||
           row->type == CONF_OUTPUT_LIMIT || row->type == CONF_PERCENTILES;
}

/* Appends the words, separated by blanks. */
static void
join(const struct slice *words, size_t count, struct buf *ret_text)
{
    for (size_t i = 0; i < count; i++) {
        buf_append(ret_text, " ", i > 0);
        if (words[i].len > 0) {
            buf_append_slice(ret_text, words[i]);
        }
    }
}

/* ---- loadmodule ---------------------------------------------------------- */

static bool
has_part(struct slice text, const char *part)
{
    size_t len = strlen(part);

    for (size_t i = 0; i + len <= text.len; i++) {
        if (strncasecmp(text.data + i, part, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Finds the option that stands for an argument of a module: "ERROR_RATE" of
 * RedisBloom, "bloom-capacity" of valkey-bloom. */
static const struct conf_row *
find_argument(struct slice name, bool redis)
{
    static const char *const old[][2] = {
        { "error_rate", "bf-error-rate" },
        { "initial_size", "bf-initial-size" },
        { "expansion", "bf-expansion-factor" },
    };
    char full[64];
    int len;

    while (name.len > 0 && name.data[0] == '-') {
        name.data++;
        name.len--;
    }
    for (size_t i = 0; redis && i < sizeof(old) / sizeof(old[0]); i++) {
        if (slice_is_word(name, old[i][0])) {
            return conf_find(slice_of(old[i][1]));
        }
    }
    if (redis) {
        return has_part(name, "bf-") ? conf_find(name) : NULL;
    }
    if (has_part(name, "bf.")) {
        return conf_find(name);
    }
    len = snprintf(full, sizeof(full), "bf.%.*s", slice_shown(name), name.data);
    return len > 0 && len < (int)sizeof(full) ? conf_find(slice_of(full))
                                              : NULL;
}

static bool
load_module(struct conf_source *source, const struct slice *words, size_t count,
            struct conf_error *ret_error)
{
    bool bloom = has_part(words[0], "bloom");
    bool redis = bloom && !has_part(words[0], "valkey");
    struct conf_error note, why;

    if (!bloom) {
        conf_error_set(&note,
                       "%s: loadmodule %.*s does nothing here: filters need no "
                       "module, and this server has no others",
                       source->where, slice_shown(words[0]), words[0].data);
        conf_note(source->notes, note.text);
        return true;
    }
    if (!conf_set(source->conf, conf_find(slice_lit("dialect")),
                  redis ? slice_lit("redis") : slice_lit("valkey"),
                  ret_error)) {
        return false;
    }
    for (size_t i = 1; i + 1 < count; i += 2) {
        const struct conf_row *row = find_argument(words[i], redis);

        if (row != NULL && !conf_set(source->conf, row, words[i + 1], &why)) {
            conf_error_set(ret_error, "%.*s: %.512s", slice_shown(words[i]),
                           words[i].data, why.text);
            return false;
        }
    }
    conf_error_set(&note,
                   "%s: loadmodule %.*s: the filters are built in. This sets "
                   "dialect %s, and the options bf.* that its arguments mean",
                   source->where, slice_shown(words[0]), words[0].data,
                   redis ? "redis" : "valkey");
    conf_note(source->notes, note.text);
    return true;
}

/* ---- rename-command ------------------------------------------------------ */

static bool
rename_command(struct conf_source *source, const struct slice *words,
               size_t count, struct conf_error *ret_error)
{
    const struct conf_row *row = conf_find(slice_lit("disabled-commands"));
    struct buf all = { 0 };
    bool set;

    if (count != 2) {
        conf_error_set(ret_error, "takes a command and its new name");
        return false;
    }
    if (words[1].len > 0) {
        conf_error_set(ret_error,
                       "commands cannot be renamed here. Use \"\" to disable "
                       "%.*s for all users, or aclfile to say who may run it",
                       slice_shown(words[0]), words[0].data);
        return false;
    }
    conf_get(source->conf, row, &all);
    buf_append(&all, " ", all.len > 0);
    buf_append_slice(&all, words[0]);
    if (all.failed) {
        conf_error_no_memory(ret_error);
        set = false;
    } else {
        set = conf_set(source->conf, row, buf_slice(&all), ret_error);
    }
    buf_free(&all);
    return set;
}

/* ---- any option ---------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*apply)(struct conf_source *source, const struct slice *words,
                  size_t count, struct conf_error *ret_error);
} specials[] = {
    { "loadmodule", load_module },
    { "rename-command", rename_command },
};
enum { SPECIALS = sizeof(specials) / sizeof(specials[0]) };

bool
conf_apply_is_foreign(struct slice name)
{
    for (size_t i = 0; i < SPECIALS; i++) {
        if (slice_is_word(name, specials[i].name)) {
            return true;
        }
    }
    return conf_foreign_advice(name) != NULL;
}

static bool
apply_joined(struct conf_source *source, const struct conf_row *row,
             const struct slice *words, size_t count,
             struct conf_error *ret_error)
{
    struct buf all = { 0 };
    bool set;

    join(words, count, &all);
    if (all.failed) {
        conf_error_no_memory(ret_error);
        set = false;
    } else {
        set = conf_apply_row(source, row,
                             all.len > 0 ? buf_slice(&all) : slice_lit(""),
                             ret_error);
    }
    buf_wipe(&all);
    return set;
}

bool
conf_apply_words(struct conf_source *source, struct slice name,
                 const struct slice *words, size_t count,
                 struct conf_error *ret_error)
{
    const struct conf_row *row = conf_find(name);

    if (count == 0 && (row != NULL || conf_apply_is_foreign(name))) {
        conf_error_set(ret_error, "a value is missing");
        return false;
    }
    if (row != NULL && count > 1 && !conf_apply_joins(row)) {
        conf_error_set(ret_error, "takes one value");
        return false;
    }
    if (row != NULL) {
        return apply_joined(source, row, words, count, ret_error);
    }
    for (size_t i = 0; i < SPECIALS; i++) {
        if (slice_is_word(name, specials[i].name)) {
            return specials[i].apply(source, words, count, ret_error);
        }
    }
    if (!conf_apply_is_foreign(name)) {
        conf_error_set(ret_error, "unknown option %.*s", slice_shown(name),
                       name.data);
        return false;
    }
    return conf_foreign_take(name, words[0], source->where, source->notes,
                             ret_error);
}

/* ---- words --------------------------------------------------------------- */

/* Returns the byte of an escape inside quotes, and moves *ret_at behind it. */
static char
unescape(const char *at, const char *end, const char **ret_at)
{
    static const char plain[] = "nrtba", meant[] = "\n\r\t\b\a";
    const char *found;
    int byte =
        end - at >= 3 && at[0] == 'x' ? hex_escaped_byte(at[1], at[2]) : -1;

    if (byte >= 0) {
        *ret_at = at + 3;
        return (char)byte;
    }
    found = memchr(plain, *at, sizeof(plain) - 1);
    *ret_at = at + 1;
    if (found == NULL) {
        return *at;
    }
    return meant[found - plain];
}

/* Appends one word, and moves *at behind it. False: a quote is not closed. */
static bool
take_word(const char **at, const char *end, struct buf *store)
{
    char quote = '\0';
    const char *p = *at;

    while (p < end && (quote != '\0' || (unsigned char)*p > ' ')) {
        char c = *p++;

        if (quote == '\0' && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == quote && quote != '\0') {
            quote = '\0';
        } else {
            if (c == '\\' && p < end &&
                (quote == '"' || (quote == '\'' && *p == '\''))) {
                c = unescape(p, end, &p);
            }
            buf_append(store, &c, 1);
        }
    }
    *at = p;
    return quote == '\0';
}

bool
conf_apply_split(struct slice line, struct buf *store, struct slice *ret_words,
                 size_t max, size_t *ret_count)
{
    const char *at = line.data, *end = line.data + line.len;
    size_t count = 0;

    store->len = 0;
    if (buf_reserve(store, line.len + 1) == NULL) { /* so words do not move */
        return false;
    }
    for (;;) {
        size_t before = store->len;

        while (at < end && (unsigned char)*at <= ' ') {
            at++;
        }
        if (at == end) {
            break;
        }
        if (count == max || !take_word(&at, end, store)) {
            return false;
        }
        ret_words[count++] =
            (struct slice){ store->data + before, store->len - before };
    }
    *ret_count = count;
    return true;
}
