/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a write says that it did: for every write row of the command table at
 * least one case that runs it without a socket and compares the effect with
 * what it must be. Then how effects find their way into the journal: room made
 * before anything happens. Who waits for them is in test_effect_position.c.
 */
#include "engine/effect.h"

#include "base/metrics.h"
#include "command/rows.h"
#include "dispatch_help.h"

#include <stdlib.h>

/* ---- a case for every write row --------------------------------------------
 */

#define CREATED(key)                                                           \
    "BF.INSERT " key " CAPACITY 100 ERROR 0.01 TIGHTENING 0.5 SEED <seed>"     \
    " EXPANSION 2 STRIPES 1 LINES 2 INCARNATION <n>"
#define DELETABLE                                                              \
    "BF.INSERT k CAPACITY 100 ERROR 0.01 TIGHTENING 0.5 SEED <seed>"           \
    " EXPANSION 2 DELETABLE 2 STRIPES 1 LINES 2 INCARNATION <n>"
#define AGEING                                                                 \
    "BF.INSERT k CAPACITY 800 ERROR 0.09 TIGHTENING 0.5 SEED <seed>"           \
    " EXPANSION 2 AGEING 99999999 GENERATIONS 8 AT <t> STRIPES 1 LINES 2"      \
    " INCARNATION <n>"
#define RESERVE_AGEING "BF.RESERVE k 0.09 800 AGEING 99999999"
#define FULL           "BF.INSERT k CAPACITY 2 NONSCALING ITEMS a b"
#define NO             "" /* no effect */

struct effect_case {
    enum command_id id;
    const char *before, *command;
    const char *effect; /* @n is the time of the command plus n ms */
};

