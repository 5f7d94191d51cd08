/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The point of effects: whatever random clients did, under limits that made
 * some of it fail halfway, while the clock ran and times to live ended, with
 * restarts in between: repeating the journal elsewhere, under other defaults
 * and limits, gives the same dumps, byte for byte, and the same times to live;
 * and what the clock ended is gone there as well, or on neither side. Whether
 * it is repeated at a start or on a replica. The wall clock is the test's own.
 */
#include "../engine/dispatch_help.h"
#include "../engine/dump_help.h"
#include "base/metrics.h"
#include "keyspace/gate.h"
#include "replay/apply.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    HISTORY_COMMANDS = 400, /* between two comparisons */
    COMPARISONS = 10,
    KEY_NAMES = 7,
    ITEMS = 300,
    ITEMS_A_COMMAND = 12,
    DATABASES = 4
};

/* ---- the clock ----------------------------------------------------------- */

static uint64_t wall_ms;

/* In place of libc's, for this binary. */
int
clock_gettime(clockid_t id, struct timespec *ret_now)
{
    if (id == CLOCK_REALTIME && wall_ms > 0) {
        ret_now->tv_sec = (time_t)(wall_ms / 1000);
        ret_now->tv_nsec = (long)(wall_ms % 1000) * 1000000;
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, id, ret_now);
}

/* Mostly on; now and then somebody sets it back. */
static void
move_clock(uint64_t *random)
{
    if (below(random, 20) == 0) {
        wall_ms -= below(random, 100);
    } else {
        wall_ms += below(random, 60);
    }
}

/* ---- a random history ---------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void
word(struct rig *rig, const char *format, ...)
{
    char text[64];
    va_list ap;
    int len;

    va_start(ap, format);
    len = vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    batch_word(rig, (struct slice){ text, (size_t)len });
}

static void
random_key(struct rig *rig, uint64_t *random)
{
    word(rig, "key%u", below(random, KEY_NAMES));
}

static void
random_items(struct rig *rig, uint64_t *random)
{
    unsigned count = 1 + below(random, ITEMS_A_COMMAND);

    for (unsigned i = 0; i < count; i++) {
        word(rig, "item%u", below(random, ITEMS));
    }
}

static void
random_insert(struct rig *rig, uint64_t *random)
{
    static const char *const rates[] = { "0.5", "0.01", "1e-5" };

    word(rig, "BF.INSERT");
    random_key(rig, random);
    if (below(random, 2) == 0) {
        word(rig, "CAPACITY");
        word(rig, "%u", 1 + below(random, 40));
    }
    if (below(random, 2) == 0) {
        word(rig, "ERROR");
        word(rig, "%s", rates[below(random, 3)]);
    }
    if (below(random, 3) == 0) {
        word(rig, "NONSCALING");
    } else if (below(random, 2) == 0) {
        word(rig, "EXPANSION");
        word(rig, "%u", 1 + below(random, 3));
    }
    if (below(random, 3) == 0) {
        word(rig, "AGEING");
        word(rig, "%u", 1 + below(random, 2));
        word(rig, "GENERATIONS");
        word(rig, "%u", 1 + below(random, 9));
    }
    if (below(random, 4) > 0) {
        word(rig, "ITEMS");
        random_items(rig, random);
    }
}

/* Short times, so that many are over before the next command. */
static void
random_expire(struct rig *rig, uint64_t *random)
{
    static const char *const conditions[] = { "NX", "XX", "GT", "LT" };
    static const char *const commands[] = { "PEXPIRE", "PEXPIREAT", "EXPIRE",
                                            "EXPIREAT" };
    unsigned choice = below(random, 4);
    uint64_t time = below(random, 3) > 0 ? below(random, 200) : 100000;

    if (choice % 2 == 1) {
        time += wall_ms - 20;
    }
    if (choice >= 2) {
        time /= 1000;
    }
    word(rig, "%s", commands[choice]);
    random_key(rig, random);
    word(rig, "%" PRIu64, time);
    if (below(random, 3) == 0) {
        word(rig, "%s", conditions[below(random, 4)]);
    }
}

static void
random_delete(struct rig *rig, uint64_t *random)
{
    word(rig, "%s", below(random, 2) ? "DEL" : "UNLINK");
    for (unsigned i = 1 + below(random, 3); i > 0; i--) {
        random_key(rig, random);
    }
}

static void
random_copy(struct rig *rig, uint64_t *random)
{
    word(rig, "COPY");
    random_key(rig, random);
    random_key(rig, random);
    if (below(random, 2) == 0) {
        word(rig, "DB");
        word(rig, "%u", below(random, DATABASES));
    }
    if (below(random, 2) == 0) {
        word(rig, "REPLACE");
    }
}

