/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of a journal increment, version 1. Lines end in CR LF, decimals are
 * padded with zeros and hashes are lower-case hex digits, so every field stands
 * at a fixed place.
 *
 *   offset  size  first line: 128 bytes
 *        0    18  "#BLOOMERY JOURNAL "
 *       18        version of this format, no zeros before it: "1 "
 *       20    41  run id of the server, 40 hex digits, and a blank
 *       61    17  key of this file's seals, random, 16 hex digits, and a blank
 *       78    15  when it was created, unix ms, 14 digits, and a blank
 *       93    17  blanks
 *      110    16  XXH3-64 of the 110 bytes before
 *      126     2  CR LF
 *
 *   offset  size  seal: 104 bytes, right behind its group
 *        0     4  "#XX:"
 *        4    17  sequence of the group, 16 digits, and ':'
 *       21    15  when it was sealed, unix ms, 14 digits, and ':'
 *       36    17  bytes of the group without the seal, 16 digits, and ':'
 *       53    17  durable sequence, 16 digits, and ':'
 *       70    16  tag: XXH3-64, seeded with the key, of the 70 bytes before
 *       86    16  hash: made like the tag, of the group and of these 70
 *      102     2  CR LF
 *
 * A group is one or more RESP commands, the first of them SELECT. Its items may
 * hold any bytes, also lines that look like seals: the tag unmasks these after
 * 70 bytes, so that the group need not be hashed. A copy of a real seal of the
 * same file has a correct tag. But its length does not reach back to where the
 * group begins, or its hash does not match the bytes there.
 *
 * In every later version the first 18 bytes, the version behind them and the
 * last 18 bytes of the first line keep their place and meaning, so that a file
 * of the future can be distinguished from a damaged one.
 */
#include "journal/group.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/err.h"
#include "base/hex.h"
#include "base/mem.h"

enum {
    LINE_AT_VERSION = 18,
    LINE_AT_RUN_ID = 20,
    LINE_AT_KEY = 61,
    LINE_AT_CREATED = 78,
    LINE_AT_BLANKS = 93,
    LINE_AT_HASH = 110,
    LINE_AT_END = 126,
    SEAL_AT_SEQUENCE = 4,
    SEAL_AT_TIME = 21,
    SEAL_AT_BYTES = 36,
    SEAL_AT_DURABLE = 53,
    SEAL_AT_TAG = 70,
    SEAL_AT_HASH = 86,
    SEAL_AT_END = 102,
    RUN_ID_DIGITS = 40,
    TIME_DIGITS = 14,
    NUMBER_DIGITS = 16,
    VERSION_DIGITS_MAX = 9
};

#define TIME_MAX 99999999999999U /* year 5138 */

static const char line_mark[] = "#BLOOMERY JOURNAL ";
static const char seal_mark[] = "#XX:";
static const char group_begin[] = "*2\r\n$6\r\nSELECT\r\n";

_Static_assert(sizeof(line_mark) - 1 == LINE_AT_VERSION, "the drawing");
_Static_assert(LINE_AT_END + 2 == GROUP_FIRST_LINE_BYTES, "the drawing");
_Static_assert(SEAL_AT_HASH + HEX_U64_CHARS == SEAL_AT_END, "the drawing");
_Static_assert(SEAL_AT_END + 2 == GROUP_SEAL_BYTES, "the drawing");

/* ---- fields -------------------------------------------------------------- */

static void
put_decimal(char *to, int digits, uint64_t value)
{
    while (digits-- > 0) {
        to[digits] = (char)('0' + value % 10);
        value /= 10;
    }
    CHECK(value == 0);
}

static bool
get_decimal(const char *from, int digits, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (int i = 0; i < digits; i++) {
        if (from[i] < '0' || from[i] > '9') {
            return false;
        }
        value = value * 10 + (uint64_t)(from[i] - '0');
    }
    *ret_value = value;
    return true;
}

static void
put_line_end(char *to)
{
    to[0] = '\r';
    to[1] = '\n';
}

static uint64_t
time_within(uint64_t unix_ms)
{
    return unix_ms < TIME_MAX ? unix_ms : TIME_MAX;
}

/* ---- the first line ------------------------------------------------------ */

