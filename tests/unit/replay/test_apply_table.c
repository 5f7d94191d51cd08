/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every writing row of the command table, on a primary and a replica. The
 * effects of the command on the primary are applied to the replica, group by
 * group, under other options. Then both servers have the same keys, dumps,
 * times to live and digests, and give the same reply for every item that a row
 * adds, and for some that no row adds. The rows run in both dialects, inside
 * and outside of MULTI, with filters that get full halfway, and with expired
 * keys.
 */
#include "replay/apply.h"

#include "../core/help_foreign.h"
#include "../engine/dispatch_help.h"
#include "../engine/dump_help.h"
#include "../journal/drain_help.h"
#include "base/metrics.h"
#include "command/digest.h"
#include "command/rows.h"
#include "keyspace/gate.h"

#include <stdlib.h>

/* In `before`, ';' separates commands; in `command`, '|' does. <dump> is
 * replaced by the DUMP of k as it is after `before`, the words of `recorded` by
 * what the modules made. */
struct row {
    enum command_id id;
    const char *before, *command;
};

static const struct {
    const char *word, *digits;
} recorded[] = { { "<header>", DEFAULT3_HEADER },
                 { "<bits>", DEFAULT3_BITS },
                 { "<load>", VALKEY_LOAD } };

#define CHUNKS    "BF.LOADCHUNK k 1 <header> | BF.LOADCHUNK k 145 <bits>"
#define FULL      "BF.INSERT k CAPACITY 3 NONSCALING ITEMS a b"
#define DELETABLE "BF.INSERT k CAPACITY 3 DELETABLE ITEMS a b"
#define AGEING    "BF.INSERT k CAPACITY 9 AGEING 1 GENERATIONS 64 ITEMS a b"

