/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A parser and a formatter for each type of option.
 */
#include "conf/conf_value.h"

#include "base/mem.h"
#include "base/num.h"
#include "conf/conf_parts.h"

#include <inttypes.h>

static bool
keep_text(struct slice text, char **ret_text, struct conf_error *ret_error)
{
    char *copy = mem_try_copy_text(text);

    if (copy == NULL) {
        conf_error_no_memory(ret_error);
        return false;
    }
    *ret_text = copy;
    return true;
}

/* Returns whether the row is a name from RedisBloom, with its error texts. */
static bool
is_of_redisbloom(const struct conf_row *row)
{
    return row->alias && strcmp(row->section, "bf") == 0;
}

static bool
invalid_alias(const struct conf_row *row, struct conf_error *ret_error)
{
    conf_error_set(ret_error, "Invalid value for `%s`", row->name);
    return false;
}

static bool
in_range(const struct conf_row *row, int64_t number,
         struct conf_error *ret_error)
{
    if (number >= row->min && number <= row->max) {
        return true;
    }
    if (is_of_redisbloom(row)) {
        conf_error_set(ret_error,
                       "Value for `%s` must be in the range [%" PRId64
                       ", %" PRId64 "]",
                       row->name, row->min, row->max);
        return false;
    }
    conf_error_set(ret_error,
                   row->type == CONF_OCTAL ? "argument must be between %" PRIo64
                                             " and %" PRIo64 " inclusive"
                                           : "argument must be between %" PRId64
                                             " and %" PRId64 " inclusive",
                   row->min, row->max);
    return false;
}

static bool
parse_bool(struct slice text, bool *ret_flag, struct conf_error *ret_error)
{
    bool yes = slice_is_word(text, "yes");

    if (!yes && !slice_is_word(text, "no")) {
        conf_error_set(ret_error, "argument must be 'yes' or 'no'");
        return false;
    }
    *ret_flag = yes;
    return true;
}

static bool
parse_int(const struct conf_row *row, struct slice text, int64_t *ret_number,
          struct conf_error *ret_error)
{
    uint64_t bytes = 0;

    if (slice_to_i64(text, ret_number)) {
        return in_range(row, *ret_number, ret_error);
    }
    if (row->units && num_parse_bytes(text, &bytes) && bytes <= INT64_MAX) {
        *ret_number = (int64_t)bytes;
        return in_range(row, *ret_number, ret_error);
    }
    if (is_of_redisbloom(row)) {
        return invalid_alias(row, ret_error);
    }
    conf_error_set(ret_error, "argument couldn't be parsed into an integer");
    return false;
}

static bool
parse_bytes(const struct conf_row *row, struct slice text, uint64_t *ret_bytes,
            struct conf_error *ret_error)
{
    if (!num_parse_bytes(text, ret_bytes)) {
        conf_error_set(ret_error, "argument must be a memory value");
        return false;
    }
    /* No maximum is above INT64_MAX. A larger number becomes -1, which is below
     * every minimum. */
    return in_range(row, *ret_bytes > INT64_MAX ? -1 : (int64_t)*ret_bytes,
                    ret_error);
}

static bool
parse_share(const struct conf_row *row, struct slice text, int64_t *ret_number,
            struct conf_error *ret_error)
{
    struct slice digits = { text.data, text.len > 0 ? text.len - 1 : 0 };
    uint64_t number = 0;

    if (digits.len == 0 || text.data[digits.len] != '%') {
        if (!parse_bytes(row, text, &number, ret_error)) {
            return false;
        }
        *ret_number = (int64_t)number;
        return true;
    }
    if (!slice_to_u64(digits, &number) || number > 100) {
        conf_error_set(ret_error, "argument must be a memory or percent value");
        return false;
    }
    *ret_number = -(int64_t)number;
    return true;
}

static bool
parse_octal(const struct conf_row *row, struct slice text, unsigned *ret_mode,
            struct conf_error *ret_error)
{
    int64_t number = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '7' || text.len > 12) {
            number = -1;
            break;
        }
        number = number * 8 + (text.data[i] - '0');
    }
    if (text.len == 0 || number < 0) {
        conf_error_set(ret_error,
                       "argument couldn't be parsed as an octal number");
        return false;
    }
    if (!in_range(row, number, ret_error)) {
        return false;
    }
    *ret_mode = (unsigned)number;
    return true;
}

static void
append_choices(const struct conf_row *row, struct buf *ret_text)
{
    for (const struct conf_choice *c = row->choices; c->name != NULL; c++) {
        buf_printf(ret_text, "%s%s", c == row->choices ? "" : ", ", c->name);
    }
}

static bool
parse_enum(const struct conf_row *row, struct slice text, int *ret_choice,
           struct conf_error *ret_error)
{
    struct buf names = { 0 };

