/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The expansion of tbl/options.def, and CONFIG GET and SET. All values are
 * parsed before the first is set, so that nothing has to be undone.
 */
#include "conf/conf.h"

#include "conf/conf_value.h"

#include <stddef.h>

/* Valkey's names for our levels; verbose is info. */
static const struct conf_choice loglevels[] = {
    { "debug", LOG_DEBUG },          { "verbose", LOG_INFO },
    { "notice", LOG_NOTICE },        { "warning", LOG_WARN },
    { "nothing", CONF_LOG_NOTHING }, { NULL, 0 },
};

static const struct conf_choice log_formats[] = {
    { "logfmt", LOG_LOGFMT },
    { "json", LOG_JSON },
    { "legacy", LOG_LOGFMT }, /* Valkey's default */
    { NULL, 0 },
};

static const struct conf_choice dialects[] = {
    { "valkey", CONF_DIALECT_VALKEY },
    { "redis", CONF_DIALECT_REDIS },
    { NULL, 0 },
};
static const struct conf_choice layouts[] = {
    { "native", CONF_LAYOUT_NATIVE },
    { "redisbloom", CONF_LAYOUT_REDISBLOOM },
    { "valkeybloom", CONF_LAYOUT_VALKEYBLOOM },
    { NULL, 0 },
};

static const struct conf_choice hashes[] = {
    { "plain", CONF_HASH_PLAIN },
    { "keyed", CONF_HASH_KEYED },
    { NULL, 0 },
};

static const struct conf_choice sidecar_modes[] = {
    { "available", CONF_SIDECAR_MODE_AVAILABLE },
    { "safe", CONF_SIDECAR_MODE_SAFE },
    { NULL, 0 }
};

static const struct conf_choice missing_slots[] = {
    { "fail", CONF_MISSING_SLOT_FAIL },
    { "empty", CONF_MISSING_SLOT_EMPTY },
    { NULL, 0 }
};

static const struct conf_choice missing_keys[] = {
    { "zero", CONF_MISSING_ZERO },
    { "error", CONF_MISSING_ERROR },
    { NULL, 0 },
};

static const struct conf_choice debug_commands[] = {
    { "no", CONF_DEBUG_COMMAND_NO },
    { "yes", CONF_DEBUG_COMMAND_YES },
    { "local", CONF_DEBUG_COMMAND_LOCAL },
    { NULL, 0 },
};

static const struct conf_choice tls_auths[] = {
    { "no", CONF_TLS_AUTH_NO },
    { "yes", CONF_TLS_AUTH_YES },
    { "optional", CONF_TLS_AUTH_OPTIONAL },
    { NULL, 0 },
};

static const struct conf_choice policies[] = {
    { "volatile-lru", CONF_POLICY_VOLATILE | CONF_POLICY_LRU },
    { "volatile-lfu", CONF_POLICY_VOLATILE | CONF_POLICY_LFU },
    { "volatile-random", CONF_POLICY_VOLATILE | CONF_POLICY_RANDOM },
    { "volatile-ttl", CONF_POLICY_VOLATILE | CONF_POLICY_TTL },
    { "allkeys-lru", CONF_POLICY_ALLKEYS | CONF_POLICY_LRU },
    { "allkeys-lfu", CONF_POLICY_ALLKEYS | CONF_POLICY_LFU },
    { "allkeys-random", CONF_POLICY_ALLKEYS | CONF_POLICY_RANDOM },
    { "noeviction", CONF_POLICY_NOEVICTION },
    { NULL, 0 },
};

static const struct conf_choice fsyncs[] = {
    { "everysec", CONF_APPENDFSYNC_EVERYSEC },
    { "always", CONF_APPENDFSYNC_ALWAYS },
    { "no", CONF_APPENDFSYNC_NO },
    { NULL, 0 },
};

static const struct conf_choice buffers_full[] = {
    { "wait", CONF_BUFFER_FULL_WAIT },
    { "fail", CONF_BUFFER_FULL_FAIL },
    { NULL, 0 },
};