static void
random_rename(struct rig *rig, uint64_t *random)
{
    static const char *const commands[] = { "RENAME", "RENAMENX", "MOVE" };
    unsigned choice = below(random, 3);

    word(rig, "%s", commands[choice]);
    random_key(rig, random);
    if (choice < 2) {
        random_key(rig, random);
    } else {
        word(rig, "%u", below(random, DATABASES));
    }
}

/* payload: what some key looked like at some time. */
static void
random_restore(struct rig *rig, uint64_t *random, struct slice payload)
{
    bool absolute = below(random, 2) == 0;
    uint64_t ttl = below(random, 3) == 0 ? 0 : 1 + below(random, 300);

    word(rig, "RESTORE");
    random_key(rig, random);
    if (absolute && ttl > 0) {
        ttl += wall_ms - 50;
    }
    word(rig, "%" PRIu64, ttl);
    batch_word(rig, payload);
    if (absolute) {
        word(rig, "ABSTTL");
    }
    if (below(random, 3) > 0) {
        word(rig, "REPLACE");
    }
}

static void
random_world(struct rig *rig, uint64_t *random)
{
    unsigned choice = below(random, 8);

    if (choice == 0) {
        word(rig, "FLUSHALL");
    } else if (choice < 3) {
        word(rig, "FLUSHDB");
    } else {
        word(rig, "SWAPDB");
        word(rig, "%u", below(random, DATABASES));
        word(rig, "%u", below(random, DATABASES));
    }
}

static void
random_add(struct rig *rig, uint64_t *random, bool many)
{
    word(rig, "%s", many ? "BF.MADD" : "BF.ADD");
    random_key(rig, random);
    if (many) {
        random_items(rig, random);
    } else {
        word(rig, "item%u", below(random, ITEMS));
    }
}

/* Often refused: filters of different properties, or too full. */
static void
random_merge(struct rig *rig, uint64_t *random)
{
    word(rig, "BF.MERGE");
    for (unsigned i = 2 + below(random, 3); i > 0; i--) {
        random_key(rig, random);
    }
}

static void
random_simple(struct rig *rig, uint64_t *random)
{
    unsigned choice = below(random, 3);

    word(rig, "%s",
         choice == 0   ? "BF.RESERVE"
         : choice == 1 ? "PERSIST"
                       : "SELECT");
    if (choice < 2) {
        random_key(rig, random);
    } else {
        word(rig, "%u", below(random, DATABASES));
    }
    if (choice == 0) {
        word(rig, "0.0%u", 1 + below(random, 9));
        word(rig, "%u", 1 + below(random, 200));
    }
}

static void
random_command(struct rig *rig, uint64_t *random, struct slice payload)
{
    unsigned choice = below(random, 207);

    batch_command(rig);
    if (choice < 90) {
        random_add(rig, random, false);
    } else if (choice < 130) {
        random_add(rig, random, true);
    } else if (choice < 154) {
        random_insert(rig, random);
    } else if (choice < 172) {
        random_expire(rig, random);
    } else if (choice < 178) {
        random_delete(rig, random);
    } else if (choice < 181) {
        random_rename(rig, random);
    } else if (choice < 184) {
        random_copy(rig, random);
    } else if (choice < 188) {
        random_restore(rig, random, payload);
    } else if (choice < 189) {
        random_world(rig, random);
    } else if (choice < 191) {
        word(rig, "BF.RESET");
        random_key(rig, random);
    } else if (choice < 196) {
        random_merge(rig, random);
    } else {
        random_simple(rig, random);
    }
}

/* The dump of a random key, if it is there. */
static void
random_dump(struct rig *rig, uint64_t *random, struct buf *payload)
{
    batch_begin(rig);
    batch_command(rig);
    word(rig, "DUMP");
    random_key(rig, random);
    batch_run(rig);
    if (rig->out.len > 5) {
        size_t len = (size_t)strtoul(rig->out.data + 1, NULL, 10);

        payload->len = 0;
        buf_append(payload, rig->out.data + rig->out.len - 2 - len, len);
    }
}

/* Batches of any length; some are transactions, and some have hardly any
 * memory. */
static void
random_history(struct rig *rig, uint64_t *random)
{
    struct buf payload = { 0 };

    for (unsigned done = 0; done < HISTORY_COMMANDS;) {
        unsigned count = 1 + below(random, BATCH_COMMANDS_MAX - 4);
        bool txn = below(random, 4) == 0;
        bool tight = below(random, 2) == 0;

        move_clock(random);
        if (below(random, 4) == 0) {
            (void)expiry_reclaim(rig->worker, wall_ms, 1000);
        }
        set_option(rig, "dialect", below(random, 2) ? "redis" : "valkey");
        random_dump(rig, random, &payload);
        batch_begin(rig);
        if (txn) {
            batch_text(rig, "MULTI");
        }
        for (unsigned i = 0; i < count; i++) {
            random_command(rig, random, buf_slice(&payload));
        }
        if (txn) {
            batch_text(rig, "EXEC");
        }
        if (tight) {
            rig->service.memory.maxmemory_bytes =
                mem_used() + below(random, 2000);
        }
        batch_run(rig);
        rig->service.memory.maxmemory_bytes = 0;
        done += count;
    }
    buf_free(&payload);
}