    for (const struct conf_choice *c = row->choices; c->name != NULL; c++) {
        if (slice_is_word(text, c->name)) {
            *ret_choice = c->value;
            return true;
        }
    }
    append_choices(row, &names);
    conf_error_set(ret_error, "argument(s) must be one of the following: %.*s",
                   (int)names.len, names.data);
    buf_free(&names);
    return false;
}

/* Accepts one name in a directory, but not "." and "..". */
static bool
check_base_name(const struct conf_row *row, struct slice text,
                struct conf_error *ret_error)
{
    if (text.len == 0) {
        conf_error_set(ret_error, "%s can't be empty", row->name);
        return false;
    }
    if (memchr(text.data, '/', text.len) != NULL ||
        slice_equal(text, slice_lit(".")) ||
        slice_equal(text, slice_lit(".."))) {
        conf_error_set(ret_error, "%s can't be a path, just a %s", row->name,
                       row->base_name);
        return false;
    }
    return true;
}

static bool
parse_string(const struct conf_row *row, struct slice text, char **ret_text,
             struct conf_error *ret_error)
{
    if (text.len > (size_t)row->max) {
        conf_error_set(ret_error,
                       "argument must be at most %" PRId64 " bytes long",
                       row->max);
        return false;
    }
    if (row->base_name != NULL && !check_base_name(row, text, ret_error)) {
        return false;
    }
    if (text.len < (size_t)row->min) {
        conf_error_set(ret_error, "%s can't be empty", row->name);
        return false;
    }
    return keep_text(text, ret_text, ret_error);
}

static bool
check_host_port(const struct conf_row *row, struct slice text,
                struct conf_error *ret_error)
{
    struct slice host, port, more;
    uint64_t number;

    if (!row->host_port || !slice_next_word(&text, &host) ||
        (slice_next_word(&text, &port) && slice_to_u64(port, &number) &&
         number >= 1 && number <= 65535 && !slice_next_word(&text, &more))) {
        return true;
    }
    conf_error_set(ret_error, "argument must be a host and a port");
    return false;
}

static void
too_many_words(const struct conf_row *row, struct conf_error *ret_error)
{
    if (row->bad_range != NULL) {
        conf_error_set(ret_error, "%s", row->bad_range);
    } else {
        conf_error_set(ret_error, "argument must be at most %" PRId64 " words",
                       row->max);
    }
}

/* Joins the words with single blanks, so that equal lists are equal texts. */
static bool
parse_strings(const struct conf_row *row, struct slice text, char **ret_text,
              struct conf_error *ret_error)
{
    char joined[CONF_LIST_MAX];
    size_t len = 0;
    int64_t words = 0;
    struct slice word;

    if (row->host_port && slice_is_word(text, "no one")) {
        text = slice_lit(""); /* as in redis.conf */
    }
    if (!check_host_port(row, text, ret_error)) {
        return false;
    }
    while (slice_next_word(&text, &word)) {
        if (++words > row->max) {
            too_many_words(row, ret_error);
            return false;
        }
        if (len > 0) {
            joined[len++] = ' ';
        }
        memcpy(joined + len, word.data, word.len);
        len += word.len;
    }
    return keep_text((struct slice){ joined, len }, ret_text, ret_error);
}

/* RedisBloom stores rates above 0.25 as 0.25. An alias shares the field of
 * another row, which shows the text and writes it to files. So the text is kept
 * only if that row reads the same number from it: a hexadecimal text is not. */
static bool
parse_alias_rate(const struct conf_row *row, struct slice text,
                 struct conf_rate *ret_rate, struct conf_error *ret_error)
{
    char decimal[NUM_DOUBLE_MAX];
    double value = 0;
    double other = 0;

    if (!num_parse_strtod(text, &value)) {
        return invalid_alias(row, ret_error);
    }
    if (!(value > 0 && value < 1)) {
        conf_error_set(ret_error, "%s", row->bad_range);
        return false;
    }
    if (value > 0.25) {
        value = 0.25;
    }
    if (!num_parse_double(text, &other) || other != value) {
        text = (struct slice){ decimal, num_format_double(value, decimal) };
    }
    ret_rate->value = value;
    return keep_text(text, &ret_rate->text, ret_error);
}

static bool
parse_rate(const struct conf_row *row, struct slice text,
           struct conf_rate *ret_rate, struct conf_error *ret_error)
{
    double value = 0;

    if (is_of_redisbloom(row)) {
        return parse_alias_rate(row, text, ret_rate, ret_error);
    }
    if (!num_parse_double(text, &value)) {
        conf_error_set(ret_error, "Invalid floating-point value");
        return false;
    }
    if (!(value > 0 && value < 1)) { /* also refuses NaN */
        conf_error_set(ret_error, "%s", row->bad_range);
        return false;
    }
    ret_rate->value = value;
    return keep_text(text, &ret_rate->text, ret_error);
}