static const struct effect_case cases[] = {
    { CMD_ID_BF_ADD, "", "BF.ADD k a", "0: " CREATED("k") " ITEMS a" },
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k b", "0: BF.ADD k b" },
    { CMD_ID_BF_ADD, "BF.ADD k a", "bf.add k b", "0: bf.add k b" },
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k a", NO },
    { CMD_ID_BF_ADD, FULL, "BF.ADD k c", NO },
    { CMD_ID_BF_ADD, "", "BF.ADD k a; BF.ADD k a; BF.ADD k b",
      "0: " CREATED("k") " ITEMS a\n0: BF.ADD k b" },
    { CMD_ID_BF_ADD, "SELECT 3", "BF.ADD k a", "3: " CREATED("k") " ITEMS a" },
    { CMD_ID_BF_MADD, "", "BF.MADD k a b a", "0: " CREATED("k") " ITEMS a b" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k a b", "0: BF.MADD k b" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "bf.madd k b c", "0: bf.madd k b c" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k b a c b d",
      "0: BF.MADD k b c d" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k a a", NO },
    { CMD_ID_BF_MADD, "BF.INSERT k CAPACITY 3 NONSCALING ITEMS a b",
      "BF.MADD k b c d e", "0: BF.MADD k c" },
    { CMD_ID_BF_MADD, FULL, "BF.MADD k c d", NO },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k", "0: " CREATED("k") },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k ITEMS a b",
      "0: " CREATED("k") " ITEMS a b" },
    { CMD_ID_BF_INSERT, "",
      "BF.INSERT k ERROR 1e-9 CAPACITY 10 TIGHTENING 0.25 SEED <seed> "
      "EXPANSION 4 VALIDATESCALETO 20 ITEMS a",
      "0: BF.INSERT k CAPACITY 10 ERROR 0.000000001 TIGHTENING 0.25 SEED "
      "<seed> EXPANSION 4 STRIPES 3 LINES 1 INCARNATION <n> ITEMS a" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k CAPACITY 2 NONSCALING ITEMS a b c d",
      "0: BF.INSERT k CAPACITY 2 ERROR 0.01 TIGHTENING 0.5 SEED <seed> "
      "NONSCALING STRIPES 1 LINES 1 INCARNATION <n> ITEMS a b" },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k CAPACITY 7 ITEMS b",
      "0: BF.INSERT k CAPACITY 7 ITEMS b" },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k ITEMS a", NO },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k CAPACITY 7 ITEMS a b",
      "0: BF.MADD k b" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k NOCREATE ITEMS a", NO },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.01 100", "0: " CREATED("k") },
    { CMD_ID_BF_RESERVE, "BF.ADD k a", "BF.RESERVE k 0.01 100", NO },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.01 100 DELETABLE",
      "0: " DELETABLE },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k DELETABLE ITEMS a b a",
      "0: " DELETABLE " PLACED + a + b 0 a" },
    { CMD_ID_BF_ADD, "BF.RESERVE k 0.01 100 DELETABLE",
      "BF.ADD k a; BF.ADD k a",
      "0: BF.INSERT k PLACED + a\n0: BF.INSERT k PLACED 0 a" },
    { CMD_ID_BF_MADD, "BF.RESERVE k 0.01 100 DELETABLE", "BF.MADD k a b a",
      "0: BF.INSERT k PLACED + a + b 0 a" },
    { CMD_ID_BF_RESERVE, "", RESERVE_AGEING, "0: " AGEING },
    { CMD_ID_BF_INSERT, "",
      "BF.INSERT k AGEING 99999999 CAPACITY 800 ERROR 0.09 ITEMS a b a",
      "0: " AGEING " ITEMS a b" },
    { CMD_ID_BF_ADD, RESERVE_AGEING, "BF.ADD k a; BF.ADD k a",
      "0: BF.INSERT k AT <t> ITEMS a" },
    { CMD_ID_BF_MADD, RESERVE_AGEING, "BF.MADD k a b a",
      "0: BF.INSERT k AT <t> ITEMS a b" },
    { CMD_ID_BF_MADD, RESERVE_AGEING "; BF.ADD k a", "BF.MADD k a a", NO },
    { CMD_ID_BF_INSERT, RESERVE_AGEING, "BF.INSERT k AGEING 5 ITEMS a",
      "0: BF.INSERT k AT <t> ITEMS a" },
    { CMD_ID_BF_DEL, "BF.INSERT k DELETABLE ITEMS a b", "BF.DEL k a",
      "0: BF.MDEL k PLACED 0:8 a" },
    { CMD_ID_BF_DEL, "BF.INSERT k DELETABLE ITEMS a b", "BF.DEL k c", NO },
    { CMD_ID_BF_DEL, "BF.INSERT k DELETABLE ITEMS a a", "BF.DEL k a", NO },
    { CMD_ID_BF_DEL, "", "BF.DEL k a", NO },
    { CMD_ID_BF_DEL, "BF.ADD k a", "BF.DEL k a", NO },
    { CMD_ID_BF_MDEL, "BF.INSERT k DELETABLE ITEMS a b c d d",
      "BF.MDEL k x a d b", "0: BF.MDEL k PLACED 0:8 a 0:8 b" },
    { CMD_ID_BF_MDEL, "BF.INSERT k DELETABLE ITEMS a", "BF.MDEL k x y", NO },
    { CMD_ID_BF_RESET, "BF.ADD k a", "BF.RESET k", "0: BF.RESET k" },
    { CMD_ID_BF_RESET, "", "BF.RESET k", NO },
    { CMD_ID_BF_MERGE, "BF.ADD a x; BF.ADD b y", "BF.MERGE k a b",
      "0: BF.MERGE k a b INCARNATION <n>" },
    { CMD_ID_BF_MERGE, "BF.ADD a x; BF.ADD k y", "BF.MERGE k a INCARNATION 7",
      NO }, /* two names that are missing */
    { CMD_ID_BF_MERGE, "BF.ADD a x; BF.ADD k y", "bf.merge k a k",
      "0: bf.merge k a k INCARNATION <n>" },
    { CMD_ID_BF_MERGE, "BF.ADD a x; BF.RESERVE k 0.1 5", "BF.MERGE k a", NO },
    { CMD_ID_BF_MERGE, "BF.ADD a x", "BF.MERGE k a b", NO },
    { CMD_ID_DEL, "BF.ADD k a", "DEL k", "0: DEL k" },
    { CMD_ID_DEL, "BF.ADD k a", "DEL x k y", "0: DEL x k y" },
    { CMD_ID_DEL, "", "DEL k", NO },
    { CMD_ID_UNLINK, "BF.ADD k a", "UNLINK k", "0: UNLINK k" },
    { CMD_ID_UNLINK, "", "UNLINK k", NO },
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k 100 NX",
      "0: PEXPIREAT k @100000" },
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k 100 XX", NO },
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k -1", "0: DEL k" },
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k 0", "0: DEL k" },
    { CMD_ID_EXPIRE, "", "EXPIRE k 100", NO },
    { CMD_ID_PEXPIRE, "BF.ADD k a", "PEXPIRE k 100000",
      "0: PEXPIREAT k @100000" },
    { CMD_ID_PEXPIRE, "BF.ADD k a", "PEXPIRE k -9223372036854775808",
      "0: DEL k" },
    { CMD_ID_EXPIREAT, "BF.ADD k a", "EXPIREAT k 33000000000",
      "0: PEXPIREAT k 33000000000000" },
    { CMD_ID_EXPIREAT, "BF.ADD k a", "EXPIREAT k 1", "0: DEL k" },
    { CMD_ID_PEXPIREAT, "BF.ADD k a", "PEXPIREAT k 33000000000000 GT", NO },
    { CMD_ID_PEXPIREAT, "BF.ADD k a", "PEXPIREAT k 33000000000000 LT",
      "0: PEXPIREAT k 33000000000000" },
    { CMD_ID_PEXPIREAT, "BF.ADD k a", "PEXPIREAT k -5", "0: DEL k" },
    { CMD_ID_COPY, "BF.ADD k a", "COPY k l",
      "0: COPY k l REPLACE INCARNATION <n>" },
    { CMD_ID_COPY, "BF.ADD k a; BF.ADD l a", "COPY k l", NO },
    { CMD_ID_COPY, "BF.ADD k a", "COPY k k DB 2 REPLACE",
      "0: COPY k k DB 2 REPLACE INCARNATION <n>" },
    { CMD_ID_RENAME, "BF.ADD k a", "rename k l", "0: RENAME k l" },
    { CMD_ID_RENAME, "BF.ADD k a; BF.ADD l b", "RENAME k l", "0: RENAME k l" },
    { CMD_ID_RENAME, "BF.ADD k a", "RENAME k k", NO },
    { CMD_ID_RENAME, "", "RENAME k l", NO },
    { CMD_ID_RENAMENX, "BF.ADD k a", "RENAMENX k l", "0: RENAME k l" },
    { CMD_ID_RENAMENX, "BF.ADD k a; BF.ADD l b", "RENAMENX k l", NO },
    { CMD_ID_RENAMENX, "BF.ADD k a", "RENAMENX k k", NO },
    { CMD_ID_MOVE, "BF.ADD k a", "MOVE k 3", "0: MOVE k 3" },
    { CMD_ID_MOVE, "SELECT 2; BF.ADD k a", "MOVE k 0", "2: MOVE k 0" },
    { CMD_ID_MOVE, "BF.ADD k a; COPY k k DB 3", "MOVE k 3", NO },
    { CMD_ID_MOVE, "", "MOVE k 3", NO },
    { CMD_ID_PERSIST, "BF.ADD k a; EXPIRE k 100", "PERSIST k", "0: PERSIST k" },
    { CMD_ID_PERSIST, "BF.ADD k a", "PERSIST k", NO },
    { CMD_ID_FLUSHDB, "SELECT 2; BF.ADD k a", "FLUSHDB", "2: FLUSHDB" },
    { CMD_ID_FLUSHDB, "", "FLUSHDB SYNC", "0: FLUSHDB SYNC" },
    { CMD_ID_FLUSHALL, "BF.ADD k a", "FLUSHALL", "0: FLUSHALL" },
    { CMD_ID_SWAPDB, "BF.ADD k a", "SWAPDB 0 3", "0: SWAPDB 0 3" },
    { CMD_ID_FLUSHALL, "", "FLUSHALL ASYNC", "0: FLUSHALL ASYNC" },
    { CMD_ID_BF_ADD, "BF.ADD k a",
      "MULTI; BF.ADD k b; BF.ADD k b; DEL k; BF.ADD k c; EXEC",
      "begin\n0: BF.ADD k b\n0: DEL k\n0: " CREATED("k") " ITEMS c\nend" },
};

