/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The values are lists of words, separated by blanks, or of letters.
 */
#include "conf/conf_parts.h"

#include "base/num.h"

#include <inttypes.h>

/* Redis's names, in its order. */
static const char *const output_classes[CONF_OUTPUT_CLASSES] = {
    [CONF_OUTPUT_NORMAL] = "normal",
    [CONF_OUTPUT_REPLICA] = "slave",
    [CONF_OUTPUT_PUBSUB] = "pubsub",
};

static bool
parse_limit_class(struct slice name, unsigned *ret_class,
                  struct conf_error *ret_error)
{
    if (slice_is_word(name, "replica")) {
        *ret_class = CONF_OUTPUT_REPLICA;
        return true;
    }
    for (unsigned i = 0; i < CONF_OUTPUT_CLASSES; i++) {
        if (slice_is_word(name, output_classes[i])) {
            *ret_class = i;
            return true;
        }
    }
    conf_error_set(
        ret_error,
        "Invalid client class specified in buffer limit configuration.");
    return false;
}

static bool
parse_limit(const struct slice word[3], struct conf_output_limit *ret_limit,
            struct conf_error *ret_error)
{
    if (!num_parse_bytes(word[0], &ret_limit->hard_bytes) ||
        !num_parse_bytes(word[1], &ret_limit->soft_bytes) ||
        !slice_to_u64(word[2], &ret_limit->soft_seconds) ||
        ret_limit->soft_seconds > INT32_MAX) {
        conf_error_set(ret_error, "Error in hard, soft or soft_seconds "
                                  "setting in buffer limit configuration.");
        return false;
    }
    return true;
}

bool
conf_parts_parse_limits(struct slice text,
                        struct conf_output_limits *ret_limits,
                        struct conf_error *ret_error)
{
    struct conf_output_limits limits;
    struct slice word[4];
    size_t words = 0;

    memset(&limits, 0, sizeof(limits));
    while (slice_next_word(&text, &word[words % 4])) {
        unsigned class = 0;

        if (++words % 4 != 0) {
            continue;
        }
        if (!parse_limit_class(word[0], &class, ret_error) ||
            !parse_limit(word + 1, &limits.of[class], ret_error)) {
            return false;
        }
        limits.given |= (uint64_t)1 << class;
    }
    if (words == 0 || words % 4 != 0) {
        conf_error_set(
            ret_error,
            "Wrong number of arguments in buffer limit configuration.");
        return false;
    }
    *ret_limits = limits;
    return true;
}

/* The new rules replace all old ones. */
bool
conf_parts_parse_save(struct slice text, struct conf_save *ret_save,
                      struct conf_error *ret_error)
{
    struct conf_save save;
    struct slice seconds, changes;

    memset(&save, 0, sizeof(save));
    while (slice_next_word(&text, &seconds)) {
        struct conf_save_rule *rule = &save.rules[save.count];

        if (save.count == CONF_SAVE_RULES_MAX) {
            conf_error_set(ret_error, "at most %d pairs of save parameters",
                           CONF_SAVE_RULES_MAX);
            return false;
        }
        if (!slice_next_word(&text, &changes) ||
            !slice_to_u64(seconds, &rule->seconds) || rule->seconds < 1 ||
            !slice_to_u64(changes, &rule->changes) ||
            rule->seconds > INT32_MAX || rule->changes > INT32_MAX) {
            conf_error_set(ret_error, "Invalid save parameters");
            return false;
        }
        save.count++;
    }
    *ret_save = save;
    return true;
}

/* In Redis's order. */
static const struct {
    char letter;
    uint32_t event;
} event_letters[] = {
    { 'g', CONF_EVENT_GENERIC },  { '$', CONF_EVENT_STRING },
    { 'l', CONF_EVENT_LIST },     { 's', CONF_EVENT_SET },
    { 'h', CONF_EVENT_HASH },     { 'z', CONF_EVENT_ZSET },
    { 'x', CONF_EVENT_EXPIRED },  { 'e', CONF_EVENT_EVICTED },
    { 't', CONF_EVENT_STREAM },   { 'd', CONF_EVENT_MODULE },
    { 'n', CONF_EVENT_NEW },      { 'K', CONF_EVENT_KEYSPACE },
    { 'E', CONF_EVENT_KEYEVENT }, { 'm', CONF_EVENT_KEY_MISS },
};

