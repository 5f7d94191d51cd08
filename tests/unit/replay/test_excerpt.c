/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which commands of a group an excerpt has, and where they end. That this is
 * enough, and no more, is what the random lives of test_complete.c show.
 */
#include "replay/excerpt.h"

#include "../engine/group_help.h"
#include "keyspace/hash_slot.h"

#include <errno.h>

enum { BEGINS = 1000 };

struct picked {
    const struct buf *group;
    struct buf text; /* the commands, each SELECT as [n] */
    unsigned pieces;
    int error;
};

/* Notes a piece, whose end must be where the group has the same bytes. */
static int
on_piece(void *ctx, const struct snapshot_effects *piece)
{
    static const char select[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n";
    struct picked *picked = ctx;
    size_t head = sizeof(select) - 1 + sizeof("0\r\n") - 1;
    size_t from = (size_t)(piece->position - BEGINS) + head;

    picked->pieces++;
    assert_true(piece->commands.len > head);
    assert_memory_equal(select, piece->commands.data, sizeof(select) - 1);
    buf_printf(&picked->text, "[%c]", piece->commands.data[sizeof(select) - 1]);
    assert_true(from + piece->commands.len - head <= picked->group->len);
    assert_memory_equal(picked->group->data + from, piece->commands.data + head,
                        piece->commands.len - head);
    for (size_t at = head; at < piece->commands.len; at++) {
        char c = piece->commands.data[at];

        if (c == '*') {
            buf_append(&picked->text, "|", 1);
        } else if (c >= 'A' && c <= 'Z') {
            buf_append(&picked->text, &c, 1);
        }
    }
    return picked->error;
}

static int
pick(struct excerpt *excerpt, const char *text, struct picked *picked)
{
    struct buf group = { 0 };
    struct snapshot_effects effects = { .position = BEGINS, .sequence = 7 };
    int error;

    encode(&group, text);
    effects.commands = buf_slice(&group);
    picked->group = &group;
    picked->pieces = 0;
    picked->text.len = 0;
    error = excerpt_group(excerpt, &effects, on_piece, picked);
    buf_append(&picked->text, "", 1);
    buf_free(&group);
    return error;
}

static void
expect(struct excerpt *excerpt, const char *text, const char *picks)
{
    struct picked picked = { 0 };

    assert_int_equal(0, pick(excerpt, text, &picked));
    assert_string_equal(picks, picked.text.data);
    buf_free(&picked.text);
}

TEST(excerpts_of_a_key_follow_its_database)
{
    const struct walk_part part = { .of = WALK_PART_KEY,
                                    .db = 1,
                                    .name = slice_lit("a") };
    struct rig *rig = rig_new();
    struct excerpt *excerpt = excerpt_new(&part);

    expect(excerpt,
           "SELECT 1; DEL a; DEL b; MULTI; DEL b a; EXEC; PERSIST a; "
           "SELECT 0; DEL a; MOVE a 1; FLUSHDB; SELECT 1; FLUSHDB",
           "[1]|DEL[1]|DEL[1]|PERSIST[0]|MOVE[1]|FLUSHDB");
    expect(excerpt, "SELECT 2; SWAPDB 1 2; DEL a; PERSIST a; FLUSHALL",
           "[2]|SWAPDB|DEL|PERSIST|FLUSHALL");
    expect(excerpt, "SELECT 1; RENAME a b; SELECT 2; RENAME b a; SWAPDB 7 2",
           "[2]|RENAME|SWAPDB");
    expect(excerpt, "SELECT 2; REPLCONF HISTORY x; RENAME a b", "");
    excerpt_free(excerpt);
    rig_free(rig);
}

TEST(excerpts_of_slots_are_of_all_databases)
{
    struct slot_set slots = { { 0 } };
    const struct walk_part part = { .of = WALK_PART_SLOTS, .slots = &slots };
    struct rig *rig = rig_new();
    struct excerpt *excerpt = excerpt_new(&part);

    slot_set_add(&slots, hash_slot_of(slice_lit("t")));
    expect(excerpt,
           "SELECT 1; DEL x{t}; DEL x; COPY x {t} DB 3; SELECT 2; FLUSHDB; "
           "DEL y x z{t}; BF.MERGE x y z",
           "[1]|DEL[1]|COPYDB[2]|FLUSHDB|DEL");
    excerpt_free(excerpt);
    rig_free(rig);
}

TEST(excerpts_of_a_database_have_all_its_keys)
{
    const struct walk_part part = { .of = WALK_PART_DB, .db = 3 };
    struct rig *rig = rig_new();
    struct excerpt *excerpt = excerpt_new(&part);
    struct picked picked = { .error = ECANCELED };

    expect(excerpt, "SELECT 3; DEL a; SELECT 4; DEL a; COPY a b DB 3; MOVE a 3",
           "[3]|DEL[4]|COPYDB|MOVE");
    assert_int_equal(
        ECANCELED, pick(excerpt, "SELECT 3; DEL a; SELECT 3; DEL a", &picked));
    assert_int_equal(1, picked.pieces);
    picked.error = 0;
    assert_int_equal(EINVAL, pick(excerpt, "SELECT 3; NOPE a", &picked));
    assert_int_equal(EINVAL, pick(excerpt, "SELECT x", &picked));
    assert_int_equal(EINVAL, pick(excerpt, "SWAPDB 1 4294967296", &picked));
    expect(excerpt, "SELECT 3; DEL a", "[3]|DEL");
    buf_free(&picked.text);
    excerpt_free(excerpt);
    rig_free(rig);
}
