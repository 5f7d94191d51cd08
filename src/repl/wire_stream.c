/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sender may be anyone: every size is checked against its bound as soon as
 * it is announced. An error is found at the first wrong byte, so that it does
 * not depend on how the bytes arrived.
 *
 *   line     = visible bytes CR LF            at most WIRE_LINE_MAX in all
 *   holdings = "+HOLDINGS " n CR LF n bytes   n: at most WIRE_HOLDINGS_MAX
 *   chunk    = "$" n CR LF n bytes            n: at most WIRE_CHUNK_MAX
 *   group    = SELECT command*                as in journal/group.c, then its
 *                                             seal
 *
 * Commands are scanned word by word. The seal is where the next command would
 * begin, so words may contain any bytes.
 */
#include "repl/wire_stream.h"

#include "base/err.h"
#include "journal/group.h"

#include <inttypes.h>

enum {
    DIGITS_MAX = 19, /* cannot overflow */
    WORD_MIN = 6     /* $0 CR LF CR LF */
};

static const char group_begin[] = "*2\r\n$6\r\nSELECT\r\n";
static const char holdings_begin[] = "+HOLDINGS ";

enum step { STEP_ON, STEP_MORE, STEP_BAD };

static enum step
bad(struct wire_piece *piece, const char *reason)
{
    piece->kind = WIRE_BAD;
    piece->reason = reason;
    return STEP_BAD;
}

/* Reads a type byte, a number without leading zeros, and CR LF. */
struct number {
    size_t bytes;
    uint64_t value;
};

static enum step
read_number(struct slice data, char type, struct number *ret_number)
{
    uint64_t value = 0;
    size_t at = 1;

    if (data.len > 0 && data.data[0] != type) {
        return STEP_BAD;
    }
    while (at < data.len && data.data[at] >= '0' && data.data[at] <= '9') {
        if (at > DIGITS_MAX || (at > 1 && data.data[1] == '0')) {
            return STEP_BAD;
        }
        value = value * 10 + (uint64_t)(data.data[at] - '0');
        at++;
    }
    if (at >= data.len) {
        return STEP_MORE;
    }
    if (at == 1 || data.data[at] != '\r') {
        return STEP_BAD;
    }
    if (at + 1 == data.len) {
        return STEP_MORE;
    }
    if (data.data[at + 1] != '\n') {
        return STEP_BAD;
    }
    *ret_number = (struct number){ at + 2, value };
    return STEP_ON;
}

static void
read_line(struct slice data, struct wire_piece *piece)
{
    for (size_t i = 0; i < data.len; i++) {
        unsigned char c = (unsigned char)data.data[i];

        if (i + 2 > WIRE_LINE_MAX) {
            (void)bad(piece, "a line of more than 1024 bytes");
            return;
        }
        if (c == '\r') {
            if (i + 1 == data.len) {
                return;
            }
            if (data.data[i + 1] != '\n') {
                (void)bad(piece, "a line with a carriage return in it");
                return;
            }
            piece->kind = WIRE_LINE;
            piece->value = (struct slice){ data.data, i };
            piece->used = i + 2;
            return;
        }
        if (c < ' ' || c == 0x7f) {
            (void)bad(piece, "a line with control characters in it");
            return;
        }
    }
}

static bool
begins_holdings(const struct wire_reader *reader, struct slice data)
{
    size_t len = sizeof(holdings_begin) - 1;

    return reader->phase == WIRE_GROUPS && data.len >= len &&
           memcmp(data.data, holdings_begin, len) == 0;
}

/* Reads holdings, whose text is one piece. */
static void
read_holdings(struct slice data, struct wire_piece *piece)
{
    /* The last byte of "+HOLDINGS " takes the place of the number's type byte.
     */
    size_t type = sizeof(holdings_begin) - 2;
    struct slice rest = { data.data + type, data.len - type };
    struct number number;
    enum step step = read_number(rest, ' ', &number);

    if (step == STEP_BAD) {
        (void)bad(piece, "holdings without a length");
    } else if (step == STEP_ON && number.value > WIRE_HOLDINGS_MAX) {
        (void)bad(piece, "holdings of more than 2 MiB");
    } else if (step == STEP_ON && rest.len - number.bytes >= number.value) {
        piece->kind = WIRE_HOLDINGS;
        piece->value.data = rest.data + number.bytes;
        piece->value.len = (size_t)number.value;
        piece->used = type + number.bytes + piece->value.len;
    }
}

/* Reads a chunk's head, once at least one byte of the chunk has arrived too. */
static enum step
read_chunk_head(struct wire_reader *reader, struct slice data,
                struct wire_piece *piece)
{
    struct number number;
    enum step step = read_number(data, '$', &number);

    if (step == STEP_BAD) {
        return bad(piece, "something other than a part of a snapshot where one "
                          "should begin");
    }
    if (step == STEP_MORE) {
        return step;
    }
    if (number.value > WIRE_CHUNK_MAX) {
        return bad(piece, "a part of a snapshot of more than 1 MiB");
    }
    if (number.value == 0) {
        piece->kind = WIRE_CHUNKS_END;
        piece->used = number.bytes;
        reader->phase = WIRE_GROUPS;
        return STEP_MORE;
    }
    if (number.bytes == data.len) {
        return STEP_MORE;
    }
    piece->used = number.bytes;
    reader->chunk_left = number.value;
    return STEP_ON;
}

static void
read_chunk(struct wire_reader *reader, struct slice data,
           struct wire_piece *piece)
{
    size_t there;