/* The time of the key k of databases 0 and 3, and of m, is over, and nobody has
 * noticed yet. */
static const struct effect_case over_cases[] = {
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k a",
      "0: DEL k\n0: " CREATED("k") " ITEMS a" },
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k a; BF.ADD k b; BF.ADD k a",
      "0: DEL k\n0: " CREATED("k") " ITEMS a\n0: BF.ADD k b" },
    { CMD_ID_BF_ADD, "BF.ADD k a", "MULTI; BF.ADD k a; EXEC",
      "begin\n0: DEL k\n0: " CREATED("k") " ITEMS a\nend" },
    { CMD_ID_BF_ADD, "BF.ADD k a", "MULTI; BF.RESET k; EXEC", "0: DEL k" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k a b",
      "0: DEL k\n0: " CREATED("k") " ITEMS a b" },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k",
      "0: DEL k\n0: " CREATED("k") },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k NOCREATE ITEMS a",
      "0: DEL k" },
    { CMD_ID_BF_RESERVE, "BF.ADD k a", "BF.RESERVE k 0.01 100",
      "0: DEL k\n0: " CREATED("k") },
    { CMD_ID_BF_RESERVE, "BF.ADD k a", "BF.RESERVE k 2 100", NO },
    { CMD_ID_BF_RESET, "BF.ADD k a", "BF.RESET k", "0: DEL k" },
    { CMD_ID_BF_MERGE, "BF.ADD k a; BF.ADD l a", "BF.MERGE k l",
      "0: DEL k\n0: BF.MERGE k l INCARNATION <n>" },
    { CMD_ID_BF_MERGE, "BF.ADD k a", "BF.MERGE k l", "0: DEL k" },
    { CMD_ID_BF_MERGE, "BF.ADD k a; BF.ADD l a", "BF.MERGE l k", NO },
    { CMD_ID_DEL, "BF.ADD k a", "DEL k", "0: DEL k" },
    { CMD_ID_DEL, "BF.ADD k a; BF.ADD l a", "DEL l k k",
      "0: DEL k\n0: DEL l k k" },
    { CMD_ID_UNLINK, "BF.ADD k a; BF.ADD m a", "UNLINK k m",
      "0: DEL k\n0: DEL m" },
    { CMD_ID_RENAME, "BF.ADD k a; BF.ADD l a", "RENAME l k",
      "0: DEL k\n0: RENAME l k" },
    { CMD_ID_RENAME, "BF.ADD k a; BF.ADD l a", "RENAME k l", "0: DEL k" },
    { CMD_ID_RENAMENX, "BF.ADD k a; BF.ADD l a", "RENAMENX l k",
      "0: DEL k\n0: RENAME l k" },
    { CMD_ID_MOVE, "BF.ADD k a", "MOVE k 3", "0: DEL k" },
    { CMD_ID_MOVE, "SELECT 3; BF.ADD k a; SELECT 2; BF.ADD k b", "MOVE k 3",
      "3: DEL k\n2: MOVE k 3" },
    { CMD_ID_COPY, "BF.ADD k a; BF.ADD l a", "COPY l k",
      "0: DEL k\n0: COPY l k REPLACE INCARNATION <n>" },
    { CMD_ID_COPY, "SELECT 3; BF.ADD k a; SELECT 2; BF.ADD k b",
      "COPY k k DB 3", "3: DEL k\n2: COPY k k DB 3 REPLACE INCARNATION <n>" },
    { CMD_ID_COPY, "BF.ADD k a", "COPY k l", NO }, /* it only looks */
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k 100", NO },
    { CMD_ID_PERSIST, "BF.ADD k a", "PERSIST k", NO },
    { CMD_ID_FLUSHALL, "BF.ADD k a", "FLUSHALL", "0: FLUSHALL" },
    { CMD_ID_SELECT, "BF.ADD k a", "BF.EXISTS k a; EXISTS k; GET k; TTL k",
      NO },
};