static bool
parse_by_type(const struct conf_row *row, struct slice text,
              union conf_value *ret_value, struct conf_error *ret_error)
{
    switch (row->type) {
    case CONF_BOOL:
        return parse_bool(text, &ret_value->flag, ret_error);
    case CONF_INT:
        return parse_int(row, text, &ret_value->number, ret_error);
    case CONF_BYTES:
        return parse_bytes(row, text, &ret_value->bytes, ret_error);
    case CONF_SHARE:
        return parse_share(row, text, &ret_value->number, ret_error);
    case CONF_OCTAL:
        return parse_octal(row, text, &ret_value->mode, ret_error);
    case CONF_ENUM:
        return parse_enum(row, text, &ret_value->choice, ret_error);
    case CONF_STRING:
    case CONF_SECRET:
        return parse_string(row, text, &ret_value->text, ret_error);
    case CONF_STRINGS:
        return parse_strings(row, text, &ret_value->text, ret_error);
    case CONF_RATE:
        return parse_rate(row, text, &ret_value->rate, ret_error);
    case CONF_OUTPUT_LIMIT:
        return conf_parts_parse_limits(text, &ret_value->limits, ret_error);
    case CONF_SAVE:
        return conf_parts_parse_save(text, &ret_value->save, ret_error);
    case CONF_EVENTS:
        return conf_parts_parse_events(text, &ret_value->events, ret_error);
    case CONF_PERCENTILES:
        return conf_parts_parse_percentiles(row, text, &ret_value->percentiles,
                                            ret_error);
    }
    CHECK(false); /* no such type */
    return false;
}

bool
conf_value_parse(const struct conf_row *row, struct slice text,
                 union conf_value *ret_value, struct conf_error *ret_error)
{
    size_t limit = row->type == CONF_STRINGS ? CONF_LIST_MAX : CONF_VALUE_MAX;
    union conf_value value;

    memset(&value, 0, sizeof(value));
    if (text.len == 0) {
        text = slice_lit(""); /* an empty slice may point nowhere */
    }
    if (text.len >= limit) {
        conf_error_set(ret_error, "argument must be shorter than %zu bytes",
                       limit);
        return false;
    }
    if (memchr(text.data, '\0', text.len) != NULL) {
        conf_error_set(ret_error, "argument must not contain a zero byte");
        return false;
    }
    if (!parse_by_type(row, text, &value, ret_error)) {
        return false;
    }
    if (row->only != NULL) {
        struct buf shown = { 0 };
        bool same;

        conf_value_format(row, &value, &shown);
        same = slice_equal(buf_slice(&shown), slice_of(row->preset));
        buf_free(&shown);
        if (!same) {
            conf_value_free(row, &value);
            conf_error_set(ret_error, "%s", row->only);
            return false;
        }
    }
    *ret_value = value;
    return true;
}

static char *
owned_text(const struct conf_row *row, const union conf_value *value)
{
    switch (row->type) {
    case CONF_STRING:
    case CONF_STRINGS:
    case CONF_SECRET:
        return value->text;
    case CONF_RATE:
        return value->rate.text;
    case CONF_BOOL:
    case CONF_INT:
    case CONF_BYTES:
    case CONF_SHARE:
    case CONF_OCTAL:
    case CONF_ENUM:
    case CONF_OUTPUT_LIMIT:
    case CONF_SAVE:
    case CONF_EVENTS:
    case CONF_PERCENTILES:
        break;
    }
    return NULL;
}

void
conf_value_free(const struct conf_row *row, union conf_value *value)
{
    char *text = owned_text(row, value);

    if (text != NULL && row->type == CONF_SECRET) {
        explicit_bzero(text, strlen(text));
    }
    mem_free(text);
    memset(value, 0, sizeof(*value));
}

static const char *
choice_name(const struct conf_row *row, int choice)
{
    const struct conf_choice *c = row->choices;

    while (c->name != NULL && c->value != choice) {
        c++;
    }
    CHECK(c->name != NULL);
    return c->name;
}

