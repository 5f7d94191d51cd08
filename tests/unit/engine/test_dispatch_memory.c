/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each allocation of a batch failing in turn: one reply a command, an -OOM at
 * worst, accounts that agree with the keys, and effects that tell what was
 * really done.
 */
#include "base/metrics.h"
#include "engine/dispatch.h"
#include "rig.h"

#include <stdlib.h>

static void
run_line(struct rig *rig, const char *line)
{
    batch_begin(rig);
    batch_text(rig, line);
    batch_run(rig);
}

/* Bytes of the reply at the front; fails if there is none. */
static size_t
reply_bytes(struct slice text)
{
    const char *end = memchr(text.data, '\r', text.len);
    size_t len;
    long count;

    assert_non_null(end);
    len = (size_t)(end - text.data) + 2;
    count = strtol(text.data + 1, NULL, 10);
    switch (text.data[0]) {
    case '+':
    case '-':
    case ':':
    case ',':
    case '_':
    case '#':
        return len;
    case '$':
    case '=':
        return count < 0 ? len : len + (size_t)count + 2;
    case '%':
        count *= 2;
        break;
    case '*':
    case '~':
        break;
    default:
        fail_msg("no reply begins with '%c'", text.data[0]);
    }
    for (long i = 0; i < count; i++) {
        assert_true(len < text.len);
        len += reply_bytes((struct slice){ text.data + len, text.len - len });
    }
    assert_true(len <= text.len);
    return len;
}

static unsigned
count_replies(struct slice text)
{
    unsigned count = 0;

    while (text.len > 0) {
        size_t n = reply_bytes(text);

        text.data += n;
        text.len -= n;
        count++;
    }
    return count;
}

static const char *const hungry[] = {
    "BF.ADD k0 a",
    "BF.ADD k0 b",
    "BF.EXISTS k0 a",
    "BF.MADD k1 a b c d e f g h i j",
    "BF.INSERT k2 CAPACITY 3 EXPANSION 1 ITEMS a b c d e f g",
    "BF.RESERVE k3 0.0001 1000",
    "BF.RESERVE k4 0.01 3000000", /* a mapping of its own */
    "BF.MADD k2 h i j k l m",
    "EXPIRE k0 1000",
    "EXPIRE k1 1000 NX",
    "PEXPIREAT k2 33000000000000",
    "WATCH k0 k1 missing",
    "MULTI",
    "BF.ADD k5 a",
    "DEL k1 k9",
    "KEYS *",
    "EXPIRE k5 77",
    "SCAN 0",
    "EXEC",
    "DEL k3",
    "BF.ADD k3 a",
    "BF.INFO k2",
    "KEYS k*",
    "SCAN 0 COUNT 1000",
    "RANDOMKEY",
    "CLIENT SETNAME me",
    "HELLO",
    "CONFIG GET *",
    "MEMORY USAGE k0",
    "COMMAND INFO get bf.add",
    "UNLINK k4",
    "BF.ADD k4 a",
};
enum { HUNGRY = sizeof(hungry) / sizeof(hungry[0]) };

/* The number that a command replies with; 0 for an error, as of a missing
 * key. */
static uint64_t
ask_number(struct rig *rig, const char *before, const char *key,
           const char *behind)
{
    char line[64];

    (void)snprintf(line, sizeof(line), "%s%s%s", before, key, behind);
    run_line(rig, line);
    if (rig->out.data[0] == '-') {
        return 0;
    }
    assert_int_equal(':', rig->out.data[0]);
    return strtoull(rig->out.data + 1, NULL, 10);
}

static const enum metric account[] = { METRIC_BF_OBJECTS, METRIC_BF_ITEMS,
                                       METRIC_BF_MEMORY, METRIC_BF_FILTERS,
                                       METRIC_BF_CAPACITY };
enum { ACCOUNTS = sizeof(account) / sizeof(account[0]) };

static void
read_accounts(int64_t *ret_sum)
{
    for (int i = 0; i < ACCOUNTS; i++) {
        ret_sum[i] = metric_sum(account[i]);
    }
}