void
group_write_first_line(const struct group_file *file, char *ret_line)
{
    CHECK(strlen(file->run_id) == RUN_ID_DIGITS);
    memset(ret_line, ' ', GROUP_FIRST_LINE_BYTES);
    memcpy(ret_line, line_mark, LINE_AT_VERSION);
    put_decimal(ret_line + LINE_AT_VERSION, 1, GROUP_VERSION);
    memcpy(ret_line + LINE_AT_RUN_ID, file->run_id, RUN_ID_DIGITS);
    hex_put_u64(ret_line + LINE_AT_KEY, file->key);
    put_decimal(ret_line + LINE_AT_CREATED, TIME_DIGITS,
                time_within(file->created_ms));
    hex_put_u64(ret_line + LINE_AT_HASH, XXH3_64bits(ret_line, LINE_AT_HASH));
    put_line_end(ret_line + LINE_AT_END);
}

static bool
get_version(const char *from, uint64_t *ret_version)
{
    int digits = 0;

    while (digits < VERSION_DIGITS_MAX && from[digits] >= '0' &&
           from[digits] <= '9') {
        digits++;
    }
    return digits > 0 && from[0] != '0' && from[digits] == ' ' &&
           get_decimal(from, digits, ret_version);
}

static bool
get_run_id(const char *from, char *ret_run_id)
{
    for (int i = 0; i < RUN_ID_DIGITS; i++) {
        if (strchr("0123456789abcdef", from[i]) == NULL || from[i] == '\0') {
            return false;
        }
    }
    memcpy(ret_run_id, from, RUN_ID_DIGITS);
    ret_run_id[RUN_ID_DIGITS] = '\0';
    return true;
}

static bool
are_blanks(const char *from, int count)
{
    for (int i = 0; i < count; i++) {
        if (from[i] != ' ') {
            return false;
        }
    }
    return true;
}

enum group_status
group_read_first_line(struct slice data, struct group_file *ret_file)
{
    struct group_file file = { 0 };
    const char *line = data.data;
    uint64_t version;
    uint64_t hash;

    if (data.len == 0) {
        return GROUP_END;
    }
    if (data.len < GROUP_FIRST_LINE_BYTES ||
        memcmp(line, line_mark, LINE_AT_VERSION) != 0 ||
        !get_version(line + LINE_AT_VERSION, &version) ||
        !hex_get_u64(line + LINE_AT_HASH, &hash) ||
        hash != XXH3_64bits(line, LINE_AT_HASH) ||
        memcmp(line + LINE_AT_END, "\r\n", 2) != 0) {
        return GROUP_DAMAGED;
    }
    if (version > GROUP_VERSION) {
        return GROUP_NEWER;
    }
    if (!get_run_id(line + LINE_AT_RUN_ID, file.run_id) ||
        !are_blanks(line + LINE_AT_KEY - 1, 1) ||
        !hex_get_u64(line + LINE_AT_KEY, &file.key) ||
        !are_blanks(line + LINE_AT_CREATED - 1, 1) ||
        !get_decimal(line + LINE_AT_CREATED, TIME_DIGITS, &file.created_ms) ||
        !are_blanks(line + LINE_AT_BLANKS - 1,
                    LINE_AT_HASH - LINE_AT_BLANKS + 1)) {
        return GROUP_DAMAGED;
    }
    *ret_file = file;
    return GROUP_OK;
}

/* ---- writing a seal ------------------------------------------------------ */

struct group_hash {
    _Alignas(64) XXH3_state_t state;
};

struct group_hash *
group_hash_new(void)
{
    struct group_hash *hash = mem_lines(sizeof(*hash));

    XXH3_INITSTATE(&hash->state);
    return hash;
}

void
group_hash_free(struct group_hash *hash)
{
    if (hash != NULL) {
        mem_free_lines(hash, sizeof(*hash));
    }
}

void
group_hash_begin(struct group_hash *hash, uint64_t key)
{
    XXH3_64bits_reset_withSeed(&hash->state, key);
}

void
group_hash_add(struct group_hash *hash, const void *data, size_t len)
{
    XXH3_64bits_update(&hash->state, data, len);
}

