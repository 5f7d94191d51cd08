/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as an increment of a journal, each input in two ways: as it is, and
 * with every line that looks like a seal made one that holds for its tag, and
 * mostly for its group. Groups are compared with those that a slow reader
 * finds; what the rule about damage lets through is read again and is intact.
 */
#include "base/err.h"
#include "base/mem.h"
#include "journal/group.h"
#include "journal/verify.h"
#include "target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    SLOW_MAX = 8192 /* the slow reader is quadratic */
};

#define RUN_ID  "0123456789abcdef0123456789abcdef01234567"
#define COMMAND "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"

static bool
is_hex(const char *at, uint64_t value)
{
    char text[17];

    (void)snprintf(text, sizeof(text), "%016" PRIx64, value);
    return memcmp(at, text, 16) == 0;
}

/* Where the first group that begins at begin ends, 0 if none does: every place
 * where a seal may stand is tried. */
static size_t
slow_read(struct slice data, size_t begin)
{
    static const char select[] = "*2\r\n$6\r\nSELECT\r\n";

    if (data.len - begin < 16 || memcmp(data.data + begin, select, 16) != 0) {
        return 0;
    }
    for (size_t at = begin + 16; at + GROUP_SEAL_BYTES <= data.len; at++) {
        const char *seal = data.data + at;
        char bytes[18];

        (void)snprintf(bytes, sizeof(bytes), "%016zu:", at - begin);
        if (seal[-1] == '\n' && memcmp(seal, "#XX:", 4) == 0 &&
            memcmp(seal + 36, bytes, 17) == 0 &&
            strspn(seal + 4, "0123456789") == 16 && seal[20] == ':' &&
            strspn(seal + 21, "0123456789") == 14 && seal[35] == ':' &&
            strspn(seal + 53, "0123456789") == 16 && seal[69] == ':' &&
            is_hex(seal + FUZZ_SEAL_HASHED,
                   XXH3_64bits_withSeed(seal, FUZZ_SEAL_HASHED, FUZZ_KEY)) &&
            is_hex(seal + FUZZ_SEAL_TAG_END,
                   XXH3_64bits_withSeed(data.data + begin,
                                        at - begin + FUZZ_SEAL_HASHED,
                                        FUZZ_KEY)) &&
            memcmp(seal + 102, "\r\n", 2) == 0) {
            return at + GROUP_SEAL_BYTES;
        }
    }
    return 0;
}

/* All groups from offset on, one after the other. */
static void
check_groups(struct slice data, uint64_t offset)
{
    struct group group;
    struct group_survey survey;
    enum group_status status;

    group_survey(data, FUZZ_KEY, offset, &survey);
    CHECK(survey.bytes <= data.len - offset);
    CHECK((survey.groups == 0) == (survey.bytes == 0));
    for (;;) {
        status = group_read(data, FUZZ_KEY, offset, &group);
        if (data.len <= SLOW_MAX) {
            CHECK(slow_read(data, (size_t)offset) ==
                  (status == GROUP_OK ? group.end : 0));
        }
        if (status != GROUP_OK) {
            break;
        }
        CHECK(group.begin == offset && group.end <= data.len);
        CHECK(group.commands.data == data.data + offset);
        CHECK(group.commands.len == group.seal.bytes);
        CHECK(group.end == offset + group.seal.bytes + GROUP_SEAL_BYTES);
        CHECK(survey.durable_sequence >= group.seal.durable_sequence);
        offset = group.end;
    }
    CHECK((status == GROUP_END) == (offset == data.len));
}