static const struct row rows[] = {
    { CMD_ID_BF_ADD, "", "BF.ADD k a" },
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k b" },
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k a" },
    { CMD_ID_BF_ADD, FULL, "BF.ADD k c | BF.ADD k d" },
    { CMD_ID_BF_MADD, "", "BF.MADD k a b c a" },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k a b c" },
    { CMD_ID_BF_MADD, FULL, "BF.MADD k b c d e" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k CAPACITY 5 ITEMS a b c d e f g" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k ERROR 0.3 EXPANSION 1 ITEMS a" },
    { CMD_ID_BF_INSERT, "BF.ADD k x", "BF.INSERT k CAPACITY 7 ITEMS a b" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k CAPACITY 2 NONSCALING ITEMS a b c" },
    { CMD_ID_BF_INSERT, FULL, "BF.INSERT k NOCREATE ITEMS c d e" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k NOCREATE ITEMS c" },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.001 1000 | BF.ADD k a" },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.1 5 NONSCALING | BF.ADD k a" },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.1 5 EXPANSION 3" },
    { CMD_ID_BF_RESERVE, "BF.ADD k a", "BF.RESERVE k 0.001 1000" },
    { CMD_ID_BF_RESET, "BF.MADD k a b; PEXPIRE k 100000", "BF.RESET k" },
    { CMD_ID_BF_RESET, "", "BF.RESET k" },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.1 5 DELETABLE | BF.ADD k a" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k DELETABLE 8 ITEMS a b a" },
    { CMD_ID_BF_MADD, DELETABLE, "BF.MADD k b c d e" },
    { CMD_ID_BF_ADD, DELETABLE, "BF.ADD k a | BF.ADD k c" },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.1 5 AGEING 9 | BF.ADD k a" },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k AGEING 9 GENERATIONS 1 ITEMS a b a" },
    { CMD_ID_BF_MADD, AGEING, "BF.MADD k b c d e" },
    { CMD_ID_BF_ADD, AGEING, "BF.ADD k a | BF.ADD k c" },
    { CMD_ID_BF_MERGE, AGEING "; COPY k l; BF.ADD l x", "BF.MERGE k l" },
    { CMD_ID_BF_DEL, DELETABLE, "BF.DEL k a" },
    { CMD_ID_BF_DEL, "BF.ADD k a", "BF.DEL k a" },
    { CMD_ID_BF_MDEL, DELETABLE, "BF.MDEL k x a a b" },
    { CMD_ID_BF_LOAD, "", "BF.LOAD k <load> | BF.ADD k i" },
    { CMD_ID_BF_LOAD, "BF.ADD k a", "BF.LOAD k <load>" },
    { CMD_ID_BF_LOADCHUNK, "", CHUNKS },
    { CMD_ID_BF_LOADCHUNK, "", CHUNKS " | BF.ADD k a" },
    { CMD_ID_BF_LOADCHUNK, "BF.ADD k a", CHUNKS },
    { CMD_ID_BF_MERGE, "BF.MADD l a b; BF.MADD m c", "BF.MERGE k l m" },
    { CMD_ID_BF_MERGE, "BF.MADD l a b; BF.MADD k c", "BF.MERGE k l k" },
    { CMD_ID_BF_MERGE, "BF.MADD l a b; BF.RESERVE k 0.5 9", "BF.MERGE k l" },
    { CMD_ID_DEL, "BF.ADD k a; BF.ADD l a", "DEL k missing" },
    { CMD_ID_DEL, "BF.ADD l a", "DEL k | DEL l" },
    { CMD_ID_UNLINK, "BF.ADD k a; BF.ADD l a", "UNLINK l k" },
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k 100" },
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k -1" },
    { CMD_ID_PEXPIRE, "BF.ADD k a", "PEXPIRE k 1000000 NX" },
    { CMD_ID_PEXPIRE, "BF.ADD k a; PEXPIRE k 500000", "PEXPIRE k 1 GT" },
    { CMD_ID_EXPIREAT, "BF.ADD k a", "EXPIREAT k 33000000000" },
    { CMD_ID_EXPIREAT, "BF.ADD k a", "EXPIREAT k 1" },
    { CMD_ID_PEXPIREAT, "BF.ADD k a", "PEXPIREAT k 33000000000000" },
    { CMD_ID_PERSIST, "BF.ADD k a; EXPIRE k 100", "PERSIST k" },
    { CMD_ID_PERSIST, "BF.ADD k a", "PERSIST k" },
    { CMD_ID_COPY, "BF.ADD k a; EXPIRE k 100", "COPY k l" },
    { CMD_ID_COPY, "BF.ADD k a; BF.ADD l b", "COPY l k REPLACE" },
    { CMD_ID_COPY, "BF.ADD k a; BF.ADD l b", "COPY l k" },
    { CMD_ID_COPY, "BF.ADD k a", "COPY k k DB 3" },
    { CMD_ID_RENAME, "BF.ADD k a; EXPIRE k 100", "RENAME k l" },
    { CMD_ID_RENAME, "BF.ADD k a; BF.ADD l b", "RENAME l k" },
    { CMD_ID_RENAMENX, "BF.ADD k a", "RENAMENX k l" },
    { CMD_ID_RENAMENX, "BF.ADD k a; BF.ADD l b", "RENAMENX l k" },
    { CMD_ID_MOVE, "BF.ADD k a; EXPIRE k 100", "MOVE k 3" },
    { CMD_ID_MOVE, "SELECT 3; BF.ADD k a; SELECT 0; BF.ADD k b", "MOVE k 3" },
    { CMD_ID_RESTORE, "BF.MADD k a b c", "RESTORE l 0 <dump>" },
    { CMD_ID_RESTORE, "BF.MADD k a b c", "RESTORE l 5000 <dump> REPLACE" },
    { CMD_ID_RESTORE, "BF.ADD k a",
      "RESTORE k 33000000000000 <dump> ABSTTL "
      "REPLACE | BF.ADD k b" },
    { CMD_ID_RESTORE, "BF.ADD k a", "RESTORE k 1 <dump> ABSTTL REPLACE" },
    { CMD_ID_RESTORE, "BF.ADD k a", "RESTORE k 0 <dump>" },
    { CMD_ID_FLUSHDB, "BF.ADD k a; SELECT 3; BF.ADD k a", "FLUSHDB" },
    { CMD_ID_FLUSHDB, "BF.ADD k a; SELECT 3", "FLUSHDB SYNC" },
    { CMD_ID_FLUSHALL, "BF.ADD k a; SELECT 3; BF.ADD k a", "FLUSHALL" },
    { CMD_ID_SWAPDB, "BF.ADD k a; SELECT 3; BF.ADD l a", "SWAPDB 0 3" },
    { CMD_ID_SWAPDB, "BF.ADD k a", "SWAPDB 5 3 | BF.ADD k b" },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]), WAYS = 32 };

struct way {
    const char *dialect;
    bool txn;      /* the command runs inside MULTI */
    bool expires;  /* k has expired before the command */
    bool reclaims; /* and was removed in the background */
    bool seeds;    /* filters get random seeds */
};

/* ---- two servers --------------------------------------------------------- */

enum { SEAL_KEY = 42, ITEM_NAMES = 26 };

struct pair {
    struct rig *primary, *replica;
    struct apply *apply;
    size_t groups;
};

/* The replica gets other options than the primary, and none may make a
 * difference. */
