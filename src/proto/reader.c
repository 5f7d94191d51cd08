/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hiredis's reader is fed in pieces, each followed by one redisReaderGetReply:
 * after a reply hiredis moves all unread bytes to the front, which is quadratic
 * unless pieces are small. A piece with the end of a command's first line ends
 * there, so that no other bytes are lost if hiredis drops its buffer because of
 * that line ("*-5", which Redis skips). Each piece may complete a
 * reply, so unread bytes are always the end of the last piece, and are returned
 * to the caller.
 *
 * A long argument does not pass through hiredis, which would keep it whole and
 * then copy it in one go: its bytes go into the arena as they arrive, and
 * hiredis gets an empty argument in its place.
 */
#include "proto/reader.h"

#include "base/mem.h"
#include "base/metrics.h"

#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdlib.h>

#if HIREDIS_MAJOR >= 1
typedef size_t hiredis_count;
#define TASK(hiredis, i) ((hiredis)->task[i])
#else
typedef int hiredis_count;
#define TASK(hiredis, i) (&(hiredis)->rstack[i])
#endif

enum {
    READER_MAGIC = 0x7ead3e01,
    PIECE_BYTES = 2048,
    PIECE_LARGE_BYTES = 32 * 1024, /* below LINE_BYTES_MAX: see skip_line */
    LARGE_FROM_BYTES = 4096,       /* bytes of a command before large pieces */
    LENGTH_BYTES_MAX = 32,         /* "-9223372036854775808" CRLF is 22 */
    LINE_BYTES_MAX = 64 * 1024,
    KEPT_BYTES_MAX = 64 * 1024,
    REDIS_BULK_MAX = 512 * 1024 * 1024,
    LONG_BYTES = 1024, /* the least length of a long argument */
    LINE_END_BYTES = 2
};

struct reader {
    unsigned magic;
    redisReader *hiredis;
    bool dead;

    /* The command being read. */
    size_t fed;      /* bytes of it so far, unread ones included */
    bool has_count;  /* the command's first line is complete */
    enum err doomed; /* OK, or the error of the line that is skipped */
    size_t line_len; /* bytes of that line so far */
    char line_last;  /* the line's last byte */
    char head[LENGTH_BYTES_MAX];
    size_t head_len;          /* may exceed the size of head */
    struct parse_error error; /* the first one */
    size_t long_len;          /* of the long argument; 0: none */
    size_t long_left;         /* its bytes and line end still to come */
    size_t peak;              /* most bytes in hiredis's buffer so far */
    struct arena *arena;      /* of the caller, during reader_feed */
    const struct parse_limits *limits;
};

static void
refuse_command(struct reader *reader, enum err err)
{
    if (reader->error.err == OK) {
        reader->error.err = err;
    }
}

/* Sets "expected '$', got '%s'". A control byte is shown as a blank, since it
 * could end the line of the reply. */
static void
refuse_type(struct reader *reader, char byte)
{
    unsigned char c = (unsigned char)byte;

    if (reader->error.err == OK) {
        reader->error.err = ERR_PROTO_EXPECTED;
        reader->error.detail[0] = (char)(c < 0x20 || c == 0x7f ? ' ' : c);
        reader->error.detail[1] = '\0';
    }
}

/* Returns the byte on the wire for a task's type. */
static char
byte_of_type(int type)
{
    switch (type) {
    case REDIS_REPLY_ARRAY:
        return '*';
    case REDIS_REPLY_INTEGER:
        return ':';
    case REDIS_REPLY_STATUS:
        return '+';
    case REDIS_REPLY_ERROR:
        return '-';
#if HIREDIS_MAJOR >= 1
    case REDIS_REPLY_NIL:
        return '_';
    case REDIS_REPLY_DOUBLE:
        return ',';
    case REDIS_REPLY_BOOL:
        return '#';
    case REDIS_REPLY_MAP:
        return '%';
    case REDIS_REPLY_SET:
        return '~';
    case REDIS_REPLY_ATTR:
        return '|';
    case REDIS_REPLY_PUSH:
        return '>';
    case REDIS_REPLY_BIGNUM:
        return '(';
    case REDIS_REPLY_VERB:
        return '=';
#endif
    default:
        return ' ';
    }
}