/* What was said in RedisBloom's words is journaled in valkey-bloom's, with the
 * rate that the first layer has: half of the asked one if the filter scales. */
#define HALVED                                                                 \
    "BF.INSERT k CAPACITY 100 ERROR 0.005 TIGHTENING 0.5 SEED <seed>"          \
    " EXPANSION 2 STRIPES 1 LINES 3 INCARNATION <n>"
static const struct effect_case redis_cases[] = {
    { CMD_ID_BF_ADD, "", "BF.ADD k a", "0: " HALVED " ITEMS a" },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.01 100 junk", "0: " HALVED },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.9 2 EXPANSION 0",
      "0: BF.INSERT k CAPACITY 2 ERROR 0.25 TIGHTENING 0.5 SEED <seed> "
      "NONSCALING STRIPES 1 LINES 1 INCARNATION <n>" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k E 2 i a b",
      "0: " HALVED " ITEMS a b" },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k EXPANSION 0 i a b",
      "0: BF.MADD k b" },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k ITEMS a", NO },
    { CMD_ID_BF_INSERT, "BF.INSERT k CAPACITY 2 NONSCALING ITEMS a",
      "BF.INSERT k ITEMS a b c", "0: BF.MADD k b" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k a b", "0: BF.MADD k b" },
};

/* @n becomes the number now_ms + n. */
static void
expand(const char *effect, uint64_t now_ms, struct buf *ret_text)
{
    for (; *effect != '\0'; effect++) {
        if (*effect == '@') {
            char *end;
            uint64_t after_ms = strtoull(effect + 1, &end, 10);

            buf_printf(ret_text, "%" PRIu64, now_ms + after_ms);
            effect = end - 1;
        } else {
            buf_append(ret_text, effect, 1);
        }
    }
}

