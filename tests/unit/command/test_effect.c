/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a write says that it did: for every write row of the command table at
 * least one case that runs it without a socket, with a sink that records, and
 * compares the effect with what it must be. Then the point of effects:
 * whatever a random client did, repeating the effects elsewhere, under other
 * defaults and limits, gives the same filters, bit for bit.
 */
#include "rig.h"

#include "base/hash.h"

#include <stdlib.h>

/* ---- a case for every write row --------------------------------------------
 */

#define CREATED(key)                                                           \
    "BF.INSERT " key " CAPACITY 100 ERROR 0.01 TIGHTENING 0.5 SEED <seed>"     \
    " EXPANSION 2 STRIPES 1 LINES 2"
#define FULL "BF.INSERT k CAPACITY 2 NONSCALING ITEMS a b"
#define NO   "" /* no effect */

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
    { CMD_ID_BF_MADD, "", "BF.MADD k a b a",
      "0: " CREATED("k") " ITEMS a b a" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k a b", "0: BF.MADD k a b" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k a a", NO },
    { CMD_ID_BF_MADD, "BF.INSERT k CAPACITY 3 NONSCALING ITEMS a b",
      "BF.MADD k b c d e", "0: BF.MADD k b c" },
    { CMD_ID_BF_MADD, FULL, "BF.MADD k c d", NO },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k", "0: " CREATED("k") },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k ITEMS a b",
      "0: " CREATED("k") " ITEMS a b" },
    { CMD_ID_BF_INSERT, "",
      "BF.INSERT k ERROR 1e-9 CAPACITY 10 TIGHTENING 0.25 SEED <seed> "
      "EXPANSION 4 VALIDATESCALETO 20 ITEMS a",
      "0: BF.INSERT k CAPACITY 10 ERROR 0.000000001 TIGHTENING 0.25 SEED "
      "<seed> EXPANSION 4 STRIPES 3 LINES 1 ITEMS a" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k CAPACITY 2 NONSCALING ITEMS a b c d",
      "0: BF.INSERT k CAPACITY 2 ERROR 0.01 TIGHTENING 0.5 SEED <seed> "
      "NONSCALING STRIPES 1 LINES 1 ITEMS a b" },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k CAPACITY 7 ITEMS b",
      "0: BF.INSERT k CAPACITY 7 ITEMS b" },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k ITEMS a", NO },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k NOCREATE ITEMS a", NO },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.01 100", "0: " CREATED("k") },
    { CMD_ID_BF_RESERVE, "BF.ADD k a", "BF.RESERVE k 0.01 100", NO },
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
check_case(const struct effect_case *c, bool together)
{
    struct rig *rig = rig_new();
    struct buf expected = { 0 };

    run_text(rig, c->before, together);
    effects_clear(&rig->effects);
    run_text(rig, c->command, together);
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
        check_case(&cases[i], false);
        check_case(&cases[i], true);
    }
}

TEST(each_write_row_has_a_case_with_an_effect)
{
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        bool found = (command_table[id].flags & CMD_WRITE) == 0;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            found = found || (cases[i].id == id && cases[i].effect[0] != '\0');
        }
        if (!found) {
            fail_msg("%s writes and has no case here", command_table[id].name);
        }
    }
}

TEST(reads_leave_no_effect)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k a; EXPIRE k 100", true);
    effects_clear(&rig->effects);
    run_text(rig,
             "BF.EXISTS k a; BF.MEXISTS k a b; BF.CARD k; BF.INFO k; EXISTS k;"
             "TYPE k; TOUCH k; KEYS *; SCAN 0; DBSIZE; RANDOMKEY; TTL k; "
             "PTTL k; EXPIRETIME k; PEXPIRETIME k",
             true);
    assert_int_equal(0, rig->effects.count);
    rig_free(rig);
}

/* ---- repeating a random history --------------------------------------------
 */

enum {
    HISTORY_COMMANDS = 500, /* between two comparisons */
    COMPARISONS = 8,
    KEYS = 6,
    ITEMS = 300,
    ITEMS_A_COMMAND = 12
};

static uint64_t
next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static unsigned
below(uint64_t *state, unsigned n)
{
    return (unsigned)(next_random(state) % n);
}

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
random_key(struct rig *rig, uint64_t *state)
{
    word(rig, "k%u", below(state, KEYS));
}