const struct conf_row conf_table[CONF_OPTION_COUNT] = {
#define OPT(id, typ, sec, nam, ...)                                            \
    [CONF_OPTION_##id] = { .name = (nam),                                      \
                           .section = (sec),                                   \
                           .type = CONF_##typ,                                 \
                           .offset = offsetof(struct conf, id),                \
                           .size = sizeof(CONF_FIELD_##typ),                   \
                           __VA_ARGS__ },
#define ALIAS(id, of, typ, sec, nam, ...)                                      \
    [CONF_OPTION_##id] = { .name = (nam),                                      \
                           .section = (sec),                                   \
                           .type = CONF_##typ,                                 \
                           .offset = offsetof(struct conf, of),                \
                           .size = sizeof(CONF_FIELD_##typ),                   \
                           .alias = true,                                      \
                           __VA_ARGS__ },
#include "tbl/options.def"
#undef ALIAS
#undef OPT
};

/* Returns the value of one field, which conf still owns. */
static union conf_value
peek_value(const struct conf *conf, const struct conf_row *row)
{
    union conf_value value;

    memset(&value, 0, sizeof(value));
    memcpy(&value, (const char *)conf + row->offset, row->size);
    return value;
}

/* Moves a value into its field; the old one is overwritten, not freed. */
static void
put_value(struct conf *conf, const struct conf_row *row,
          const union conf_value *value)
{
    memcpy((char *)conf + row->offset, value, row->size);
}

static void
replace_value(struct conf *conf, const struct conf_row *row,
              union conf_value *value)
{
    union conf_value old = peek_value(conf, row);

    conf_value_complete(row, value, &old);
    put_value(conf, row, value);
    conf_value_free(row, &old);
}

bool
conf_try_init(struct conf *conf, struct conf_error *ret_error)
{
    memset(conf, 0, sizeof(*conf));
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        union conf_value value;

        if (!conf_value_parse(row, slice_of(row->preset), &value, ret_error)) {
            /* A default outside its own range is our bug. */
            CHECK(ret_error->no_memory);
            conf_fini(conf);
            return false;
        }
        if (row->alias) {
            conf_value_free(row, &value); /* the other row sets the field */
        } else {
            put_value(conf, row, &value);
        }
    }
    return true;
}

void
conf_init(struct conf *conf)
{
    struct conf_error error;

    CHECK(conf_try_init(conf, &error));
}

void
conf_fini(struct conf *conf)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        union conf_value value = peek_value(conf, &conf_table[i]);

        if (!conf_table[i].alias) {
            conf_value_free(&conf_table[i], &value);
        }
    }
    memset(conf, 0, sizeof(*conf));
}

const struct conf_row *
conf_find(struct slice name)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        if (slice_is_word(name, conf_table[i].name)) {
            return &conf_table[i];
        }
    }
    return NULL;
}

const struct conf_row *
conf_file_row(const struct conf_row *row)
{
    return &conf_table[row->file];
}

const char *
conf_file_of(const struct conf *conf, const struct conf_row *row)
{
    const char *path =
        row->file > 0 ? peek_value(conf, conf_file_row(row)).text : "";

    return path[0] != '\0' ? path : NULL;
}

const char *
conf_key(const struct conf_row *row)
{
    size_t len = strlen(row->section);

    if (strncmp(row->name, row->section, len) == 0 && row->name[len] == '.') {
        return row->name + len + 1;
    }
    return row->name;
}

bool
conf_set(struct conf *conf, const struct conf_row *row, struct slice value,
         struct conf_error *ret_error)
{
    union conf_value parsed;

    if (!conf_value_parse(row, value, &parsed, ret_error)) {
        return false;
    }
    replace_value(conf, row, &parsed);
    return true;
}

void
conf_get(const struct conf *conf, const struct conf_row *row,
         struct buf *ret_text)
{
    union conf_value value = peek_value(conf, row);

    if (row->type == CONF_SECRET) {
        buf_append_slice(ret_text,
                         slice_of(value.text[0] != '\0' ? "********" : ""));
        return;
    }
    conf_value_format(row, &value, ret_text);
}

void
conf_show(const struct conf *conf, const struct conf_row *row,
          struct buf *ret_text)
{
    union conf_value value = peek_value(conf, row);

    conf_value_format(row, &value, ret_text);
}

bool
conf_same(const struct conf *a, const struct conf *b,
          const struct conf_row *row)
{
    union conf_value value_a = peek_value(a, row);
    union conf_value value_b = peek_value(b, row);

    return conf_value_equal(row, &value_a, &value_b);
}

bool
conf_has_text(const struct conf *conf, const struct conf_row *row)
{
    return peek_value(conf, row).text[0] != '\0';
}

bool
conf_copy(const struct conf *conf, struct conf *ret_copy,
          struct conf_error *ret_error)
{
    struct conf copy;
    bool copied = true;