static void
check_case(const struct effect_case *c, const char *dialect, bool together,
           bool over)
{
    struct rig *rig = rig_new();
    struct buf expected = { 0 };

    set_option(rig, "dialect", dialect);
    run_text(rig, c->before, together);
    effects_clear(rig);
    if (over) {
        end_time_of(rig, "k", 0);
        end_time_of(rig, "k", 3);
        end_time_of(rig, "m", 0);
    }
    run_text(rig, c->command, together);
    effects_take(rig);
    expand(c->effect, rig->worker->now_ms, &expected);
    if (!slice_equal(buf_slice(&expected), buf_slice(&rig->effects.text))) {
        fail_msg("after [%s], [%s] left\n%.*s\nand not\n%.*s", c->before,
                 c->command, (int)rig->effects.text.len,
                 rig->effects.text.len > 0 ? rig->effects.text.data : "",
                 (int)expected.len, expected.len > 0 ? expected.data : "");
    }
    buf_free(&expected);
    rig_free(rig);
}

TEST(each_write_leaves_the_effect_that_repeats_it)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_case(&cases[i], "valkey", false, false);
        check_case(&cases[i], "valkey", true, false);
    }
}

TEST(a_key_whose_time_is_over_goes_before_what_comes_in_its_place)
{
    for (size_t i = 0; i < sizeof(over_cases) / sizeof(over_cases[0]); i++) {
        check_case(&over_cases[i], "valkey", false, true);
        check_case(&over_cases[i], "valkey", true, true);
    }
}

TEST(effects_have_one_grammar_in_both_dialects)
{
    for (size_t i = 0; i < sizeof(redis_cases) / sizeof(redis_cases[0]); i++) {
        check_case(&redis_cases[i], "redis", false, false);
        check_case(&redis_cases[i], "redis", true, false);
    }
}

TEST(each_write_row_has_a_case_with_an_effect)
{
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        bool found = (command_rows[id].flags & CMD_WRITE) == 0 ||
                     id == CMD_ID_RESTORE || /* below */
                     id == CMD_ID_BF_LOAD || /* scenario/test_replicated_... */
                     id == CMD_ID_BF_LOADCHUNK;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            found = found || (cases[i].id == id && cases[i].effect[0] != '\0');
        }
        if (!found) {
            fail_msg("%s writes and has no case here", command_rows[id].name);
        }
    }
}

/* Of many items, several batches of them, exactly those that were new. */
TEST(an_effect_of_adds_lists_what_was_new_in_order)
{
    static const char *const forms[] = { "BF.MADD k", "BF.INSERT k ITEMS",
                                         "BF.INSERT n ERROR 0.000001 ITEMS" };
    uint64_t random = test_seed();

    for (unsigned round = 0; round < 60; round++) {
        const char *form = forms[round % 3];
        struct rig *rig = rig_new();
        char line[4096];
        char expected[4096];
        size_t len = (size_t)snprintf(line, sizeof(line), "%s", form);
        size_t end = 0;
        bool seen[100] = { false };

        run_text(rig, "BF.RESERVE k 0.000001 1000; BF.MADD k i3 i7", true);
        seen[3] = seen[7] = round % 3 != 2;
        effects_clear(rig);
        for (unsigned i = 0; i < 300; i++) {
            unsigned item = i < round * 5 && round < 20
                                ? 10 + i % 90
                                : (unsigned)test_random_below(&random, 100);

            len +=
                (size_t)snprintf(line + len, sizeof(line) - len, " i%u", item);
            if (!seen[item]) {
                end += (size_t)snprintf(expected + end, sizeof(expected) - end,
                                        " i%u", item);
            }
            seen[item] = true;
        }
        batch_begin(rig);
        batch_text(rig, line);
        batch_run(rig);
        effects_take(rig);
        buf_append(&rig->effects.text, "", 1);
        if (strstr(rig->effects.text.data, expected) == NULL ||
            strlen(strstr(rig->effects.text.data, " i")) != end) {
            fail_msg("%s\nis not of%s", rig->effects.text.data, expected);
        }
        rig_free(rig);
    }
}