/* ---- limits ------------------------------------------------------------- */

static enum err
check_count(const struct reader *reader, uint64_t count)
{
    const struct parse_limits *limits = reader->limits;

    if (count > INT_MAX) {
        return ERR_PROTO_MULTIBULK;
    }
    if (count > limits->args_max) {
        return limits->unauthenticated ? ERR_PROTO_UNAUTH_MULTIBULK
                                       : ERR_PROTO_MULTIBULK;
    }
    return OK;
}

static enum err
check_bulk(const struct reader *reader, uint64_t len)
{
    const struct parse_limits *limits = reader->limits;

    if (len <= limits->bulk_max) {
        return OK;
    }
    return limits->unauthenticated && len <= REDIS_BULK_MAX
               ? ERR_PROTO_UNAUTH_BULK
               : ERR_PROTO_BULK;
}

/* ---- callbacks of hiredis --------------------------------------------------
 * Each returns the reader as the task's object, which hiredis does not use.
 * With NULL hiredis fails with "out of memory"; the true reason is in
 * reader->error. */

static struct reader *
reader_of(const redisReadTask *task)
{
    struct reader *reader = task->privdata;

    CHECK(reader->magic == READER_MAGIC);
    return reader;
}

static void *
refuse_task(const redisReadTask *task)
{
    refuse_type(reader_of(task), byte_of_type(task->type));
    return NULL;
}

static void *
/* NOLINTNEXTLINE(readability-non-const-parameter): hiredis's signature */
on_string(const redisReadTask *task, char *data, size_t len)
{
    struct reader *reader = reader_of(task);
    size_t long_len = reader->long_len;
    enum err err;

    if (task->type != REDIS_REPLY_STRING || task->parent == NULL) {
        return refuse_task(task);
    }
    reader->long_len = 0;
    err = check_bulk(reader, long_len > 0 ? long_len : len);
    if (err == OK &&
        !(long_len > 0
              ? arena_close_argument(reader->arena, long_len)
              : arena_add(reader->arena, (struct slice){ data, len }))) {
        err = ERR_NOMEM;
    }
    if (err != OK) {
        refuse_command(reader, err);
        return NULL;
    }
    return reader;
}

static void *
on_array(const redisReadTask *task, hiredis_count count)
{
    struct reader *reader = reader_of(task);
    enum err err;

    if (task->type != REDIS_REPLY_ARRAY || task->parent != NULL) {
        return refuse_task(task);
    }
    err = check_count(reader, (uint64_t)count);
    if (err != OK) {
        refuse_command(reader, err);
        return NULL;
    }
    reader->has_count = true;
    return reader;
}

static void *
on_integer(const redisReadTask *task, long long value)
{
    (void)value;
    return refuse_task(task);
}

/* Handles "*-1", which is an empty command, and "$-1", which is a bad length.
 */
static void *
on_nil(const redisReadTask *task)
{
    if (task->type == REDIS_REPLY_ARRAY && task->parent == NULL) {
        return reader_of(task);
    }
    if (task->type == REDIS_REPLY_STRING) {
        refuse_command(reader_of(task), ERR_PROTO_BULK);
        return NULL;
    }
    return refuse_task(task);
}

#if HIREDIS_MAJOR >= 1
static void *
/* NOLINTNEXTLINE(readability-non-const-parameter): hiredis's signature */
on_double(const redisReadTask *task, double value, char *data, size_t len)
{
    (void)value;
    (void)data;
    (void)len;
    return refuse_task(task);
}

static void *
on_bool(const redisReadTask *task, int value)
{
    (void)value;
    return refuse_task(task);
}
#endif

static void
on_free(void *object)
{
    (void)object; /* the arena is the caller's */
}

static redisReplyObjectFunctions functions = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .freeObject = on_free,
};

/* ---- life --------------------------------------------------------------- */

