/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Times that are put off in commands, and set at the end. test_load_aof.py has
 * what this is for.
 */
#include "load/load_ttl.h"

#include "../capture.h"
#include "../script.h"
#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>

/* A target without a server. */
static struct load_target *
target_new(struct load *load, uint64_t hold_ms)
{
    struct load_target *target = mem_zalloc(sizeof(*target));

    *load = (struct load){ .tool = { .name = "test" },
                           .timeout_s = 20,
                           .db = LOAD_DB_ALL,
                           .value_bytes = 1000 };
    target->load = load;
    target->hold_ms = hold_ms;
    return target;
}

/* Puts a command's time off. Returns its words with blanks between them, the
 * time as what is left of it. */
static const char *
put_off(struct load_target *target, const char *text)
{
    static char shown[256];
    struct slice rest = slice_of(text), words[16];
    const struct slice *given;
    struct load_ttl ttl;
    size_t count = 0, len = 0;
    uint64_t at_ms;

    while (count < 16 && slice_next_word(&rest, &words[count])) {
        count++;
    }
    target->held = false;
    given = load_ttl_words(target, words, &count, &ttl);
    assert_int_equal(target->held, given == ttl.words);
    for (size_t i = 0; i < count; i++) {
        if (i == 2 && target->held) {
            assert_true(slice_to_u64(given[i], &at_ms));
            at_ms -= LOAD_LATER_MS;
            at_ms -= at_ms > clock_wall_ms() / 2 ? clock_wall_ms() : 0;
            len += (size_t)snprintf(shown + len, sizeof(shown) - len,
                                    " %" PRId64, ((int64_t)at_ms + 50) / 1000);
        } else {
            len += (size_t)snprintf(shown + len, sizeof(shown) - len, "%s%.*s",
                                    i > 0 ? " " : "", (int)given[i].len,
                                    given[i].data);
        }
    }
    return shown;
}

TEST(times_of_all_commands_are_put_off)
{
    static const char *const rows[][2] = {
        { "EXPIRE k 100", "PEXPIREAT k 100" },
        { "pexpire k 100000", "PEXPIREAT k 100" },
        { "PEXPIREAT k 7000", "PEXPIREAT k 7" },
        { "EXPIREAT k 7", "PEXPIREAT k 7" },
        { "EXPIRE k -9999999999", "PEXPIREAT k 0" },
        { "RESTORE k 7000 v ABSTTL", "RESTORE k 7 v ABSTTL" },
        { "RESTORE k 7000 v REPLACE absttl", "RESTORE k 7 v REPLACE absttl" },
        { "RESTORE k 100000 v", "RESTORE k 100 v ABSTTL" },
        /* Nothing to put off, or no time that can be: */
        { "RESTORE k 0 v ABSTTL", "RESTORE k 0 v ABSTTL" },
        { "RESTORE k x v", "RESTORE k x v" },
        { "PERSIST k", "PERSIST k" },
        { "EXPIRE k 100 NX", "EXPIRE k 100 NX" },
        { "EXPIRE k 9223372036854775", "EXPIRE k 9223372036854775" },
        { "PEXPIREAT k 2305843009213693952",
          "PEXPIREAT k 2305843009213693952" },
    };
    struct load load;
    struct load_target *target = target_new(&load, UINT64_MAX);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(rows[i][1], put_off(target, rows[i][0]));
    }
    target->hold_ms = 200000;
    assert_string_equal("PEXPIREAT k 100", put_off(target, "EXPIRE k 100"));
    assert_string_equal("EXPIRE k 300", put_off(target, "EXPIRE k 300"));
    assert_string_equal("PEXPIREAT k 7", put_off(target, "EXPIREAT k 7"));
    target->hold_ms = 0;
    assert_string_equal("EXPIREAT k 7", put_off(target, "EXPIREAT k 7"));
    mem_free(target);
}

/* Releases the times of the keys a in database 0, and b and c in database 3,
 * with a server that says this. */
static bool
release(const char *const *replies, const char *heard, uint64_t *ret_expired)
{
    static char mark;
    struct load load;
    struct load_target *target = target_new(&load, UINT64_MAX);
    struct script script;
    bool good;

    script_begin(&script, replies);
    load.to.address = script.path;
    assert_true(map_put(&target->keys[0], slice_lit("a"), &mark));
    assert_true(map_put(&target->keys[3], slice_lit("b"), &mark));
    good = load_ttl_release(target);
    assert_true(good); /* nothing was put off */
    target->held = true;
    good = load_ttl_release(target);
    *ret_expired = target->expired;
    script_end(&script, heard);
    map_free(&target->keys[0]);
    map_free(&target->keys[3]);
    mem_free(target);
    return good;
}

TEST(times_that_were_put_off_are_set_at_the_end)
{
    static const char *const replies[] = {
        "+PONG\r\n", "+OK\r\n", ":2305843009213693959\r\n",
        ":1\r\n",    "+OK\r\n", ":4102444800000\r\n",
        NULL
    };
    uint64_t expired;

    assert_true(release(replies,
                        "PING\nSELECT 0\nPEXPIRETIME a\nPEXPIREAT a 7\n"
                        "SELECT 3\nPEXPIRETIME b\n",
                        &expired));
    assert_int_equal(1, expired);
}

TEST(a_server_that_refuses_is_named)
{
    static const char *const replies[] = { "+PONG\r\n", "+OK\r\n",
                                           "-NOPERM no\r\n", NULL };
    uint64_t expired;
    bool good = true;

    EXPECT_PRINTED(STDERR_FILENO, good = release(replies, NULL, &expired),
                   "cannot set times to live: NOPERM no");
    assert_false(good);
}