void
conf_value_format(const struct conf_row *row, const union conf_value *value,
                  struct buf *ret_text)
{
    switch (row->type) {
    case CONF_BOOL:
        buf_append_slice(ret_text, slice_of(value->flag ? "yes" : "no"));
        break;
    case CONF_INT:
        buf_printf(ret_text, "%" PRId64, value->number);
        break;
    case CONF_BYTES:
        buf_printf(ret_text, "%" PRIu64, value->bytes);
        break;
    case CONF_SHARE:
        if (value->number < 0) {
            buf_printf(ret_text, "%" PRId64 "%%", -value->number);
        } else {
            buf_printf(ret_text, "%" PRId64, value->number);
        }
        break;
    case CONF_OCTAL:
        buf_printf(ret_text, "%o", value->mode);
        break;
    case CONF_ENUM:
        buf_append_slice(ret_text, slice_of(choice_name(row, value->choice)));
        break;
    case CONF_STRING:
    case CONF_STRINGS:
    case CONF_SECRET:
    case CONF_RATE:
        buf_append_slice(ret_text, slice_of(owned_text(row, value)));
        break;
    case CONF_OUTPUT_LIMIT:
        conf_parts_format_limits(&value->limits, ret_text);
        break;
    case CONF_SAVE:
        conf_parts_format_save(&value->save, ret_text);
        break;
    case CONF_EVENTS:
        conf_parts_format_events(value->events, ret_text);
        break;
    case CONF_PERCENTILES:
        conf_parts_format_percentiles(&value->percentiles, ret_text);
        break;
    }
}

void
conf_value_complete(const struct conf_row *row, union conf_value *value,
                    const union conf_value *before)
{
    struct conf_output_limits *limits = &value->limits;

    if (row->type != CONF_OUTPUT_LIMIT) {
        return;
    }
    for (unsigned i = 0; i < CONF_OUTPUT_CLASSES; i++) {
        if ((limits->given >> i & 1) == 0) {
            limits->of[i] = before->limits.of[i];
        }
    }
    limits->given |= before->limits.given;
}

bool
conf_value_equal(const struct conf_row *row, const union conf_value *a,
                 const union conf_value *b)
{
    const char *text = owned_text(row, a);

    if (text != NULL) {
        return strcmp(text, owned_text(row, b)) == 0;
    }
    return memcmp(a, b, row->size) == 0;
}

/* Appends 1048576 as 1mb, if that is exact. */
static void
append_size(struct buf *ret_text, int64_t bytes)
{
    static const char *const units[] = { "", "kb", "mb", "gb", "tb" };
    size_t unit = 0;

    while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    buf_printf(ret_text, "%" PRId64 "%s", bytes, units[unit]);
}

void
conf_value_describe(const struct conf_row *row, struct buf *ret_text)
{
    switch (row->type) {
    case CONF_BOOL:
        buf_append_slice(ret_text, slice_lit("yes or no"));
        break;
    case CONF_INT:
        buf_printf(ret_text, "%" PRId64 " to %" PRId64 "%s", row->min, row->max,
                   row->units ? ", or with a unit (kb, mb, gb)" : "");
        break;
    case CONF_BYTES:
        append_size(ret_text, row->min);
        buf_append_slice(ret_text, slice_lit(" to "));
        append_size(ret_text, row->max);
        buf_append_slice(ret_text, slice_lit(", bytes or with a unit"));
        break;
    case CONF_SHARE:
        append_size(ret_text, row->min);
        buf_append_slice(ret_text, slice_lit(" to "));
        append_size(ret_text, row->max);
        buf_append_slice(ret_text,
                         slice_lit(", bytes or with a unit, or 0% to 100%"));
        break;
    case CONF_OCTAL:
        buf_printf(ret_text, "octal, %" PRIo64 " to %" PRIo64, row->min,
                   row->max);
        break;
    case CONF_ENUM:
        buf_append_slice(ret_text, slice_lit("one of "));
        append_choices(row, ret_text);
        break;
    case CONF_STRING:
    case CONF_SECRET:
        buf_printf(ret_text, "%s of at most %" PRId64 " bytes",
                   row->base_name != NULL ? "a name without a slash" : "text",
                   row->max);
        break;
    case CONF_STRINGS:
        if (row->host_port) {
            buf_append_slice(ret_text, slice_lit("a host and a port"));
        } else {
            buf_printf(ret_text, "at most %" PRId64 " words", row->max);
        }
        break;
    case CONF_RATE:
        buf_append_slice(ret_text, slice_lit("above 0 and below 1"));
        break;
    case CONF_OUTPUT_LIMIT:
        buf_append_slice(ret_text,
                         slice_lit("normal, replica or pubsub, hard limit, "
                                   "soft limit, seconds; the same for others"));
        break;
    case CONF_SAVE:
        buf_printf(ret_text,
                   "at most %d pairs of seconds (1 to %d) and changes (0 to "
                   "%d)",
                   CONF_SAVE_RULES_MAX, INT32_MAX, INT32_MAX);
        break;
    case CONF_EVENTS:
        buf_append_slice(ret_text, slice_lit("letters of KEAg$lshzxetdmn"));
        break;
    case CONF_PERCENTILES:
        buf_printf(ret_text, "at most %d numbers from 0 to 100",
                   CONF_PERCENTILES_MAX);
        break;
    }
}