static bool
open_hiredis(struct reader *reader)
{
    reader->hiredis = redisReaderCreateWithFunctions(&functions);
    if (reader->hiredis == NULL) {
        return false;
    }
    reader->hiredis->privdata = reader;
    reader->hiredis->maxbuf = 0; /* pieces keep it small */
#if HIREDIS_MAJOR >= 1
    reader->hiredis->maxelements = INT_MAX;
#endif
    reader->peak = 0;
    return true;
}

/* hiredis allocates with malloc and keeps its buffer, so the largest size so
 * far is counted. */
static void
close_hiredis(struct reader *reader)
{
    metric_add(METRIC_MEM_USED, -(int64_t)reader->peak);
    redisReaderFree(reader->hiredis);
}

struct reader *
reader_new(void)
{
    struct reader *reader = mem_try_zalloc(sizeof(*reader));

    if (reader == NULL) {
        return NULL;
    }
    reader->magic = READER_MAGIC;
    if (!open_hiredis(reader)) {
        mem_free(reader);
        return NULL;
    }
    return reader;
}

void
reader_free(struct reader *reader)
{
    if (reader == NULL) {
        return;
    }
    close_hiredis(reader);
    reader->magic = 0;
    mem_free(reader);
}

/* Prepares for the next command; unread bytes in hiredis are dropped. */
static void
begin_command(struct reader *reader)
{
    redisReader *hiredis = reader->hiredis;

    hiredis->ridx = -1;
    hiredis->pos = hiredis->len;
    hiredis->reply = NULL;
    reader->fed = 0;
    reader->has_count = false;
    reader->head_len = 0;
    reader->long_len = 0;
}

size_t
reader_kept_bytes(const struct reader *reader)
{
    return reader->hiredis->len - reader->hiredis->pos;
}

size_t
reader_memory_bytes(const struct reader *reader)
{
    return sizeof(*reader) + sizeof(*reader->hiredis) + reader->peak;
}

bool
reader_is_reusable(const struct reader *reader)
{
    return !reader->dead && reader->peak <= KEPT_BYTES_MAX;
}

/* ---- feeding ------------------------------------------------------------ */

/* Skips a line that is too long for any number. Refuses it at its end, or above
 * LINE_BYTES_MAX. hiredis would search the whole line again at each piece.
 * Pieces are shorter than LINE_BYTES_MAX, so that hiredis never gets the end of
 * a line that is refused here. */
static void
skip_line(struct reader *reader, struct slice piece)
{
    for (size_t i = 0; i < piece.len && reader->error.err == OK; i++) {
        char last = reader->line_last;

        reader->line_last = piece.data[i];
        reader->line_len++;
        if (last == '\r' && piece.data[i] == '\n') {
            refuse_command(reader, reader->doomed);
        } else if (reader->line_len > LINE_BYTES_MAX) {
            refuse_command(reader, reader->doomed == ERR_PROTO_BULK
                                       ? ERR_PROTO_BIG_BULK
                                       : ERR_PROTO_BIG_COUNT);
        }
    }
}

static void
doom_line(struct reader *reader, struct slice pending, enum err err)
{
    reader->doomed = err;
    reader->line_len = 1 + pending.len; /* the type byte is consumed */
    reader->line_last = pending.data[pending.len - 1];
    reader->hiredis->pos = reader->hiredis->len;
}

/* Keeps bytes of the long argument and its line end. */
static void
keep_long(struct reader *reader, struct slice bytes)
{
    struct buf *to = &reader->arena->bytes;

    CHECK(bytes.len <= reader->long_left);
    refuse_command(reader, check_bulk(reader, reader->long_len));
    buf_append_slice(to, bytes);
    if (to->failed) {
        refuse_command(reader, ERR_NOMEM);
        return;
    }
    reader->long_left -= bytes.len;
    if (reader->long_left == 0) {
        to->len -= LINE_END_BYTES;
    }
}

/* Takes a long argument away from hiredis, which has read its length line and a
 * part of its bytes. */