static void
random_items(struct rig *rig, uint64_t *state)
{
    for (unsigned n = 1 + below(state, ITEMS_A_COMMAND); n > 0; n--) {
        word(rig, "item%u", below(state, ITEMS));
    }
}

static void
random_insert(struct rig *rig, uint64_t *state)
{
    static const char *const rates[] = { "0.5", "0.01", "1e-5" };

    word(rig, "BF.INSERT");
    random_key(rig, state);
    if (below(state, 2) == 0) {
        word(rig, "CAPACITY");
        word(rig, "%u", 1 + below(state, 40));
    }
    if (below(state, 2) == 0) {
        word(rig, "ERROR");
        word(rig, "%s", rates[below(state, 3)]);
    }
    if (below(state, 3) == 0) {
        word(rig, "NONSCALING");
    } else if (below(state, 2) == 0) {
        word(rig, "EXPANSION");
        word(rig, "%u", 1 + below(state, 3));
    }
    if (below(state, 4) > 0) {
        word(rig, "ITEMS");
        random_items(rig, state);
    }
}

static void
random_expire(struct rig *rig, uint64_t *state)
{
    static const char *const conditions[] = { "NX", "XX", "GT", "LT" };

    word(rig, "EXPIRE");
    random_key(rig, state);
    word(rig, "%d",
         (int)below(state, 10000) + (below(state, 8) ? 1000 : -9999));
    if (below(state, 2) == 0) {
        word(rig, "%s", conditions[below(state, 4)]);
    }
}

static void
random_add(struct rig *rig, uint64_t *state, bool many)
{
    word(rig, "%s", many ? "BF.MADD" : "BF.ADD");
    random_key(rig, state);
    if (many) {
        random_items(rig, state);
    } else {
        word(rig, "item%u", below(state, ITEMS));
    }
}

static void
random_command(struct rig *rig, uint64_t *state)
{
    unsigned choice = below(state, 100);

    batch_command(rig);
    if (choice < 50) {
        random_add(rig, state, false);
    } else if (choice < 70) {
        random_add(rig, state, true);
    } else if (choice < 84) {
        random_insert(rig, state);
    } else if (choice < 88) {
        word(rig, "BF.RESERVE");
        random_key(rig, state);
        word(rig, "0.0%u", 1 + below(state, 9));
        word(rig, "%u", 1 + below(state, 200));
    } else if (choice < 91) {
        word(rig, "SELECT");
        word(rig, "%u", below(state, 3));
    } else if (choice < 96) {
        random_expire(rig, state);
    } else {
        word(rig, "%s",
             choice == 96   ? "PERSIST"
             : choice == 97 ? "UNLINK"
                            : "DEL");
        random_key(rig, state);
    }
}

/* Batches of any length; some are transactions, and rarely a flush. */
static void
random_history(struct rig *rig, uint64_t *state)
{
    for (unsigned done = 0; done < HISTORY_COMMANDS;) {
        unsigned count = 1 + below(state, BATCH_COMMANDS_MAX - 4);
        bool txn = below(state, 4) == 0;

        batch_begin(rig);
        if (below(state, 30) == 0) {
            batch_text(rig, below(state, 3) ? "FLUSHDB" : "FLUSHALL");
        }
        if (txn) {
            batch_text(rig, "MULTI");
        }
        for (unsigned i = 0; i < count; i++) {
            random_command(rig, state);
        }
        if (txn) {
            batch_text(rig, "EXEC");
        }
        batch_run(rig);
        done += count;
    }
}

static uint32_t
take_u32(struct slice *raw)
{
    uint32_t value;

    assert_true(raw->len >= sizeof(value));
    memcpy(&value, raw->data, sizeof(value));
    raw->data += sizeof(value);
    raw->len -= sizeof(value);
    return value;
}

/* Repeats what was recorded as one who obeys; no effect may fail. */
static void
repeat(struct rig *to, struct slice raw)
{
    to->session.obey = true;
    while (raw.len > 0) {
        uint32_t argc;

        atomic_store(&to->session.db, take_u32(&raw));
        argc = take_u32(&raw);
        batch_begin(to);
        batch_command(to);
        while (argc-- > 0) {
            uint32_t len = take_u32(&raw);

            batch_word(to, (struct slice){ raw.data, len });
            raw.data += len;
            raw.len -= len;
        }
        batch_run(to);
        if (memchr(to->out.data, '-', to->out.len) != NULL) {
            fail_msg("an effect failed: %.*s %.*s: %.*s",
                     (int)to->batch.argv[0].len, to->batch.argv[0].data,
                     (int)to->batch.argv[1].len, to->batch.argv[1].data,
                     (int)to->out.len, to->out.data);
        }
    }
}