    memset(&copy, 0, sizeof(copy));
    for (size_t i = 0; i < CONF_OPTION_COUNT && copied; i++) {
        const struct conf_row *row = &conf_table[i];
        struct buf text = { 0 };
        union conf_value value;

        if (row->alias) {
            continue;
        }
        conf_show(conf, row, &text);
        copied = !text.failed;
        if (!copied) {
            conf_error_no_memory(ret_error);
        } else if (conf_value_parse(row, buf_slice(&text), &value, ret_error)) {
            put_value(&copy, row, &value);
        } else {
            CHECK(ret_error->no_memory); /* a value in force can be set */
            copied = false;
        }
        buf_wipe(&text);
    }
    if (copied) {
        *ret_copy = copy;
    } else {
        conf_fini(&copy);
    }
    return copied;
}

static void
set_failed(struct conf_error *ret_error, struct slice name, const char *why)
{
    conf_error_set(ret_error,
                   "CONFIG SET failed (possibly related to argument '%.*s') - "
                   "%s",
                   slice_shown(name), name.data, why);
}

/* Returns whether an option with the same field was seen before. */
static bool
is_seen(const struct conf_row *row, const bool seen[])
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        if (seen[i] && conf_table[i].offset == row->offset) {
            return true;
        }
    }
    return false;
}

/* Checks the names before any value is parsed, which is the order of Redis's
 * errors. */
static bool
check_names(const struct conf *conf, const struct slice *pairs, size_t count,
            bool seen[], struct conf_error *ret_error)
{
    for (size_t i = 0; i < count; i++) {
        struct slice name = pairs[2 * i];
        const struct conf_row *row = conf_find(name);

        if (row == NULL) {
            conf_error_set(ret_error,
                           "Unknown option or number of arguments for CONFIG "
                           "SET - '%.*s'",
                           slice_shown(name), name.data);
            return false;
        }
        if (row->when != CONF_RUNTIME) {
            set_failed(ret_error, name, "can't set immutable config");
            return false;
        }
        if (conf_file_of(conf, row) != NULL) {
            set_failed(ret_error, name,
                       "its value comes from a file: change the file and send "
                       "SIGHUP");
            return false;
        }
        if (is_seen(row, seen)) {
            set_failed(ret_error, name, "duplicate parameter");
            return false;
        }
        seen[row - conf_table] = true;
    }
    return true;
}

/* Parses values[option] for every pair; on failure all are freed. */
static bool
parse_pairs(const struct slice *pairs, size_t count, union conf_value values[],
            struct conf_error *ret_error)
{
    for (size_t i = 0; i < count; i++) {
        const struct conf_row *row = conf_find(pairs[2 * i]);
        struct conf_error why;

        if (conf_value_parse(row, pairs[2 * i + 1], &values[row - conf_table],
                             &why)) {
            continue;
        }
        set_failed(ret_error, slice_of(row->name), why.text);
        ret_error->no_memory = why.no_memory;
        while (i-- > 0) {
            row = conf_find(pairs[2 * i]);
            conf_value_free(row, &values[row - conf_table]);
        }
        return false;
    }
    return true;
}

bool
conf_set_many(struct conf *conf, const struct slice *pairs, size_t count,
              struct conf_changes *ret_changes, struct conf_error *ret_error)
{
    bool seen[CONF_OPTION_COUNT] = { false };
    union conf_value values[CONF_OPTION_COUNT];

    if (!check_names(conf, pairs, count, seen, ret_error) ||
        !parse_pairs(pairs, count, values, ret_error)) {
        return false;
    }
    memset(ret_changes, 0, sizeof(*ret_changes));
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];

        if (seen[i]) {
            union conf_value old = peek_value(conf, row);

            conf_value_complete(row, &values[i], &old);
            ret_changes->changed[i] = !conf_value_equal(row, &old, &values[i]);
            replace_value(conf, row, &values[i]);
        }
    }
    return true;
}

void
conf_take(struct conf *conf, struct conf *fresh,
          struct conf_changes *ret_changes)
{
    memset(ret_changes, 0, sizeof(*ret_changes));
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        union conf_value old = peek_value(conf, row);
        union conf_value new = peek_value(fresh, row);

        if (row->alias || conf_value_equal(row, &old, &new)) {
            continue;
        }
        if (row->when == CONF_START) {
            ret_changes->needs_restart[i] = true;
            continue;
        }
        put_value(conf, row, &new);
        put_value(fresh, row, &old);
        ret_changes->changed[i] = true;
    }
}
