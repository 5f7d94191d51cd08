/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This table is searched only for a name that no option of the server has.
 */
#include "conf/conf_foreign.h"

#include "conf/conf.h"

#include <strings.h>

static const struct foreign {
    const char *name;
    const char *harmless; /* values that need no warning, between bars;
                             NULL: none */
    bool fatal;           /* other values are refused; false: they give a
                             warning */
    const char *advice;
} options[] = {
#define REDIS_OPTION(nam, adv)      { nam, NULL, false, adv },
#define REDIS_WARNS(nam, harm, adv) { nam, harm, false, adv },
#define REDIS_FAILS(nam, harm, adv) { nam, harm, true, adv },
#include "tbl/redis_options.def"
#undef REDIS_OPTION
#undef REDIS_WARNS
#undef REDIS_FAILS
};

/* Lines of redis.conf that are no options here, but show that a file is one of
 * Redis. */
static const char *const refused[] = { "user", "loadmodule", "rename-command",
                                       "include" };

static bool
fits(struct slice name, const char *pattern)
{
    size_t len = strlen(pattern);

    if (pattern[len - 1] != '*') {
        return slice_is_word(name, pattern);
    }
    return name.len >= len - 1 && strncasecmp(name.data, pattern, len - 1) == 0;
}

static const struct foreign *
find_foreign(struct slice name)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (fits(name, options[i].name)) {
            return &options[i];
        }
    }
    return NULL;
}

const char *
conf_foreign_advice(struct slice name)
{
    const struct foreign *option = find_foreign(name);

    return option != NULL ? option->advice : NULL;
}

/* "no|default" has the words no and default, and "" only an empty one. */
static bool
is_among(struct slice value, const char *words)
{
    for (;;) {
        size_t len = strcspn(words, "|");

        if (value.len == len && strncasecmp(value.data, words, len) == 0) {
            return true;
        }
        if (words[len] == '\0') {
            return false;
        }
        words += len + 1;
    }
}

bool
conf_foreign_take(struct slice name, struct slice value, const char *where,
                  struct conf_notes *notes, struct conf_error *ret_error)
{
    const struct foreign *option = find_foreign(name);
    struct conf_error text;

    CHECK(option != NULL);
    if (option->harmless != NULL && is_among(value, option->harmless)) {
        return true; /* the server does this anyway */
    }
    if (option->fatal) {
        conf_error_set(ret_error, "this server cannot do that: %s",
                       option->advice);
        return false;
    }
    conf_error_set(&text, "%s: %.*s does nothing here: %s", where,
                   slice_shown(name), name.data, option->advice);
    conf_note(notes, text.text);
    return true;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool
is_known(struct slice name)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (slice_is_word(name, refused[i])) {
            return true;
        }
    }
    return conf_find(name) != NULL || conf_foreign_advice(name) != NULL;
}

bool
conf_foreign_explains(const char *where, struct slice line, bool brief,
                      struct conf_error *ret_error)
{
    const struct conf_row *row;
    struct slice value = line;
    struct slice name;

    if (!slice_next_word(&value, &name) || !is_known(name) || value.len == 0 ||
        !is_blank(value.data[0])) {
        return false;
    }
    while (value.len > 0 && (unsigned char)value.data[0] <= ' ') {
        value.data++;
        value.len--;
    }
    while (value.len > 0 && (unsigned char)value.data[value.len - 1] <= ' ') {
        value.len--;
    }
    if (value.len == 0 || value.data[0] == '=' || value.data[0] == ':') {
        return false;
    }
    row = conf_find(name);
    if (brief) {
        conf_error_set(ret_error, "%s: %.*s: in the syntax of redis.conf, too",
                       where, slice_shown(name), name.data);
        return true;
    }
    if (row == NULL) {
        conf_error_set(ret_error,
                       "%s: this file is in the syntax of redis.conf. A file "
                       "for this server has [sections] and name = value "
                       "lines: bloomery-server --convert FILE makes one of it",
                       where);
        return true;
    }
    if (row->type == CONF_SECRET) {
        value = slice_lit("...");
    }
    conf_error_set(
        ret_error,
        "%s: this file is in the syntax of redis.conf. A file for this server "
        "has [sections] and name = value lines: here %s = %.*s below [%s], or "
        "--%s on the command line. bloomery-server --convert FILE makes one of "
        "it",
        where, conf_key(row), value.len < 64 ? (int)value.len : 64, value.data,
        row->section, row->name);
    return true;
}