TEST(a_restore_leaves_the_payload_and_all_that_chance_decided)
{
    static const char tail[] = " ABSTTL REPLACE INCARNATION <n>";
    struct rig *rig = rig_new();
    struct slice text;
    struct buf payload = { 0 };

    run_text(rig, "BF.ADD k a; DUMP k", false);
    buf_append(&payload, strchr(rig->out.data, '\n') + 1,
               (size_t)strtoul(rig->out.data + 1, NULL, 10));
    effects_clear(rig);
    batch_begin(rig);
    batch_text(rig, "RESTORE l 0");
    batch_word(rig, buf_slice(&payload));
    batch_run(rig);
    effects_take(rig);
    text = buf_slice(&rig->effects.text);
    assert_int_equal(1, rig->effects.count);
    assert_int_equal(15 + payload.len + sizeof(tail) - 1, text.len);
    assert_memory_equal("0: RESTORE l 0 ", text.data, 15);
    assert_memory_equal(payload.data, text.data + 15, payload.len);
    assert_memory_equal(tail, text.data + 15 + payload.len, sizeof(tail) - 1);
    buf_free(&payload);
    rig_free(rig);
}

/* Commands that were parsed where they lie are journaled as they came, but for
 * those that MULTI kept; the bytes are the same as of words. */
TEST(bytes_as_they_came_are_the_bytes_that_words_give)
{
    static const char came[] =
        "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$12\r\n123456789012\r\n"
        "*4\r\n$7\r\nbf.madd\r\n$1\r\nk\r\n$1\r\nb\r\n$0\r\n\r\n"
        "*1\r\n$5\r\nMULTI\r\n"
        "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$1\r\nc\r\n"
        "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
        "*1\r\n$4\r\nEXEC\r\n";
    static const struct parse_limits limits = { .args_max = 100,
                                                .bulk_max = 100,
                                                .query_max = 1000 };
    struct rig *rig = rig_new();
    size_t at = 0;

    run_text(rig, "BF.ADD k a", true);
    effects_clear(rig);
    batch_clear(&rig->batch);
    assert_int_equal(OK,
                     scan_commands(slice_lit(came), &limits, &rig->batch, &at));
    assert_true(rig->batch.in_place);
    batch_run(rig);
    effects_take(rig);
    assert_int_equal(23 + sizeof(came) - 1, rig->effects.raw.len);
    assert_memory_equal(came, rig->effects.raw.data + 23, sizeof(came) - 1);
    rig_free(rig);
}

TEST(reads_leave_no_effect)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a; EXPIRE k 100", true);
    effects_clear(rig);
    run_text(rig,
             "BF.EXISTS k a; BF.MEXISTS k a b; BF.CARD k; BF.INFO k; EXISTS k;"
             "TYPE k; TOUCH k; KEYS *; SCAN 0; DBSIZE; RANDOMKEY; TTL k; "
             "PTTL k; EXPIRETIME k; PEXPIRETIME k; GET k; OBJECT IDLETIME k; "
             "OBJECT FREQ k; OBJECT REFCOUNT k; OBJECT ENCODING k",
             true);
    effects_take(rig);
    assert_int_equal(0, rig->effects.count);
    rig_free(rig);
}

/* ---- room ----------------------------------------------------------------
 */

