/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire_stream.c reads the stream.
 */
#include "repl/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"
#include "base/hex.h"
#include "journal/group.h"
#include "proto/compose.h"

enum {
    HELLO_FIELDS = 4, /* of "+BLOOMERY 1 <run id> <chain>" */
    FIELDS_MAX = 7    /* of "+FULLRESYNC ..." */
};

_Static_assert((int)WIRE_ID_CHARS == (int)HISTORY_ID_CHARS, "both are ids");

__attribute__((format(printf, 3, 4))) static bool
refuse(char *ret_reason, size_t reason_size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(ret_reason, reason_size, format, args);
    va_end(args);
    return false;
}

/* ---- the replica's commands ---------------------------------------------- */

void
wire_ack(struct buf *out, uint64_t position, uint64_t synced)
{
    char text[2][24];
    struct slice argv[] = { slice_lit("REPLCONF"),
                            slice_lit("ACK"),
                            { text[0], 0 },
                            slice_lit("FACK"),
                            { text[1], 0 } };

    CHECK(position < GROUP_POSITION_LIMIT && synced < GROUP_POSITION_LIMIT);
    argv[2].len =
        (size_t)snprintf(text[0], sizeof(text[0]), "%" PRIu64, position);
    argv[4].len =
        (size_t)snprintf(text[1], sizeof(text[1]), "%" PRIu64, synced);
    compose_command(out, argv, synced > 0 ? 5 : 3);
}

static bool
read_position(struct slice text, uint64_t *ret_position)
{
    uint64_t position;

    if (!slice_to_u64(text, &position) || position >= GROUP_POSITION_LIMIT) {
        return false;
    }
    *ret_position = position;
    return true;
}

bool
wire_parse_ack(const struct slice *argv, size_t argc, uint64_t *ret_position,
               uint64_t *ret_synced)
{
    uint64_t position;
    uint64_t synced = 0;

    if ((argc != 3 && argc != 5) || !slice_is_word(argv[1], "ack") ||
        !read_position(argv[2], &position) ||
        (argc == 5 && (!slice_is_word(argv[3], "fack") ||
                       !read_position(argv[4], &synced)))) {
        return false;
    }
    *ret_position = position;
    *ret_synced = synced;
    return true;
}

/* ---- the primary's lines ------------------------------------------------- */

void
wire_write_hello(struct buf *out, const struct wire_hello *hello)
{
    CHECK(strlen(hello->run_id) == WIRE_ID_CHARS &&
          hello->chain_count <= WIRE_CHAIN_MAX);
    buf_printf(out, "+BLOOMERY %u %s ", hello->version, hello->run_id);
    for (size_t i = 0; i < hello->chain_count; i++) {
        buf_printf(out, "%s%s", i > 0 ? "," : "", hello->chain[i]);
    }
    buf_printf(out, "%s\r\n", hello->chain_count == 0 ? "-" : "");
}

static void
write_past(struct buf *out, const struct history_past *past)
{
    for (int i = 0; i < HISTORY_PAST_MAX && past[i].id[0] != '\0'; i++) {
        buf_printf(out, "%c%s:%" PRIu64, i == 0 ? ' ' : ',', past[i].id,
                   past[i].until);
    }
}

void
wire_write_answer(struct buf *out, const struct wire_answer *answer)
{
    CHECK(answer->kind == WIRE_ERROR ||
          (strlen(answer->history) == WIRE_ID_CHARS &&
           answer->position < GROUP_POSITION_LIMIT));
    switch (answer->kind) {
    case WIRE_CONTINUE:
        buf_printf(out, "+CONTINUE %s %016" PRIx64 "\r\n", answer->history,
                   answer->key);
        break;
    case WIRE_FULLRESYNC:
        buf_printf(out,
                   "+FULLRESYNC %s %" PRIu64 " %" PRIu64 " %016" PRIx64
                   " %" PRIu64,
                   answer->history, answer->position, answer->sequence,
                   answer->key, answer->bytes);
        write_past(out, answer->past);
        buf_append_slice(out, slice_lit("\r\n"));
        break;
    case WIRE_ERROR:
        buf_printf(out, "-%s\r\n", answer->error);
        break;
    }
}