void
group_write_seal(struct group_hash *hash, uint64_t key,
                 const struct group_seal *seal, char *ret_seal)
{
    memcpy(ret_seal, seal_mark, SEAL_AT_SEQUENCE);
    put_decimal(ret_seal + SEAL_AT_SEQUENCE, NUMBER_DIGITS, seal->sequence);
    ret_seal[SEAL_AT_TIME - 1] = ':';
    put_decimal(ret_seal + SEAL_AT_TIME, TIME_DIGITS,
                time_within(seal->unix_ms));
    ret_seal[SEAL_AT_BYTES - 1] = ':';
    put_decimal(ret_seal + SEAL_AT_BYTES, NUMBER_DIGITS, seal->bytes);
    ret_seal[SEAL_AT_DURABLE - 1] = ':';
    put_decimal(ret_seal + SEAL_AT_DURABLE, NUMBER_DIGITS,
                seal->durable_sequence);
    ret_seal[SEAL_AT_TAG - 1] = ':';
    hex_put_u64(ret_seal + SEAL_AT_TAG,
                XXH3_64bits_withSeed(ret_seal, SEAL_AT_TAG, key));
    group_hash_add(hash, ret_seal, SEAL_AT_TAG);
    hex_put_u64(ret_seal + SEAL_AT_HASH, XXH3_64bits_digest(&hash->state));
    put_line_end(ret_seal + SEAL_AT_END);
}

/* ---- reading groups ------------------------------------------------------ */

/* Reads a seal and checks its tag; the caller checks the hash. */
static bool
read_seal(const char *at, uint64_t key, struct group_seal *ret_seal)
{
    uint64_t tag;

    return hex_get_u64(at + SEAL_AT_TAG, &tag) &&
           tag == XXH3_64bits_withSeed(at, SEAL_AT_TAG, key) &&
           memcmp(at + SEAL_AT_END, "\r\n", 2) == 0 &&
           at[SEAL_AT_TIME - 1] == ':' && at[SEAL_AT_BYTES - 1] == ':' &&
           at[SEAL_AT_DURABLE - 1] == ':' && at[SEAL_AT_TAG - 1] == ':' &&
           get_decimal(at + SEAL_AT_SEQUENCE, NUMBER_DIGITS,
                       &ret_seal->sequence) &&
           get_decimal(at + SEAL_AT_TIME, TIME_DIGITS, &ret_seal->unix_ms) &&
           get_decimal(at + SEAL_AT_BYTES, NUMBER_DIGITS, &ret_seal->bytes) &&
           get_decimal(at + SEAL_AT_DURABLE, NUMBER_DIGITS,
                       &ret_seal->durable_sequence);
}

/* Finds the next seal at or behind *at whose tag holds. A seal follows the end
 * of a line. memchr passes over commands faster than memmem does. */
static bool
find_seal(struct slice data, uint64_t key, size_t *at, struct group_seal *seal)
{
    const char *end = data.data + data.len;
    const char *from = data.data + *at;

    while ((size_t)(end - from) >= GROUP_SEAL_BYTES) {
        from = memchr(from, '#', (size_t)(end - from) - GROUP_SEAL_BYTES + 1);
        if (from == NULL) {
            return false;
        }
        if (from > data.data && from[-1] == '\n' &&
            memcmp(from, seal_mark, SEAL_AT_SEQUENCE) == 0 &&
            read_seal(from, key, seal)) {
            *at = (size_t)(from - data.data);
            return true;
        }
        from++;
    }
    return false;
}

static bool
begins_group(struct slice data, size_t offset)
{
    return data.len - offset >= sizeof(group_begin) - 1 &&
           memcmp(data.data + offset, group_begin, sizeof(group_begin) - 1) ==
               0;
}

/* Returns whether the seal at `at` has the hash of the bytes before it. The
 * caller has added these bytes to state. */
static bool
hash_holds(const XXH3_state_t *state, const char *at)
{
    XXH3_state_t copy;
    uint64_t hash;

    XXH3_copyState(&copy, state);
    XXH3_64bits_update(&copy, at, SEAL_AT_TAG);
    return hex_get_u64(at + SEAL_AT_HASH, &hash) &&
           hash == XXH3_64bits_digest(&copy);
}