/* As many names of one stripe as a run may have. */
static void
batch_run_of_names(struct rig *rig, unsigned count)
{
    unsigned stripe = keyspace_stripe_of(hash_name(slice_lit("n0")));

    batch_begin(rig);
    for (unsigned i = 0; count > 0; i++) {
        char line[64];
        int len = snprintf(line, sizeof(line), "BF.ADD n%u item", i);
        struct slice name = { line + 7, (size_t)len - 7 - 5 };

        if (keyspace_stripe_of(hash_name(name)) == stripe) {
            batch_text(rig, line);
            count--;
        }
    }
}

TEST(a_run_has_room_for_as_many_creations_as_names)
{
    struct rig *rig = rig_new();

    batch_run_of_names(rig, 64);
    batch_run(rig);
    effects_take(rig);
    assert_int_equal(64, rig->effects.count);
    rig_free(rig);
}

/* The longest texts that numbers have. */
TEST(a_creation_of_the_longest_words_has_room)
{
    struct rig *rig = rig_new();

    set_option(rig, "bf.bloom-capacity", "1");
    set_option(rig, "bf.bloom-fp-rate", "2.2250738585072011e-308");
    set_option(rig, "bf.bloom-tightening-ratio", "4.9406564584124654e-324");
    set_option(rig, "bf.bloom-expansion", "4294967295");
    run_text(rig, "BF.ADD k item", true);
    assert_memory_equal(":1", rig->out.data, 2);
    effects_take(rig);
    assert_int_equal(1, rig->effects.count);
    assert_true(rig->effects.raw.len > 900);
    rig_free(rig);
}

/* No command's own words leave that much room. */
TEST(long_names_that_are_over_have_room)
{
    enum { LONG = 100000 };
    struct rig *rig = rig_new();
    static char name[2][LONG + 1];

    for (int i = 0; i < 2; i++) {
        memset(name[i], 'a' + i, LONG);
        batch_begin(rig);
        batch_text(rig, "BF.RESERVE");
        batch_word(rig, (struct slice){ name[i], LONG });
        batch_word(rig, slice_lit("0.01"));
        batch_word(rig, slice_lit("100"));
        batch_run(rig);
        end_time_of(rig, name[i], 0);
    }
    effects_clear(rig);
    batch_begin(rig);
    batch_text(rig, "BF.ADD");
    batch_word(rig, (struct slice){ name[0], LONG });
    batch_word(rig, slice_lit("item"));
    batch_text(rig, "DEL");
    batch_word(rig, (struct slice){ name[1], LONG });
    batch_run(rig);
    effects_take(rig);
    assert_int_equal(3, rig->effects.count);
    rig_free(rig);
}

struct park_case {
    const char *before, *command;
    bool parks;
};

static const struct park_case park_cases[] = {
    { "", "BF.ADD k b", true },
    { "", "BF.MADD k b c", true },
    { "", "DEL k", true },
    { "", "FLUSHALL", true },
    { "MULTI; BF.ADD k b", "EXEC", true },
    { "", "BF.EXISTS k a", false },
    { "", "BF.CARD k", false },
    { "", "DBSIZE", false },
    { "MULTI; BF.EXISTS k b", "EXEC", false },
    { "MULTI", "BF.ADD k b", false }, /* queued */
};

/* Runs what is in the batch; returns how many were done. */
static uint32_t
run_once(struct rig *rig)
{
    rig->out.len = 0;
    return dispatch_batch(rig->worker, &rig->session, &rig->batch, 0,
                          UINT64_MAX, &rig->out);
}

TEST(writes_wait_for_room_before_they_do_anything)
{
    for (size_t i = 0; i < sizeof(park_cases) / sizeof(park_cases[0]); i++) {
        const struct park_case *c = &park_cases[i];
        struct rig *rig = rig_new();

        run_text(rig, "BF.ADD k a", true);
        run_text(rig, c->before, true);
        journal_set_limit(rig->journal, 1);
        batch_begin(rig);
        batch_text(rig, c->command);
        assert_int_equal(c->parks ? 0 : 1, run_once(rig));
        assert_int_equal(c->parks ? CONN_FOR_ROOM : CONN_RUNS,
                         rig->session.wait);
        assert_int_equal(c->parks, rig->out.len == 0);
        if (c->parks) {
            effects_clear(rig);
            assert_int_equal(1, run_once(rig));
            assert_int_equal(CONN_RUNS, rig->session.wait);
            effects_take(rig);
            assert_true(rig->effects.count > 0);
        }
        rig_free(rig);
    }
}