static void
compare_filters(const struct bloom *a, const struct bloom *b)
{
    struct bloom_params pa, pb;
    struct bloom_info ia, ib;

    memset(&pa, 0, sizeof(pa));
    memset(&pb, 0, sizeof(pb));
    bloom_get_params(a, &pa);
    bloom_get_params(b, &pb);
    bloom_get_info(a, &ia);
    bloom_get_info(b, &ib);
    assert_memory_equal(&pa, &pb, sizeof(pa));
    assert_int_equal(ia.layers, ib.layers);
    assert_int_equal(ia.items, ib.items);
    assert_int_equal(ia.capacity, ib.capacity);
    assert_int_equal(ia.size, ib.size);
    for (uint32_t i = 0; i < ia.layers; i++) {
        size_t na = 0, nb = 0;
        const void *la = bloom_layer_lines(a, i, &na);
        const void *lb = bloom_layer_lines(b, i, &nb);

        assert_int_equal(na, nb);
        assert_memory_equal(la, lb, na);
    }
}

struct comparison {
    struct keyspace *other;
    uint32_t db;
    uint64_t now_ms;
    size_t count;
};

static bool
compare_entry(void *ctx, const struct entry *entry, uint64_t expires_at_ms)
{
    struct comparison *c = ctx;
    struct slice name = { entry->name, entry->name_len };
    struct key key = { name, hash_name(name), c->db };
    const struct entry *twin = keyspace_find(c->other, &key, c->now_ms);

    assert_non_null(twin);
    assert_int_equal(expires_at_ms, keyspace_expiry(c->other, &key, twin));
    compare_filters(entry->bloom, twin->bloom);
    c->count++;
    return true;
}

static size_t
compare_keyspaces(struct rig *a, struct rig *b)
{
    size_t total = 0;

    for (uint32_t db = 0; db < 16; db++) {
        struct comparison c = { b->service.keyspace, db, a->worker->now_ms, 0 };
        uint64_t keys, expires;

        assert_int_equal(0,
                         keyspace_scan(a->service.keyspace, 0, db, 0, SIZE_MAX,
                                       SIZE_MAX, c.now_ms, compare_entry, &c));
        keyspace_count(b->service.keyspace, db, &keys, &expires);
        assert_int_equal(c.count, keys);
        total += c.count;
    }
    return total;
}

TEST(effects_repeated_elsewhere_give_the_same_bits)
{
    uint64_t random = test_seed();

    size_t keys = 0;

    for (unsigned round = 0; round < 3 * test_rounds(); round++) {
        struct rig *from = rig_new();
        struct rig *to = rig_new();

        set_option(from, "bf.bloom-use-random-seed", round % 3 ? "yes" : "no");
        set_option(from, "bf.bloom-capacity", "20");
        set_option(from, "bf.bloom-fp-rate", "0.001");
        set_option(from, "bf.bloom-expansion", round % 3 == 2 ? "0" : "2");
        set_option(from, "bf.bloom-memory-usage-limit", "4096");
        /* None of these may matter to one who repeats. */
        set_option(to, "bf.bloom-use-random-seed", "yes");
        set_option(to, "bf.bloom-capacity", "7");
        set_option(to, "bf.bloom-tightening-ratio", "0.9");
        set_option(to, "bf.bloom-memory-usage-limit", "1");
        for (unsigned i = 0; i < COMPARISONS; i++) {
            random_history(from, &random);
            repeat(to, buf_slice(&from->effects.raw));
            keys += compare_keyspaces(from, to);
            /* What obeys passes the same effects on. */
            assert_true(slice_equal(buf_slice(&from->effects.raw),
                                    buf_slice(&to->effects.raw)));
            effects_clear(&from->effects);
            effects_clear(&to->effects);
        }
        rig_free(from);
        rig_free(to);
    }
    assert_true(keys > 0);
}