enum group_status
group_read(struct slice data, uint64_t key, uint64_t offset,
           struct group *ret_group)
{
    size_t begin = (size_t)offset;
    size_t hashed = begin;
    size_t at = begin + sizeof(group_begin) - 1;
    XXH3_state_t state;
    struct group_seal seal;

    if (offset == data.len) {
        return GROUP_END;
    }
    if (offset > data.len || !begins_group(data, begin)) {
        return GROUP_DAMAGED;
    }
    /* Each byte is hashed only once, even if copies of seals have the right
     * length. */
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, key);
    for (; find_seal(data, key, &at, &seal); at++) {
        if (seal.bytes != at - begin) {
            continue;
        }
        XXH3_64bits_update(&state, data.data + hashed, at - hashed);
        hashed = at;
        if (hash_holds(&state, data.data + at)) {
            *ret_group = (struct group){
                .begin = begin,
                .end = at + GROUP_SEAL_BYTES,
                .commands = { data.data + begin, at - begin },
                .seal = seal,
            };
            return GROUP_OK;
        }
    }
    return GROUP_DAMAGED;
}

const char *
group_check(struct slice commands, const char *seal, uint64_t key,
            struct group_seal *ret_seal)
{
    struct group_seal fields;
    XXH3_state_t state;

    if (!begins_group(commands, 0)) {
        return "a group does not begin with SELECT";
    }
    if (memcmp(seal, seal_mark, SEAL_AT_SEQUENCE) != 0 ||
        !read_seal(seal, key, &fields)) {
        return "a seal is damaged, or was made with another key";
    }
    if (fields.bytes != commands.len) {
        return "a seal belongs to a group of another length";
    }
    /* The commands and the seal may be in different buffers. */
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, key);
    XXH3_64bits_update(&state, commands.data, commands.len);
    if (!hash_holds(&state, seal)) {
        return "a group is damaged: it does not match its seal";
    }
    *ret_seal = fields;
    return NULL;
}

uint64_t
group_seal_time(const char *seal)
{
    uint64_t unix_ms = 0;

    CHECK(get_decimal(seal + SEAL_AT_TIME, TIME_DIGITS, &unix_ms));
    return unix_ms;
}

/* Returns whether the group before the seal at `at` is complete, and does not
 * begin before `low`. */
static bool
is_intact(struct slice data, uint64_t key, size_t low, size_t at,
          const struct group_seal *seal)
{
    size_t begin = at - (size_t)seal->bytes;
    uint64_t hash;

    return seal->bytes <= at - low && seal->bytes >= sizeof(group_begin) - 1 &&
           begins_group(data, begin) &&
           hex_get_u64(data.data + at + SEAL_AT_HASH, &hash) &&
           hash == XXH3_64bits_withSeed(data.data + begin,
                                        (size_t)seal->bytes + SEAL_AT_TAG, key);
}

void
group_survey(struct slice data, uint64_t key, uint64_t offset,
             struct group_survey *ret_survey)
{
    struct group_survey survey = { 0 };
    /* Copies of seals could make the same bytes be hashed again and again, so
     * the work is limited. That may miss groups, but their number is only shown
     * to people. The durable sequence decides, and for that the tag is enough.
     */
    uint64_t budget = 8 * (uint64_t)data.len;
    size_t low = (size_t)offset;
    size_t at = low;
    struct group_seal seal;

    while (offset <= data.len && find_seal(data, key, &at, &seal)) {
        if (seal.durable_sequence > survey.durable_sequence) {
            survey.durable_sequence = seal.durable_sequence;
        }
        if (seal.bytes > budget || seal.sequence <= survey.last_sequence ||
            !is_intact(data, key, low, at, &seal)) {
            budget -= seal.bytes < budget ? seal.bytes : budget;
            at++;
            continue;
        }
        if (survey.groups == 0) {
            survey.first_offset = at - seal.bytes;
            survey.first_sequence = seal.sequence;
        }
        survey.last_sequence = seal.sequence;
        survey.groups++;
        at += GROUP_SEAL_BYTES;
        survey.bytes += seal.bytes + GROUP_SEAL_BYTES;
        low = at;
    }
    *ret_survey = survey;
}