TEST(a_batch_stops_at_the_write_that_waits)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a", true);
    journal_set_limit(rig->journal, 1);
    batch_begin(rig);
    batch_text(rig, "BF.EXISTS k a");
    batch_text(rig, "PING");
    batch_text(rig, "BF.ADD k b");
    batch_text(rig, "PING");
    assert_int_equal(2, run_once(rig));
    assert_true(
        slice_equal(slice_lit(":1\r\n+PONG\r\n"), buf_slice(&rig->out)));
    rig_free(rig);
}

/* The stage is empty, so that the first allocation is for it. A run that gets
 * none is tried again one by one, with less. */
TEST(without_memory_for_its_effect_a_write_does_nothing)
{
    static const char *const writes[] = { "BF.MADD k b", "DEL k", "FLUSHALL" };

    for (int i = 0; i < 3; i++) {
        struct rig *rig = rig_new();

        rig->service.journal = NULL;
        run_text(rig, "BF.ADD k a", true);
        rig->service.journal = rig->journal;
        batch_begin(rig);
        batch_text(rig, writes[i]);
        assert_non_null(buf_reserve(&rig->out, 4096));
        mem_fail_from(1);
        assert_int_equal(1, run_once(rig));
        assert_true(mem_fail_clear());
        assert_true(slice_equal(
            slice_lit("-OOM not enough memory for this request\r\n"),
            buf_slice(&rig->out)));
        run_text(rig, "BF.CARD k", true);
        assert_true(slice_equal(slice_lit(":1\r\n"), buf_slice(&rig->out)));
        effects_take(rig);
        assert_int_equal(0, rig->effects.count);
        rig_free(rig);
    }
}

TEST(a_run_without_memory_for_its_effects_is_tried_one_by_one)
{
    struct rig *rig = rig_new();

    batch_run_of_names(rig, 3);
    assert_non_null(buf_reserve(&rig->out, 4096));
    mem_fail_at(1);
    assert_int_equal(3, run_once(rig));
    assert_true(mem_fail_clear());
    assert_true(
        slice_equal(slice_lit(":1\r\n:1\r\n:1\r\n"), buf_slice(&rig->out)));
    effects_take(rig);
    assert_int_equal(3, rig->effects.count);
    rig_free(rig);
}

TEST(an_exec_without_memory_for_its_effects_is_discarded)
{
    struct rig *rig = rig_new();

    run_text(rig, "MULTI; BF.ADD k a", true);
    batch_begin(rig);
    batch_text(rig, "EXEC");
    assert_non_null(buf_reserve(&rig->out, 4096));
    mem_fail_from(1);
    assert_int_equal(1, run_once(rig));
    assert_true(mem_fail_clear());
    assert_true(slice_equal(
        slice_lit("-EXECABORT Transaction discarded because of: OOM not "
                  "enough memory for this request\r\n"),
        buf_slice(&rig->out)));
    assert_null(rig->session.txn);
    rig_free(rig);
}

TEST(a_worker_kicks_the_journal_that_it_gave_something)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.EXISTS k a", true);
    assert_null(rig->worker->unkicked);
    run_text(rig, "BF.ADD k a", true);
    assert_ptr_equal(rig->journal, rig->worker->unkicked);
    effect_kick(rig->worker);
    assert_null(rig->worker->unkicked);
    rig_free(rig);
}

/* ---- changes --------------------------------------------------------------
 */

TEST(changes_are_counted_with_and_without_a_journal)
{
    for (int on = 0; on < 2; on++) {
        struct rig *rig = rig_new();
        int64_t before = metric_sum(METRIC_CHANGES);

        if (!on) {
            rig->service.journal = NULL;
        }
        run_text(rig, "BF.MADD k a b c", true); /* and the creation */
        assert_int_equal(4, metric_sum(METRIC_CHANGES) - before);
        run_text(rig, "BF.ADD k a; BF.EXISTS k a; BF.ADD k d; DEL x", true);
        assert_int_equal(5, metric_sum(METRIC_CHANGES) - before);
        run_text(rig, "MULTI; BF.ADD k e; DEL k; EXEC", true);
        assert_int_equal(7, metric_sum(METRIC_CHANGES) - before);
        rig_free(rig);
    }
}
