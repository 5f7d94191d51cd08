/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The layout of a piece in its chunk:
 *
 *   struct piece | SELECT | MULTI | effects ... | EXEC | (next piece)
 *                  `- headroom -'
 *
 * SELECT and MULTI are written when the piece is closed, right before the bytes
 * that follow them; so the effects never move.
 *
 * A chunk counts references. The stage takes all references that it may need
 * when it makes the chunk, and returns the unused ones when it leaves the
 * chunk. So passing on a piece costs no locked instruction, and freeing it
 * costs one.
 *
 * A request that is too large for a usual chunk gets a chunk of its own, and
 * the stage leaves that chunk after this piece.
 */
#include "journal/stage.h"

#include "base/mem.h"

#include <stdatomic.h>

enum {
    CHUNK_BYTES = 256 * 1024,
    SELECT_MAX = 33, /* "*2\r\n$6\r\nSELECT\r\n$10\r\n4294967295\r\n" */
    HEADROOM = 48,   /* a SELECT and MULTI */
    TAIL = 16,       /* EXEC */
    ALIGN = 8        /* of a piece */
};

static const uint32_t ALL_REFS = 1U << 30;

struct chunk {
    _Atomic uint32_t refs; /* live pieces, and those to come */
    size_t bytes;          /* of data */
    _Alignas(ALIGN) char data[];
};

_Static_assert(HEADROOM >= SELECT_MAX + sizeof("*1\r\n$5\r\nMULTI\r\n") - 1,
               "SELECT and MULTI fit");
_Static_assert(TAIL >= sizeof("*1\r\n$4\r\nEXEC\r\n") - 1, "EXEC fits");

static size_t
round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void
drop_refs(struct chunk *chunk, uint32_t refs)
{
    if (atomic_fetch_sub_explicit(&chunk->refs, refs, memory_order_acq_rel) ==
        refs) {
        mem_free(chunk);
    }
}

/* Returns a chunk with so many bytes of data. NULL: no memory. */
static struct chunk *
new_chunk(size_t bytes, uint32_t refs)
{
    struct chunk *chunk = mem_try_alloc(sizeof(*chunk) + bytes);

    if (chunk != NULL) {
        atomic_init(&chunk->refs, refs);
        chunk->bytes = bytes;
    }
    return chunk;
}

void
piece_free(struct piece *piece)
{
    drop_refs(piece->chunk, 1);
}

struct piece *
piece_try_copy(struct slice group)
{
    struct chunk *chunk;
    struct piece *piece;
    char *text;
    size_t bytes;

    if (__builtin_add_overflow(group.len, sizeof(*chunk) + sizeof(*piece),
                               &bytes)) {
        return NULL;
    }
    chunk = new_chunk(bytes - sizeof(*chunk), 1);
    if (chunk == NULL) {
        return NULL;
    }
    piece = (struct piece *)(void *)chunk->data;
    text = chunk->data + sizeof(*piece);
    if (group.len > 0) {
        memcpy(text, group.data, group.len);
    }
    *piece = (struct piece){
        .chunk = chunk,
        .select = { text, 0 },
        .body = { text, group.len },
        .last = true,
    };
    return piece;
}

void
stage_fini(struct stage *stage)
{
    if (stage->chunk != NULL) {
        drop_refs(stage->chunk, ALL_REFS - stage->given);
    }
    *stage = (struct stage){ 0 };
}

static size_t
chunk_bytes_for(size_t need)
{
    return need > CHUNK_BYTES ? round_up(need) : CHUNK_BYTES;
}

/* Returns how many bytes of its chunk the stage leaves unused, while pieces
 * keep the chunk. */
static uint32_t
spare_of(const struct stage *stage)
{
    const struct chunk *chunk = stage->chunk;

    return chunk != NULL && stage->given > 0 && chunk->bytes == CHUNK_BYTES
               ? (uint32_t)(chunk->data + chunk->bytes - stage->free)
               : 0;
}

/* Gets another chunk with room for `need` bytes, or the same one, if all its
 * pieces were freed. */
static bool
renew(struct stage *stage, size_t need)
{
    struct chunk *chunk = stage->chunk;
    size_t bytes = chunk_bytes_for(need);
    uint32_t spare = 0;

    if (chunk != NULL && chunk->bytes == CHUNK_BYTES && need <= CHUNK_BYTES &&
        atomic_load_explicit(&chunk->refs, memory_order_acquire) ==
            ALL_REFS - stage->given) {
        atomic_store_explicit(&chunk->refs, ALL_REFS, memory_order_relaxed);
    } else {
        chunk = new_chunk(bytes, ALL_REFS);
        if (chunk == NULL) { /* memory is short: ask for no more than needed */
            chunk = new_chunk(round_up(need), ALL_REFS);
        }
        if (chunk == NULL) {
            return false;
        }
        spare = spare_of(stage);
        stage_fini(stage);
    }
    *stage =
        (struct stage){ .chunk = chunk, .free = chunk->data, .spare = spare };
    return true;
}

bool
stage_open(struct stage *stage, size_t bytes)
{
    struct chunk *chunk = stage->chunk;
    size_t need;

    CHECK(stage->effects == 0);
    if (__builtin_add_overflow(bytes, sizeof(struct piece) + HEADROOM + TAIL,
                               &need) ||
        need > SIZE_MAX / 2) {
        return false;
    }
    if (chunk == NULL ||
        (size_t)(chunk->data + chunk->bytes - stage->free) < need) {
        if (!renew(stage, need)) {
            return false;
        }
    } else if (chunk->bytes > chunk_bytes_for(need)) {
        /* The last call asked for more, and nothing was added. If there is no
         * memory for a smaller chunk, the larger one is used. */
        (void)renew(stage, need);
    }
    stage->piece = (struct piece *)(void *)stage->free;
    stage->at = stage->free + sizeof(struct piece) + HEADROOM;
    stage->end = stage->at + bytes;
    return true;
}

/* ---- RESP ---------------------------------------------------------------- */

static __attribute__((noinline)) char *
put_large_number(char *to, char mark, size_t n)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    *to++ = mark;
    memcpy(to, digits + at, sizeof(digits) - at);
    to += sizeof(digits) - at;
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

/* Writes "<mark><n>\r\n". */
static inline char *
put_number(char *to, char mark, size_t n)
{
    unsigned tens = (unsigned)n / 10;

    if (n >= 100) {
        return put_large_number(to, mark, n);
    }
    *to++ = mark;
    if (n >= 10) {
        *to++ = (char)('0' + tens);
    }
    *to++ = (char)('0' + (unsigned)n - 10 * tens);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

/* Copies a word. Most words are short: two copies of fixed size, which may
 * overlap, then cost less than a call of memcpy. */
static inline char *
put_bytes(char *to, const char *from, size_t len)
{
    if (len < 4 || len > 64) {
        if (len > 0) {
            memcpy(to, from, len);
        }
    } else if (len < 8) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);
    } else if (len <= 16) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else if (len <= 32) {
        memcpy(to, from, 16);
        memcpy(to + len - 16, from + len - 16, 16);
    } else {
        memcpy(to, from, 32);
        memcpy(to + len - 32, from + len - 32, 32);
    }
    return to + len;
}

static inline char *
put_word(char *to, struct slice word)
{
    to = put_number(to, '$', word.len);
    to = put_bytes(to, word.data, word.len);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static inline char *
put_text(char *to, struct slice text)
{
    memcpy(to, text.data, text.len);
    return to + text.len;
}

static size_t
count_digits(uint32_t n)
{
    size_t count = 1;

    for (; n >= 10; n /= 10) {
        count++;
    }
    return count;
}

/* Returns how many bytes put_select writes. */
static size_t
select_bytes(uint32_t db)
{
    size_t digits = count_digits(db);

    return digits + SELECT_MAX - (digits < 10 ? 11U : 10U);
}

static char *
put_select(char *to, uint32_t db)
{
    to = put_text(to, slice_lit("*2\r\n$6\r\nSELECT\r\n"));
    to = put_number(to, '$', count_digits(db));
    /* The line feed before the number takes the place of its mark. */
    return put_number(to - 1, '\n', db);
}

/* Writes the SELECT that must precede an effect in this database, if any. */
static char *
begin_effect(struct stage *stage, uint32_t db)
{
    struct piece *piece = stage->piece;
    char *to = stage->at;

    if (stage->effects++ == 0) {
        piece->db_first = db;
    } else if (piece->db_last != db) {
        to = put_select(to, db);
    }
    piece->db_last = db;
    return to;
}

void
stage_add_resp(struct stage *stage, uint32_t db, struct slice resp)
{
    CHECK(stage->piece != NULL &&
          (size_t)(stage->end - stage->at) >= resp.len + SELECT_MAX);
    stage->at = put_bytes(begin_effect(stage, db), resp.data, resp.len);
}

void
stage_add(struct stage *stage, uint32_t db, const struct slice *argv,
          size_t argc)
{
    char *to;

    CHECK(stage->piece != NULL &&
          (size_t)(stage->end - stage->at) >= stage_effect_bytes(argv, argc));
    to = begin_effect(stage, db);
    to = put_number(to, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        to = put_word(to, argv[i]);
    }
    stage->at = to;
}

static void
leave_large(struct stage *stage)
{
    if (stage->chunk != NULL && stage->chunk->bytes > CHUNK_BYTES) {
        stage_fini(stage);
    }
}

struct piece *
stage_close(struct stage *stage, bool txn)
{
    struct piece *piece = stage->piece;
    char *begin, *end = stage->at;
    size_t select;

    stage->piece = NULL;
    if (stage->effects == 0) {
        leave_large(stage);
        return NULL;
    }
    begin = (char *)piece + sizeof(*piece) + HEADROOM;
    if (txn && stage->effects > 1) {
        struct slice multi = slice_lit("*1\r\n$5\r\nMULTI\r\n");

        begin -= multi.len;
        memcpy(begin, multi.data, multi.len);
        end = put_text(end, slice_lit("*1\r\n$4\r\nEXEC\r\n"));
    }
    piece->next = NULL;
    piece->chunk = stage->chunk;
    piece->body = (struct slice){ begin, (size_t)(end - begin) };
    select = select_bytes(piece->db_first);
    piece->select = (struct slice){ begin - select, select };
    CHECK(put_select(begin - select, piece->db_first) == begin);
    piece->spare = stage->spare;
    piece->last = false;
    stage->spare = 0;
    stage->effects = 0;
    stage->given++;
    stage->free += round_up((size_t)(end - stage->free));
    leave_large(stage);
    return piece;
}