static void
begin_long(struct reader *reader, size_t len, struct slice have)
{
    reader->long_len = len;
    reader->long_left = len + LINE_END_BYTES;
    keep_long(reader, have);
    reader->hiredis->pos = reader->hiredis->len;
}

/* Checks the declared length of the argument that hiredis waits for, before its
 * bytes are kept. hiredis itself accepts any up to LLONG_MAX. */
static void
guard_bulk(struct reader *reader, struct slice pending)
{
    size_t look =
        pending.len < LENGTH_BYTES_MAX ? pending.len : (size_t)LENGTH_BYTES_MAX;
    const char *end = look > 0 ? memmem(pending.data, look, "\r\n", 2) : NULL;
    size_t have = pending.len;
    uint64_t len = 0;

    if (end == NULL) {
        if (pending.len >= LENGTH_BYTES_MAX) {
            doom_line(reader, pending, ERR_PROTO_BULK);
        }
        return;
    }
    pending.len = (size_t)(end - pending.data);
    refuse_command(reader, slice_to_u64(pending, &len) ? check_bulk(reader, len)
                                                       : ERR_PROTO_BULK);
    if (reader->error.err == OK && len >= LONG_BYTES) {
        end += LINE_END_BYTES;
        begin_long(reader, (size_t)len,
                   (struct slice){ end, have - (size_t)(end - pending.data) });
    }
}

/* Checks what hiredis waits for, after a piece that did not complete the
 * command. */
static void
guard_pending(struct reader *reader)
{
    const redisReader *hiredis = reader->hiredis;
    const redisReadTask *task = TASK(hiredis, hiredis->ridx);
    struct slice pending = { hiredis->buf + hiredis->pos,
                             hiredis->len - hiredis->pos };

    if (task->type < 0) {
        return; /* the type byte comes next */
    }
    if (task->parent == NULL) {
        if (pending.len >= LENGTH_BYTES_MAX) {
            doom_line(reader, pending, ERR_PROTO_MULTIBULK);
        }
    } else if (task->type == REDIS_REPLY_STRING) {
        guard_bulk(reader, pending);
    } else {
        refuse_type(reader, byte_of_type(task->type));
    }
}

/* Returns an unknown type byte, which hiredis has only in its message: got "x",
 * with C escapes. */
static char
byte_of_message(const char *message)
{
    const char *quote = strchr(message, '"');

    if (quote == NULL) {
        return ' ';
    }
    if (quote[1] != '\\') {
        return quote[1];
    }
    switch (quote[2]) {
    case '\\':
    case '"':
        return quote[2];
    case 'x':
        return (char)strtoul(quote + 3, NULL, 16);
    default:
        return ' '; /* \n, \r, ...: shown as a blank anyway */
    }
}

/* Returns whether the count is negative: Redis skips such a command; hiredis
 * does so for -1 only. */
static bool
head_is_negative(const struct reader *reader)
{
    struct slice number = { reader->head + 1, 0 };
    int64_t count = 0;

    if (reader->head_len < 3 || reader->head_len > sizeof(reader->head)) {
        return false;
    }
    number.len = reader->head_len - 3; /* without "*" and CRLF */
    return slice_to_i64(number, &count) && count < 0;
}

/* Finds the error after hiredis has failed and dropped its buffer. */
static enum parse_result
map_failure(struct reader *reader)
{
    const redisReader *hiredis = reader->hiredis;
    int type = TASK(hiredis, 1)->type;

    if (reader->error.err != OK) {
        return PARSE_ERROR;
    }
    if (hiredis->err != REDIS_ERR_PROTOCOL) {
        refuse_command(reader, ERR_NOMEM);
    } else if (!reader->has_count && head_is_negative(reader)) {
        close_hiredis(reader);
        if (open_hiredis(reader)) {
            return PARSE_EMPTY;
        }
        refuse_command(reader, ERR_NOMEM);
    } else if (!reader->has_count) {
        refuse_command(reader, ERR_PROTO_MULTIBULK);
    } else if (type == REDIS_REPLY_STRING) {
        refuse_command(reader, ERR_PROTO_BULK);
    } else {
        char byte = byte_of_type(type);

        if (type < 0) {
            byte = byte_of_message(hiredis->errstr);
        }
        refuse_type(reader, byte);
    }
    return PARSE_ERROR;
}