/* The gauges rose by what the keys add up to. */
static void
expect_accounts(struct rig *rig, const int64_t *before)
{
    static const char *const figure[ACCOUNTS][2] = {
        { "EXISTS ", "" },           { "BF.CARD ", "" },
        { "BF.INFO ", " SIZE" },     { "BF.INFO ", " FILTERS" },
        { "BF.INFO ", " CAPACITY" },
    };
    uint64_t expected[ACCOUNTS] = { 0 };
    int64_t now[ACCOUNTS];

    for (unsigned k = 0; k < 10; k++) {
        char key[8];

        (void)snprintf(key, sizeof(key), "k%u", k);
        for (int i = 0; i < ACCOUNTS; i++) {
            expected[i] += ask_number(rig, figure[i][0], key, figure[i][1]);
        }
    }
    keyspace_wait_freed(rig->service.keyspace);
    read_accounts(now);
    for (int i = 0; i < ACCOUNTS; i++) {
        assert_int_equal(expected[i], now[i] - before[i]);
    }
    assert_int_equal(expected[0], ask_number(rig, "DBSIZE", "", ""));
}

/* What was applied has left its effect, whatever the client was told: the
 * effects, repeated elsewhere, give the same filters. */
static void
expect_effects_repeat(struct rig *rig)
{
    struct rig *to = rig_new();

    effects_take(rig);
    repeat_effects(to, buf_slice(&rig->effects.raw));
    for (unsigned k = 0; k < 10; k++) {
        char line[128];

        for (int i = 0; i < 2; i++) {
            (void)snprintf(line, sizeof(line), "%s k%u%s",
                           i == 0 ? "BF.INFO" : "BF.MEXISTS", k,
                           i == 0 ? "" : " a b c d e f g h i j k l m");
            run_line(rig, line);
            run_line(to, line);
            if (!slice_equal(buf_slice(&rig->out), buf_slice(&to->out))) {
                fail_msg("[%s] is [%.*s], and of the effects [%.*s]", line,
                         (int)rig->out.len, rig->out.data, (int)to->out.len,
                         to->out.data);
            }
        }
        (void)snprintf(line, sizeof(line), "PEXPIRETIME k%u", k);
        run_line(rig, line);
        run_line(to, line);
        assert_true(slice_equal(buf_slice(&rig->out), buf_slice(&to->out)));
    }
    rig_free(to);
}

/* Runs the hungry batch with the nth allocation failing. False when it was
 * not reached any more. *silent counts the failures that no client noticed. */
static bool
run_hungry(unsigned nth, size_t out_bytes, unsigned *silent)
{
    struct rig *rig = rig_new();
    int64_t before[ACCOUNTS];
    uint32_t done = 0;
    bool fired;
    bool told;

    read_accounts(before);
    batch_begin(rig);
    for (int i = 0; i < HUNGRY; i++) {
        batch_text(rig, hungry[i]);
    }
    if (out_bytes > 0) {
        assert_non_null(buf_reserve(&rig->out, out_bytes));
    }
    mem_fail_at(nth);
    while (done < HUNGRY && !rig->out.failed) {
        uint32_t next = dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                       done, UINT64_MAX, &rig->out);

        assert_true(next > done || rig->session.again != NULL);
        done = next;
    }
    fired = mem_fail_clear();
    if (!rig->out.failed) {
        assert_int_equal(HUNGRY, count_replies(buf_slice(&rig->out)));
    } else {
        rig->out.failed = false; /* the connection would be cut here */
    }
    told = rig->out.len == 0 ||
           memmem(rig->out.data, rig->out.len, "-OOM", 4) != NULL ||
           memmem(rig->out.data, rig->out.len, "-EXECABORT", 10) != NULL;
    assert_true(fired || !told);
    *silent += fired && !told;
    txn_end(&rig->session);
    expect_effects_repeat(rig);
    expect_accounts(rig, before);
    rig_free(rig);
    return fired;
}

TEST(each_allocation_may_fail_and_only_its_command_suffers)
{
    for (int small = 0; small < 2; small++) {
        uint64_t used = mem_used();
        unsigned nth = 1;
        unsigned silent = 0;

        while (run_hungry(nth, small ? 0 : 1 << 18, &silent)) {
            assert_int_equal(used, mem_used());
            nth += test_stride();
            assert_true(nth < 5000);
        }
        assert_true(nth > HUNGRY);
        /* Only a run that finds no room for its effects has a second try. */
        assert_true(silent <= 1);
    }
}