void
wire_write_chunk_head(struct buf *out, size_t bytes)
{
    CHECK(bytes <= WIRE_CHUNK_MAX);
    buf_printf(out, "$%zu\r\n", bytes);
}

void
wire_write_holdings_head(struct buf *out, size_t bytes)
{
    CHECK(bytes <= WIRE_HOLDINGS_MAX);
    buf_printf(out, "+HOLDINGS %zu\r\n", bytes);
}

/* ---- reading lines ------------------------------------------------------- */

/* Splits the line at each `at`. Returns max + 1 if there are more than max
 * fields. */
static size_t
split(struct slice line, char at, struct slice *ret_fields, size_t max)
{
    size_t count = 0;

    for (;;) {
        const char *blank =
            line.len > 0 ? memchr(line.data, at, line.len) : NULL;
        size_t len = blank == NULL ? line.len : (size_t)(blank - line.data);

        if (count == max) {
            return max + 1;
        }
        ret_fields[count++] = (struct slice){ line.data, len };
        if (blank == NULL) {
            return count;
        }
        line.data += len + 1;
        line.len -= len + 1;
    }
}

static bool
read_id(struct slice text, char *ret_id)
{
    if (!history_is_id(text)) {
        return false;
    }
    memcpy(ret_id, text.data, WIRE_ID_CHARS);
    ret_id[WIRE_ID_CHARS] = '\0';
    return true;
}

static bool
read_chain(struct slice text, struct wire_hello *hello)
{
    struct slice ids[WIRE_CHAIN_MAX];

    if (slice_equal(text, slice_lit("-"))) {
        return true;
    }
    hello->chain_count = split(text, ',', ids, WIRE_CHAIN_MAX);
    if (hello->chain_count > WIRE_CHAIN_MAX) {
        return false;
    }
    for (size_t i = 0; i < hello->chain_count; i++) {
        if (!read_id(ids[i], hello->chain[i])) {
            return false;
        }
    }
    return true;
}

int
wire_shown(struct slice line)
{
    return line.len < WIRE_SHOWN_MAX ? (int)line.len : WIRE_SHOWN_MAX;
}

/* Explains an error reply: "-ERR" (an unknown subcommand) comes from a server
 * of another kind. */
static bool
refuse_hello(struct slice line, char *ret_reason, size_t reason_size)
{
    if (line.len >= 5 && memcmp(line.data, "-ERR ", 5) == 0) {
        return refuse(
            ret_reason, reason_size,
            "the primary is not a Bloomery server, or an older one: it "
            "answered '%.*s'",
            slice_shown(line), line.data);
    }
    return refuse(ret_reason, reason_size, "the primary answered '%.*s'",
                  wire_shown(line), line.data);
}

bool
wire_parse_hello(struct slice line, struct wire_hello *ret_hello,
                 char *ret_reason, size_t reason_size)
{
    struct slice fields[HELLO_FIELDS];
    struct wire_hello hello = { .version = WIRE_VERSION };
    size_t count = split(line, ' ', fields, HELLO_FIELDS);
    uint64_t version;

    if (line.len > 0 && line.data[0] == '-') {
        return refuse_hello(line, ret_reason, reason_size);
    }
    if (!slice_equal(fields[0], slice_lit("+BLOOMERY"))) {
        return refuse(
            ret_reason, reason_size,
            "the primary is not a Bloomery server: it answered '%.*s'",
            slice_shown(line), line.data);
    }
    if (count < 2 || !slice_to_u64(fields[1], &version) || version == 0) {
        return refuse(ret_reason, reason_size,
                      "the primary's introduction has no version");
    }
    if (version > WIRE_VERSION) {
        return refuse(ret_reason, reason_size,
                      "the primary is newer: it speaks version %" PRIu64
                      " of replication, this server version %d",
                      version, WIRE_VERSION);
    }
    if (count != HELLO_FIELDS) {
        return refuse(ret_reason, reason_size,
                      "the primary's introduction does not have 4 fields");
    }
    if (!read_id(fields[2], hello.run_id)) {
        return refuse(ret_reason, reason_size,
                      "the primary's run id does not have 40 hex digits");
    }
    if (!read_chain(fields[3], &hello)) {
        return refuse(ret_reason, reason_size,
                      "the primary's chain of primaries is not a list of at "
                      "most %d run ids",
                      WIRE_CHAIN_MAX);
    }
    *ret_hello = hello;
    return true;
}