static struct pair
pair_new(const struct way *way)
{
    bool redis = strcmp(way->dialect, "redis") == 0;
    struct pair pair = { .primary = rig_new_threads(2),
                         .replica = rig_new_threads(2) };

    set_option(pair.primary, "dialect", way->dialect);
    set_option(pair.primary, "bf.bloom-use-random-seed",
               way->seeds ? "yes" : "no");
    set_option(pair.primary, "bf.bloom-fp-rate", "0.02");
    set_option(pair.replica, "dialect", redis ? "valkey" : "redis");
    set_option(pair.replica, "bf.bloom-capacity", "7");
    set_option(pair.replica, "bf.bloom-expansion", "0");
    set_option(pair.replica, "bf.bloom-tightening-ratio", "0.9");
    set_option(pair.replica, "bf.bloom-memory-usage-limit", "1");
    set_option(pair.replica, "maxmemory", "1");
    set_option(pair.replica, "maxmemory-policy", "allkeys-random");
    pair.replica->service.role.replica = true;
    pair.apply = apply_new(pair.replica->worker);
    return pair;
}

static void
pair_free(struct pair *pair)
{
    apply_free(pair->apply);
    rig_free(pair->primary);
    rig_free(pair->replica);
}

static void
apply_one(struct pair *pair, struct slice commands)
{
    struct gate *gate = keyspace_gate(pair->replica->service.keyspace);
    bool world = apply_needs_world(pair->apply, commands);
    char reason[256] = "";
    bool done;

    if (world) {
        gate_raise(gate, 0);
    } else {
        gate_enter(gate, 0);
    }
    done = apply_group(pair->apply, commands, 0, reason, sizeof(reason));
    if (world) {
        gate_lower(gate, 0);
    } else {
        gate_leave(gate, 0);
    }
    apply_wake(pair->apply);
    if (!done) {
        fail_msg("%s", reason);
    }
    pair->groups++;
}

/* Applies to the replica all groups that the primary's journal got since the
 * last call. */
static void
ship(struct pair *pair)
{
    struct buf bytes = { 0 };
    struct group group = { 0 };

    journal_drain(pair->primary->journal, SEAL_KEY, &bytes);
    while (group.end < bytes.len) {
        assert_int_equal(GROUP_OK, group_read(buf_slice(&bytes), SEAL_KEY,
                                              group.end, &group));
        apply_one(pair, group.commands);
    }
    buf_free(&bytes);
}

/* ---- commands ------------------------------------------------------------ */

static void
dump_k(struct rig *rig, struct buf *ret_payload)
{
    struct key key = key_named(slice_lit("k"), 0);
    struct entry *entry = keyspace_find(rig->service.keyspace, &key, 0);

    if (entry != NULL) {
        dump_of(entry, ret_payload);
    } else {
        buf_append(ret_payload, "none", 4);
    }
}

/* Appends a word to the command, or what it stands for. */
static void
put_word(struct rig *rig, struct slice word, struct slice dump)
{
    for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
        if (slice_equal(word, slice_of(recorded[i].word))) {
            struct hex hex = from_hex(recorded[i].digits);

            batch_word(rig, (struct slice){ (char *)hex.data, hex.len });
            free(hex.data);
            return;
        }
    }
    batch_word(rig, slice_equal(word, slice_lit("<dump>")) ? dump : word);
}

/* Runs the commands of `text`, which ';' or '|' separates; with txn, between
 * MULTI and EXEC. */
static void
run(struct rig *rig, const char *text, bool txn)
{
    struct buf payload = { 0 };

    dump_k(rig, &payload);
    batch_begin(rig);
    if (txn) {
        batch_text(rig, "MULTI");
    }
    for (bool first = true; *text != '\0';) {
        size_t len = strcspn(text, " ;|");
        struct slice word = { text, len };

        if (len > 0) {
            if (first) {
                batch_command(rig);
            }
            put_word(rig, word, buf_slice(&payload));
            first = false;
        }
        first = first || text[len] == ';' || text[len] == '|';
        text += len + (text[len] != '\0');
    }
    if (txn) {
        batch_text(rig, "EXEC");
    }
    batch_run(rig);
    buf_free(&payload);
}

static bool
expire_k(void *ctx, uint32_t db, const struct entry *entry,
         uint64_t expires_at_ms)
{
    struct rig *rig = ctx;
    struct slice name = entry_name(entry);
    struct key key = key_named(name, db);
    struct entry *found = keyspace_find(rig->service.keyspace, &key, 0);

    if (slice_equal(name, slice_lit("k")) && expires_at_ms == 0) {
        assert_int_equal(
            OK, keyspace_set_expiry(rig->service.keyspace, &key, found, 1));
    }
    return true;
}

