/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pages of long groups, as a replica has them cleared between its clients'
 * turns: the data stays as it is, whatever becomes of the group.
 */
#include "replay/pages.h"

#include "../engine/group_help.h"
#include "keyspace/gate.h"
#include "replay/apply.h"

#include <sys/mman.h>

enum { MANY = 20000, BEGINS = 5000 };

struct scene {
    struct rig *rig;
    struct apply *apply;
};

static struct scene
scene_new(void)
{
    struct scene scene = { .rig = rig_new_threads(2) };

    scene.apply = apply_new(scene.rig->worker);
    return scene;
}

static void
scene_free(struct scene *scene)
{
    apply_free(scene->apply);
    rig_free(scene->rig);
}

/* Makes filters whose groups come from another server. */
static void
make(struct scene *scene, const char *text)
{
    run_text(scene->rig, text, false);
    effects_clear(scene->rig);
}

/* Appends a BF.MADD of items that are numbers from FIRST on. */
static void
put_adds(struct buf *group, const char *key, unsigned first, unsigned count)
{
    buf_printf(group, "*%u\r\n$7\r\nBF.MADD\r\n$1\r\n%s\r\n", count + 2, key);
    for (unsigned i = first; i < first + count; i++) {
        buf_printf(group, "$8\r\n%08u\r\n", i);
    }
}

static bool
clears(struct scene *scene, const struct buf *group, uint64_t sequence)
{
    struct gate *gate = keyspace_gate(scene->rig->service.keyspace);
    bool done;

    assert_false(apply_needs_world(scene->apply, buf_slice(group)));
    gate_enter(gate, 0);
    done = apply_clears(scene->apply, buf_slice(group), sequence);
    gate_leave(gate, 0);
    return done;
}

/* Returns how many pieces it took. */
static unsigned
clear_all(struct scene *scene, const struct buf *group, uint64_t sequence)
{
    unsigned pieces = 1;

    while (!clears(scene, group, sequence)) {
        pieces++;
    }
    return pieces;
}

static void
execute(struct scene *scene, const struct buf *group)
{
    struct gate *gate = keyspace_gate(scene->rig->service.keyspace);
    char reason[256] = "";

    gate_enter(gate, 0);
    if (!apply_group(scene->apply, buf_slice(group), BEGINS, reason,
                     sizeof(reason))) {
        fail_msg("%s", reason);
    }
    gate_leave(gate, 0);
}

static uint64_t
position_of(const struct scene *scene, const char *key)
{
    struct key named = key_named(slice_of(key), 0);

    return keyspace_position(scene->rig->service.keyspace,
                             keyspace_stripe_of(named.hash));
}

/* Returns how many pages of a filter have been written. */
static size_t
pages_of(const struct scene *scene, const char *key, uint32_t db)
{
    enum { PAGE = 4096 };
    const struct key named = key_named(slice_of(key), db);
    const struct entry *entry =
        keyspace_find(scene->rig->service.keyspace, &named, 0);
    size_t bytes, used = 0;
    const char *lines = bloom_layer_lines(&entry->bloom, 0, &bytes);
    unsigned char *there = mem_alloc(bytes / PAGE);

    assert_int_equal(
        0, mincore((void *)(uintptr_t)lines, bytes / PAGE * PAGE, there));
    for (size_t i = 0; i < bytes / PAGE; i++) {
        used += there[i] & 1;
    }
    mem_free(there);
    return used;
}

/* Clients see nothing of it; the key's position is that of its last change. The
 * bytes may move between two pieces. */
TEST(a_long_group_gets_its_pages_in_pieces)
{
    enum { PIECES_MIN = 2 };
    struct scene scene = scene_new();
    struct buf group = { 0 };
    unsigned pieces = 1;
    uint64_t position;
    size_t cleared;

    make(&scene, "BF.RESERVE k 0.01 80000000");
    position = position_of(&scene, "k");
    encode(&group, "SELECT 0; BF.ADD k a");
    put_adds(&group, "k", 0, MANY);
    while (!clears(&scene, &group, 5)) {
        struct buf moved = { 0 };

        run_and_expect(scene.rig, "BF.CARD k; BF.EXISTS k 00000000",
                       ":0\r\n:0\r\n");
        buf_append_slice(&moved, buf_slice(&group));
        buf_free(&group);
        group = moved;
        pieces++;
    }
    assert_true(pieces >= PIECES_MIN);
    assert_int_equal(position, position_of(&scene, "k"));
    run_and_expect(scene.rig, "BF.CARD k", ":0\r\n");
    cleared = pages_of(&scene, "k", 0);
    assert_true(cleared > MANY / 2);
    execute(&scene, &group);
    assert_int_equal(cleared, pages_of(&scene, "k", 0));
    assert_true(position_of(&scene, "k") > BEGINS);
    run_and_expect(scene.rig, "BF.EXISTS k 00000000; BF.EXISTS k 00019999",
                   ":1\r\n:1\r\n");
    buf_free(&group);
    scene_free(&scene);
}