/* ---- the test ------------------------------------------------------------ */

static struct rig *
new_original(unsigned round)
{
    struct rig *rig = rig_new();

    set_option(rig, "bf.bloom-use-random-seed", round % 3 ? "yes" : "no");
    set_option(rig, "bf.bloom-capacity", "20");
    set_option(rig, "bf.bloom-fp-rate", "0.001");
    set_option(rig, "bf.bloom-expansion", round % 3 == 2 ? "0" : "2");
    set_option(rig, "bf.bloom-memory-usage-limit", "4096");
    set_option(rig, "maxmemory-policy",
               round % 3 ? "allkeys-random" : "noeviction");
    return rig;
}

/* Repeats the effects as a replica would, while others could be there. */
static void
apply_effects(struct rig *to, struct slice raw)
{
    struct gate *gate = keyspace_gate(to->service.keyspace);
    struct apply *apply = apply_new(to->worker);
    char reason[256] = "";
    bool done;

    gate_raise(gate, 0);
    done = apply_group(apply, raw, 0, reason, sizeof(reason));
    gate_lower(gate, 0);
    if (!done) {
        fail_msg("%s", reason);
    }
    apply_free(apply);
}

/* None of these may matter to one who repeats. */
static struct rig *
new_replica(struct slice raw)
{
    static unsigned made;
    struct rig *rig = rig_new();

    set_option(rig, "bf.bloom-use-random-seed", "yes");
    set_option(rig, "bf.bloom-capacity", "7");
    set_option(rig, "bf.bloom-tightening-ratio", "0.9");
    set_option(rig, "bf.bloom-memory-usage-limit", "1");
    set_option(rig, "maxmemory", "1");
    set_option(rig, "dialect", ++made % 2 == 0 ? "redis" : "valkey");
    rig->service.journal = NULL;
    if (made % 4 < 2) {
        repeat_effects(rig, raw);
    } else {
        apply_effects(rig, raw);
    }
    rig->service.journal = rig->journal;
    return rig;
}

/* The server ends, and a new one starts from the journal. */
static struct rig *
restart(struct rig *old, unsigned round)
{
    struct rig *rig = new_original(round);

    rig->service.journal = NULL;
    repeat_effects(rig, buf_slice(&old->effects.raw));
    rig->service.journal = rig->journal;
    buf_append_slice(&rig->effects.raw, buf_slice(&old->effects.raw));
    rig_free(old);
    return rig;
}

TEST(replaying_the_journal_gives_the_same_dumps)
{
    int64_t evicted = metric_sum(METRIC_EVICTED_KEYS);
    int64_t expired = metric_sum(METRIC_EXPIRED_KEYS);
    uint64_t random = test_seed();
    size_t keys = 0;

    wall_ms = 1700000000000;
    for (unsigned round = 0; round < 3 * test_rounds(); round++) {
        struct rig *from = new_original(round);

        for (unsigned i = 0; i < COMPARISONS; i++) {
            struct rig *to;

            random_history(from, &random);
            effects_take(from);
            to = new_replica(buf_slice(&from->effects.raw));
            keys += compare_dumps(from, to);
            rig_free(to);
            if (below(&random, 3) == 0) {
                from = restart(from, round);
            }
        }
        rig_free(from);
    }
    wall_ms = 0;
    assert_true(keys > 0);
    assert_true(metric_sum(METRIC_EVICTED_KEYS) > evicted);
    assert_true(metric_sum(METRIC_EXPIRED_KEYS) > expired);
}

/* The effects of another, without the marks of transactions. */
static void
without_marks(const struct effects *effects, struct buf *ret_text)
{
    struct slice text = buf_slice(&effects->text);

    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.data) : text.len;
        struct slice line = { text.data, len };

        if (!slice_equal(line, slice_lit("begin")) &&
            !slice_equal(line, slice_lit("end"))) {
            buf_append_slice(ret_text, line);
            buf_append(ret_text, "\n", 1);
        }
        text.data += len + (end != NULL);
        text.len -= len + (end != NULL);
    }
}

TEST(replay_passes_the_same_effects_on)
{
    uint64_t random = test_seed();
    struct rig *from = new_original(1);
    struct rig *to = rig_new();
    struct buf one = { 0 };
    struct buf two = { 0 };

    wall_ms = 1700000000000;
    random_history(from, &random);
    effects_take(from);
    repeat_effects(to, buf_slice(&from->effects.raw));
    effects_take(to);
    without_marks(&from->effects, &one);
    without_marks(&to->effects, &two);
    assert_true(one.len > 0);
    assert_true(slice_equal(buf_slice(&one), buf_slice(&two)));
    buf_free(&one);
    buf_free(&two);
    rig_free(from);
    rig_free(to);
    wall_ms = 0;
}