/* The input as two files, what is let through as two shorter ones. */
static void
check_rule(struct slice data, bool closed)
{
    size_t half = data.len / 2;
    struct verify_file files[2] = {
        { .data = { data.data, half }, .closed = closed, .bytes = half },
        { .data = { data.data + half, data.len - half } }
    };
    struct verify_result result;
    struct verify_result again;
    char text[VERIFY_TEXT_MAX];
    uint64_t position = 7;

    for (uint32_t count = 1; count <= 2; count++) {
        if (count == 1) {
            files[0].data = data;
            files[0].closed = false;
        } else {
            files[0].data.len = half;
            files[0].closed = closed;
        }
        if (verify_increments(files, count, 7, 0, &result) != VERIFY_OK) {
            verify_describe(&result, text, sizeof(text));
            CHECK(result.file < count);
            CHECK(result.status == VERIFY_REFUSED ||
                  result.behind.durable_sequence < result.expected);
        }
        if (result.status == VERIFY_REFUSED) {
            continue;
        }
        position = 7;
        for (uint32_t i = 0; i < count; i++) {
            CHECK(files[i].end <= files[i].data.len);
            files[i].data.len = (size_t)files[i].end;
            position += files[i].end - GROUP_FIRST_LINE_BYTES;
        }
        CHECK(result.position == position);
        CHECK(result.sequence == result.groups);
        CHECK(verify_increments(files, count, 7, 0, &again) == VERIFY_OK);
        CHECK(again.position == position && again.groups == result.groups);
    }
}

static void
check_first_line(struct slice data)
{
    struct group_file file;
    char line[GROUP_FIRST_LINE_BYTES];

    if (group_read_first_line(data, &file) == GROUP_OK) {
        group_write_first_line(&file, line);
        CHECK(memcmp(line, data.data, sizeof(line)) == 0);
    }
}

static void
play(struct slice data)
{
    check_first_line(data);
    check_groups(data, 0);
    if (data.len >= GROUP_FIRST_LINE_BYTES) {
        check_groups(data, GROUP_FIRST_LINE_BYTES);
    }
    check_rule(data, false);
    check_rule(data, true);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct group_file file = { .key = FUZZ_KEY, .run_id = RUN_ID };
    char *copy = mem_alloc(size + GROUP_FIRST_LINE_BYTES);
    size_t begin = GROUP_FIRST_LINE_BYTES;
    size_t len = size + GROUP_FIRST_LINE_BYTES;

    play((struct slice){ (const char *)data, size });
    group_write_first_line(&file, copy);
    if (size > 0) {
        memcpy(copy + begin, data, size);
    }
    for (size_t at = begin; at + GROUP_SEAL_BYTES <= len; at++) {
        if (memcmp(copy + at, "#XX:", 4) == 0 && copy[at - 1] == '\n') {
            fuzz_seal(copy, begin, at);
            begin = at + GROUP_SEAL_BYTES;
            at = begin - 1;
        }
    }
    play((struct slice){ copy, len });
    mem_free(copy);
    return 0;
}

/* ---- inputs for replay.c: groups in sequence, some damaged --------------- */

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    uint64_t sequence = 1;
    size_t size = 0;

    for (uint64_t left = 1 + fuzz_next(&random) % 6; left > 0; left--) {
        char text[512];
        int len = snprintf(text, sizeof(text), COMMAND);

        for (uint64_t n = fuzz_next(&random) % 4; n > 0; n--) {
            len += snprintf(text + len, sizeof(text) - (size_t)len,
                            "$3\r\n#XX\r\n%s",
                            fuzz_next(&random) % 4 == 0 ? "#XX:\r\n" : "");
        }
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        "#XX:%016" PRIu64 ":%014" PRIu64 ":%016d:%016" PRIu64
                        ":%032d\r\n",
                        sequence, fuzz_next(&random) % 100, len,
                        fuzz_next(&random) % (sequence + 1), 0);
        sequence += fuzz_next(&random) % 8 != 0;
        CHECK(size + (size_t)len <= max);
        memcpy(to + size, text, (size_t)len);
        size += (size_t)len;
    }
    for (uint64_t left = fuzz_next(&random) % 3; left > 0; left--) {
        to[fuzz_next(&random) % size] ^= (uint8_t)(1 << fuzz_next(&random) % 8);
    }
    return size - (fuzz_next(&random) % 4 == 0 ? fuzz_next(&random) % size : 0);
}