/* Each piece reads all of its group again. */
TEST(even_a_very_long_group_has_few_pieces)
{
    enum { COMMANDS = 300, WORDS = 300, MOST = 40 };
    struct scene scene = scene_new();
    struct buf group = { 0 }, one = { 0 };

    make(&scene, "BF.RESERVE k 0.01 400000000; BF.RESERVE l 0.01 400000000");
    for (unsigned i = 0; i < COMMANDS; i++) {
        put_adds(&group, "k", i * WORDS, WORDS);
    }
    put_adds(&one, "l", 0, COMMANDS * WORDS);
    assert_true(clear_all(&scene, &group, 1) <= MOST);
    assert_true(clear_all(&scene, &one, 2) <= MOST);
    buf_free(&one);
    buf_free(&group);
    scene_free(&scene);
}

TEST(a_group_may_be_given_up_for_another_one)
{
    struct scene scene = scene_new();
    struct buf group = { 0 }, other = { 0 }, brief = { 0 };

    make(&scene, "BF.RESERVE k 0.01 80000000; BF.RESERVE l 0.01 80000000");
    put_adds(&group, "k", 0, MANY);
    put_adds(&other, "l", 7, MANY + 1);
    put_adds(&brief, "l", 7, MANY / 64);
    assert_false(clears(&scene, &group, 4));
    (void)clear_all(&scene, &other, 4); /* the same number on another link */
    assert_true(clears(&scene, &brief, 4));
    (void)clears(&scene, &group, 5); /* all of it, if the pages are huge now */
    execute(&scene, &group);         /* whatever is lacking */
    (void)clear_all(&scene, &brief, 6);
    execute(&scene, &brief);
    run_and_expect(scene.rig,
                   "BF.EXISTS k 00000000; BF.EXISTS k 00019999; BF.CARD l",
                   ":1\r\n:1\r\n:312\r\n");
    buf_free(&group);
    buf_free(&other);
    buf_free(&brief);
    scene_free(&scene);
}

TEST(the_filter_may_go_or_change_between_two_pieces)
{
    static const char *const changes[] = {
        "DEL k",
        "FLUSHALL",
        "DEL k; BF.RESERVE k 0.01 100",
        "SWAPDB 0 1",
        "RENAME k l",
        "DEL k; BF.RESERVE k 0.01 80000000 DELETABLE 0.01"
    };

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct scene scene = scene_new();
        struct buf group = { 0 };

        make(&scene, "BF.RESERVE k 0.01 80000000");
        put_adds(&group, "k", 0, MANY);
        assert_false(clears(&scene, &group, 1));
        make(&scene, changes[i]);
        (void)clear_all(&scene, &group, 1);
        buf_free(&group);
        scene_free(&scene);
    }
}

/* The database of the session stays: the group selects its own. */
TEST(a_group_is_cleared_in_its_databases)
{
    struct scene scene = scene_new();
    struct buf group = { 0 }, other = { 0 }, bad = { 0 };
    size_t cleared;

    make(&scene, "SELECT 3; BF.RESERVE k 0.01 80000000");
    encode(&group, "MULTI; SELECT 3");
    put_adds(&group, "k", 0, MANY);
    encode(&group, "SELECT 4; EXEC");
    assert_false(clears(&scene, &group, 1));
    (void)clear_all(&scene, &group, 1);
    cleared = pages_of(&scene, "k", 3);
    assert_true(cleared > MANY / 2);
    execute(&scene, &group);
    assert_int_equal(cleared, pages_of(&scene, "k", 3));
    run_and_expect(scene.rig, "SELECT 3; BF.EXISTS k 00019999",
                   "+OK\r\n:1\r\n");
    put_adds(&other, "k", 0, MANY);
    assert_int_equal(1, clear_all(&scene, &other, 2)); /* in database 4 */
    encode(&bad, "SELECT 99999");
    put_adds(&bad, "k", 0, MANY);
    encode(&bad, "SELECT x");
    put_adds(&bad, "k", 0, MANY);
    assert_int_equal(1, clear_all(&scene, &bad, 3));
    buf_free(&group);
    buf_free(&other);
    buf_free(&bad);
    scene_free(&scene);
}

/* The others are executed at once. */
TEST(only_long_adds_to_fresh_filters_are_in_pieces)
{
    struct scene scene = scene_new();
    struct buf group = { 0 };

    make(&scene, "BF.RESERVE k 0.01 80000000; BF.RESERVE s 0.01 100000");
    put_adds(&group, "k", 0, 100);
    put_adds(&group, "s", 0, MANY);
    put_adds(&group, "n", 0, MANY);
    assert_true(clears(&scene, &group, 1));
    put_adds(&group, "k", 0, MANY);
    encode(&group, "FLUSHALL");
    assert_true(apply_needs_world(scene.apply, buf_slice(&group)));
    assert_true(apply_clears(scene.apply, buf_slice(&group), 2));
    buf_free(&group);
    scene_free(&scene);
}