    if (reader->chunk_left == 0 &&
        read_chunk_head(reader, data, piece) != STEP_ON) {
        return;
    }
    there = data.len - piece->used;
    piece->kind = WIRE_CHUNK;
    piece->value.data = data.data + piece->used;
    piece->value.len =
        there < reader->chunk_left ? there : (size_t)reader->chunk_left;
    piece->used += piece->value.len;
    reader->chunk_left -= piece->value.len;
}

/* ---- groups -------------------------------------------------------------- */

/* Returns how many more bytes the group may have: 0 if it has more than a limit
 * that was lowered meanwhile. */
static size_t
bytes_left(const struct wire_reader *reader)
{
    return reader->group_max > reader->scanned
               ? reader->group_max - reader->scanned
               : 0;
}

static enum step
scan_command(struct wire_reader *reader, struct slice rest,
             struct wire_piece *piece)
{
    struct number number;
    enum step step = read_number(rest, '*', &number);

    if (step == STEP_BAD) {
        return bad(piece, "neither a command nor a seal where a command of a "
                          "group ended");
    }
    if (step == STEP_MORE) {
        return step;
    }
    if (number.value == 0) {
        return bad(piece, "a command without words in a group");
    }
    if (number.value > bytes_left(reader) / WORD_MIN) {
        return bad(piece, "a command has more words than fit into a group");
    }
    reader->scanned += number.bytes;
    reader->words_left = number.value;
    return STEP_ON;
}

static enum step
scan_word(struct wire_reader *reader, struct slice rest,
          struct wire_piece *piece)
{
    struct number number;
    enum step step = read_number(rest, '$', &number);
    size_t left;

    if (step == STEP_BAD) {
        return bad(piece, "a word of a command in a group does not begin with "
                          "its length");
    }
    if (step == STEP_MORE) {
        return step;
    }
    left = bytes_left(reader);
    if (left < number.bytes + 2 || number.value > left - number.bytes - 2) {
        return bad(piece, "a group is larger than the limit");
    }
    if (rest.len - number.bytes < number.value + 2) {
        return STEP_MORE;
    }
    if (memcmp(rest.data + number.bytes + number.value, "\r\n", 2) != 0) {
        return bad(piece, "a word of a command in a group is longer than its "
                          "length");
    }
    reader->scanned += number.bytes + (size_t)number.value + 2;
    reader->words_left--;
    return STEP_ON;
}

static enum step
scan_begin(const struct wire_reader *reader, struct slice data,
           struct wire_piece *piece)
{
    size_t len = sizeof(group_begin) - 1;

    if (reader->group_max < len) {
        return bad(piece, "a group is larger than the limit");
    }
    if (memcmp(data.data, group_begin, data.len < len ? data.len : len) != 0) {
        return bad(piece, "a group does not begin with SELECT");
    }
    return data.len < len ? STEP_MORE : STEP_ON;
}

static void
read_seal(struct wire_reader *reader, struct slice data,
          struct wire_piece *piece)
{
    struct slice commands = { data.data, reader->scanned };
    const char *seal = data.data + reader->scanned;
    struct group_seal fields;
    const char *reason;

    if (data.len - reader->scanned < GROUP_SEAL_BYTES) {
        return;
    }
    reason = group_check(commands, seal, reader->key, &fields);
    if (reason != NULL) {
        (void)bad(piece, reason);
        return;
    }
    *piece = (struct wire_piece){ .kind = WIRE_GROUP,
                                  .used = commands.len + GROUP_SEAL_BYTES,
                                  .value = commands,
                                  .seal = seal,
                                  .sequence = fields.sequence };
    reader->scanned = 0;
}

/* Continues the scan of the group at reader->scanned. */
static void
read_group(struct wire_reader *reader, struct slice data,
           struct wire_piece *piece)
{
    enum step step = STEP_ON;

    if (reader->scanned == 0) {
        step = scan_begin(reader, data, piece);
    }
    while (step == STEP_ON) {
        struct slice rest = { data.data + reader->scanned,
                              data.len - reader->scanned };

        if (reader->words_left > 0) {
            step = scan_word(reader, rest, piece);
        } else if (reader->scanned > 0 && rest.len > 0 && *rest.data == '#') {
            read_seal(reader, data, piece);
            return;
        } else {
            step = scan_command(reader, rest, piece);
        }
    }
}

void
wire_read(struct wire_reader *reader, struct slice data,
          struct wire_piece *ret_piece)
{
    *ret_piece = (struct wire_piece){ .kind = WIRE_MORE };
    CHECK(data.len >= reader->scanned);
    if (data.len == 0) {
        return;
    }
    if (reader->phase == WIRE_LINES && data.data[0] == '\n') {
        *ret_piece = (struct wire_piece){ .kind = WIRE_LINE,
                                          .used = 1,
                                          .value = { data.data, 0 } };
    } else if (begins_holdings(reader, data)) {
        read_holdings(data, ret_piece);
    } else if (reader->chunk_left == 0 &&
               (reader->phase == WIRE_LINES || data.data[0] == '+' ||
                data.data[0] == '-')) {
        read_line(data, ret_piece);
    } else if (reader->phase == WIRE_SNAPSHOT) {
        read_chunk(reader, data, ret_piece);
    } else if (data.data[0] == '*') {
        read_group(reader, data, ret_piece);
    } else {
        (void)bad(ret_piece,
                  "neither a group nor a line where one should begin");
    }
    CHECK(ret_piece->used <= data.len);
}