enum {
    EVENT_LETTERS = sizeof(event_letters) / sizeof(event_letters[0]),
    EVENTS_ALL = CONF_EVENT_GENERIC | CONF_EVENT_STRING | CONF_EVENT_LIST |
                 CONF_EVENT_SET | CONF_EVENT_HASH | CONF_EVENT_ZSET |
                 CONF_EVENT_EXPIRED | CONF_EVENT_EVICTED | CONF_EVENT_STREAM |
                 CONF_EVENT_MODULE
};

bool
conf_parts_parse_events(struct slice text, uint32_t *ret_events,
                        struct conf_error *ret_error)
{
    uint32_t events = 0;

    for (size_t i = 0; i < text.len; i++) {
        uint32_t event = text.data[i] == 'A' ? EVENTS_ALL : 0;

        for (size_t k = 0; k < EVENT_LETTERS && event == 0; k++) {
            if (event_letters[k].letter == text.data[i]) {
                event = event_letters[k].event;
            }
        }
        if (event == 0) {
            conf_error_set(ret_error, "Invalid event class character. "
                                      "Use 'Ag$lshzxeKEtmdn'.");
            return false;
        }
        events |= event;
    }
    *ret_events = events;
    return true;
}

void
conf_parts_format_events(uint32_t events, struct buf *ret_text)
{
    uint32_t left = events;

    if ((events & EVENTS_ALL) == EVENTS_ALL) {
        buf_append(ret_text, "A", 1);
        left &= ~(uint32_t)EVENTS_ALL;
    }
    for (size_t i = 0; i < EVENT_LETTERS; i++) {
        if ((left & event_letters[i].event) != 0) {
            buf_append(ret_text, &event_letters[i].letter, 1);
        }
    }
}

bool
conf_parts_parse_percentiles(const struct conf_row *row, struct slice text,
                             struct conf_percentiles *ret_percentiles,
                             struct conf_error *ret_error)
{
    struct conf_percentiles found;
    struct slice word;

    memset(&found, 0, sizeof(found));
    while (slice_next_word(&text, &word)) {
        double value = 0;

        if (found.count == CONF_PERCENTILES_MAX) {
            conf_error_set(ret_error, "at most %d percentiles",
                           CONF_PERCENTILES_MAX);
            return false;
        }
        if (!num_parse_double(word, &value)) {
            conf_error_set(ret_error, "Invalid %s parameters", row->name);
            return false;
        }
        if (!(value >= 0 && value <= 100)) { /* also refuses NaN */
            conf_error_set(ret_error,
                           "%s parameters should sit between [0.0,100.0]",
                           row->name);
            return false;
        }
        found.value[found.count++] = value;
    }
    *ret_percentiles = found;
    return true;
}

void
conf_parts_format_percentiles(const struct conf_percentiles *percentiles,
                              struct buf *ret_text)
{
    char number[NUM_DOUBLE_MAX];

    for (size_t i = 0; i < percentiles->count; i++) {
        buf_append(ret_text, " ", i > 0);
        buf_append(ret_text, number,
                   num_format_double(percentiles->value[i], number));
    }
}

void
conf_parts_format_limits(const struct conf_output_limits *limits,
                         struct buf *ret_text)
{
    const char *between = "";

    for (unsigned i = 0; i < CONF_OUTPUT_CLASSES; i++) {
        const struct conf_output_limit *limit = &limits->of[i];

        if ((limits->given >> i & 1) != 0) {
            buf_printf(ret_text, "%s%s %" PRIu64 " %" PRIu64 " %" PRIu64,
                       between, output_classes[i], limit->hard_bytes,
                       limit->soft_bytes, limit->soft_seconds);
            between = " ";
        }
    }
}

void
conf_parts_format_save(const struct conf_save *save, struct buf *ret_text)
{
    for (size_t i = 0; i < save->count; i++) {
        buf_printf(ret_text, "%s%" PRIu64 " %" PRIu64, i > 0 ? " " : "",
                   save->rules[i].seconds, save->rules[i].changes);
    }
}