/* Returns how much of the rest may be fed at once. 0: the command is too long.
 */
static size_t
piece_bytes(const struct reader *reader, struct slice rest)
{
    size_t bytes =
        reader->fed < LARGE_FROM_BYTES ? PIECE_BYTES : PIECE_LARGE_BYTES;
    size_t query_max = reader->limits->query_max;
    size_t left = query_max > reader->fed ? query_max - reader->fed : 0;
    const char *end;

    if (!reader->has_count) {
        bytes = LENGTH_BYTES_MAX;
    }
    if (reader->long_left > 0) {
        bytes = reader->long_left;
    }
    if (bytes > rest.len) {
        bytes = rest.len;
    }
    if (!reader->has_count) {
        end = memchr(rest.data, '\n', bytes);
        bytes = end != NULL ? (size_t)(end - rest.data) + 1 : bytes;
    }
    return bytes < left ? bytes : left;
}

static void
note_head(struct reader *reader, struct slice piece)
{
    for (size_t i = 0; i < piece.len; i++) {
        if (reader->head_len < sizeof(reader->head)) {
            reader->head[reader->head_len] = piece.data[i];
        }
        reader->head_len++;
    }
}

static enum parse_result
feed_piece(struct reader *reader, struct slice piece, size_t *ret_unread)
{
    redisReader *hiredis = reader->hiredis;
    void *reply = NULL;

    if (!reader->has_count) {
        note_head(reader, piece);
    }
    if (reader->long_left > 0) {
        keep_long(reader, piece);
        if (reader->long_left > 0 || reader->error.err != OK) {
            return reader->error.err == OK ? PARSE_MORE : PARSE_ERROR;
        }
        piece = slice_lit("0\r\n\r\n");
    }
    if (redisReaderFeed(hiredis, piece.data, piece.len) != REDIS_OK) {
        return map_failure(reader);
    }
    if (hiredis->len > reader->peak) {
        metric_add(METRIC_MEM_USED, (int64_t)(hiredis->len - reader->peak));
        reader->peak = hiredis->len;
    }
    if (redisReaderGetReply(hiredis, &reply) != REDIS_OK) {
        return map_failure(reader);
    }
    if (reply == NULL) {
        guard_pending(reader);
        return reader->error.err == OK ? PARSE_MORE : PARSE_ERROR;
    }
    *ret_unread = hiredis->len - hiredis->pos;
    return reader->arena->count > 0 ? PARSE_COMMAND : PARSE_EMPTY;
}

enum parse_result
reader_feed(struct reader *reader, const struct parse_limits *limits,
            struct slice data, struct arena *arena, size_t *ret_used,
            struct parse_error *ret_error)
{
    enum parse_result result = PARSE_MORE;
    size_t used = 0;

    CHECK(!reader->dead);
    reader->limits = limits;
    reader->arena = arena;
    while (result == PARSE_MORE && used < data.len) {
        struct slice piece = { data.data + used, data.len - used };
        size_t unread = 0;

        piece.len = piece_bytes(reader, piece);
        if (piece.len == 0) {
            refuse_command(reader, ERR_QUERY_BUFFER);
            result = PARSE_ERROR;
            break;
        }
        reader->fed += piece.len;
        if (reader->doomed != OK) {
            skip_line(reader, piece);
            result = reader->error.err == OK ? PARSE_MORE : PARSE_ERROR;
        } else {
            result = feed_piece(reader, piece, &unread);
        }
        used += piece.len - unread;
    }
    if (result == PARSE_ERROR) {
        reader->dead = true;
        *ret_error = reader->error;
        return result;
    }
    if (result != PARSE_MORE) {
        begin_command(reader);
    }
    *ret_used = used;
    return result;
}