static bool
read_past(struct slice text, struct history_past *past)
{
    struct slice items[HISTORY_PAST_MAX];
    size_t count = split(text, ',', items, HISTORY_PAST_MAX);

    if (count > HISTORY_PAST_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct slice fields[2];

        if (split(items[i], ':', fields, 2) != 2 ||
            !read_id(fields[0], past[i].id) ||
            !read_position(fields[1], &past[i].until)) {
            return false;
        }
    }
    return true;
}

static bool
read_full_resync(const struct slice *fields, size_t count,
                 struct wire_answer *answer, char *ret_reason,
                 size_t reason_size)
{
    answer->kind = WIRE_FULLRESYNC;
    if (count != 6 && count != 7) {
        return refuse(ret_reason, reason_size,
                      "FULLRESYNC does not have 5 or 6 fields");
    }
    if (!read_id(fields[1], answer->history)) {
        return refuse(ret_reason, reason_size,
                      "the history of FULLRESYNC does not have 40 hex digits");
    }
    if (!read_position(fields[2], &answer->position) ||
        answer->position > GROUP_POSITION_TAKEN_MAX) {
        return refuse(ret_reason, reason_size,
                      "FULLRESYNC has no valid position");
    }
    if (!slice_to_u64(fields[3], &answer->sequence) ||
        answer->sequence > GROUP_NUMBER_TAKEN_MAX) {
        return refuse(ret_reason, reason_size,
                      "FULLRESYNC has no valid sequence");
    }
    if (!hex_parse_u64(fields[4], &answer->key)) {
        return refuse(ret_reason, reason_size,
                      "the key of FULLRESYNC does not have 16 hex digits");
    }
    if (!read_position(fields[5], &answer->bytes)) {
        return refuse(ret_reason, reason_size, "FULLRESYNC has no valid size");
    }
    if (count == 7 && !read_past(fields[6], answer->past)) {
        return refuse(ret_reason, reason_size,
                      "the past of FULLRESYNC is not a list of at most %d "
                      "histories",
                      HISTORY_PAST_MAX);
    }
    return true;
}

static bool
read_continue(const struct slice *fields, size_t count,
              struct wire_answer *answer, char *ret_reason, size_t reason_size)
{
    answer->kind = WIRE_CONTINUE;
    if (count != 3) {
        return refuse(ret_reason, reason_size,
                      "CONTINUE does not have 2 fields");
    }
    if (!read_id(fields[1], answer->history)) {
        return refuse(ret_reason, reason_size,
                      "the history of CONTINUE does not have 40 hex digits");
    }
    if (!hex_parse_u64(fields[2], &answer->key)) {
        return refuse(ret_reason, reason_size,
                      "the key of CONTINUE does not have 16 hex digits");
    }
    return true;
}

bool
wire_parse_answer(struct slice line, struct wire_answer *ret_answer,
                  char *ret_reason, size_t reason_size)
{
    struct wire_answer answer = { .kind = WIRE_ERROR };
    struct slice fields[FIELDS_MAX];
    size_t count;
    bool good = true;

    if (line.len > 0 && line.data[0] == '-') {
        (void)snprintf(answer.error, sizeof(answer.error), "%.*s",
                       (int)(line.len < sizeof(answer.error)
                                 ? line.len - 1
                                 : sizeof(answer.error) - 1),
                       line.data + 1);
        *ret_answer = answer;
        return true;
    }
    count = split(line, ' ', fields, FIELDS_MAX);
    if (slice_equal(fields[0], slice_lit("+CONTINUE"))) {
        good = read_continue(fields, count, &answer, ret_reason, reason_size);
    } else if (slice_equal(fields[0], slice_lit("+FULLRESYNC"))) {
        good =
            read_full_resync(fields, count, &answer, ret_reason, reason_size);
    } else {
        return refuse(ret_reason, reason_size,
                      "the answer to PSYNC is '%.*s', neither CONTINUE nor "
                      "FULLRESYNC",
                      slice_shown(line), line.data);
    }
    if (good) {
        *ret_answer = answer;
    }
    return good;
}