/* ---- item by item -------------------------------------------------------- */

struct probing {
    struct rig *rig;
    struct rig *other;
    size_t answers, yes;
};

/* Asks BF.EXISTS for every item; the replies are in rig->out. The session
 * obeys, so it sees expired keys as well. */
static void
ask(struct rig *rig, uint32_t db, struct slice name)
{
    bool obey = rig->session.obey;

    rig->session.obey = true;
    atomic_store(&rig->session.db, db);
    batch_begin(rig);
    for (unsigned i = 0; i < ITEM_NAMES; i++) {
        char item = (char)('a' + i);

        batch_command(rig);
        batch_word(rig, slice_lit("BF.EXISTS"));
        batch_word(rig, name);
        batch_word(rig, (struct slice){ &item, 1 });
    }
    batch_run(rig);
    rig->session.obey = obey;
}

static bool
probe(void *ctx, uint32_t db, const struct entry *entry, uint64_t expires_at_ms)
{
    struct probing *probing = ctx;
    struct slice name = entry_name(entry);

    (void)expires_at_ms;
    ask(probing->rig, db, name);
    ask(probing->other, db, name);
    assert_int_equal(4 * ITEM_NAMES, probing->rig->out.len);
    assert_true(slice_equal(buf_slice(&probing->rig->out),
                            buf_slice(&probing->other->out)));
    for (unsigned i = 0; i < ITEM_NAMES; i++) {
        probing->yes += probing->rig->out.data[4 * i + 1] == '1';
    }
    probing->answers += ITEM_NAMES;
    return true;
}

static void
expect_equal(struct pair *pair, struct probing *probing)
{
    struct rig *primary = pair->primary;
    struct rig *replica = pair->replica;
    uint32_t primary_db = primary->session.db;

    (void)compare_dumps(primary, replica);
    for (uint64_t now_ms = 0; now_ms < 3; now_ms++) {
        struct digest one;
        struct digest two;

        digest_all(primary->service.keyspace, now_ms, &one);
        digest_all(replica->service.keyspace, now_ms, &two);
        assert_memory_equal(one.bytes, two.bytes, sizeof(one.bytes));
    }
    probing->rig = primary;
    probing->other = replica;
    assert_true(keyspace_each(primary->service.keyspace, probe, probing));
    primary->session.db = primary_db;
}

/* ---- the test ------------------------------------------------------------ */

static struct way
way_of(unsigned number)
{
    return (struct way){ .dialect = number & 1 ? "redis" : "valkey",
                         .txn = (number & 2) != 0,
                         .expires = (number & 4) != 0,
                         .reclaims = (number & 8) != 0,
                         .seeds = (number & 16) != 0 };
}

/* Returns whether the replica got a group for the command. */
static bool
check_row(const struct row *row, const struct way *way, struct probing *probing)
{
    struct pair pair = pair_new(way);
    size_t groups;

    run(pair.primary, row->before, false);
    ship(&pair);
    expect_equal(&pair, probing);
    if (way->expires) {
        assert_true(keyspace_each(pair.primary->service.keyspace, expire_k,
                                  pair.primary));
        assert_true(keyspace_each(pair.replica->service.keyspace, expire_k,
                                  pair.replica));
        expect_equal(&pair, probing);
    }
    if (way->reclaims) {
        (void)expiry_reclaim(pair.primary->worker, 1000, 1000000);
    }
    groups = pair.groups;
    run(pair.primary, row->command, way->txn);
    ship(&pair);
    expect_equal(&pair, probing);
    pair_free(&pair);
    return pair.groups > groups;
}

TEST(each_write_does_the_same_on_a_replica_item_by_item)
{
    struct probing probing = { .answers = 0 };

    for (unsigned i = 0; i < ROWS; i++) {
        for (unsigned number = 0; number < WAYS; number++) {
            struct way way = way_of(number);

            (void)check_row(&rows[i], &way, &probing);
        }
    }
    assert_true(probing.yes > 5000);
    assert_true(probing.answers - probing.yes > 50000);
}

TEST(each_write_has_a_row_that_changes_something)
{
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        bool found = (command_rows[id].flags & CMD_WRITE) == 0;

        for (unsigned i = 0; i < ROWS; i++) {
            struct way way = way_of(0);
            struct probing probing = { .answers = 0 };

            found = found ||
                    (rows[i].id == id && check_row(&rows[i], &way, &probing));
        }
        if (!found) {
            fail_msg("%s writes and has no row here", command_rows[id].name);
        }
    }
}
