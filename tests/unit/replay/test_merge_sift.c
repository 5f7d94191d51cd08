/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which adds are offered, and what becomes of all other commands.
 */
#include "replay/merge_sift.h"

#include "../engine/group_help.h"
#include "base/mem.h"

#include <errno.h>

enum { LIFE = 7 };

struct told {
    struct buf text; /* "offer db key item;" or "aside db words;" */
    size_t changes;
    bool refuses;
};

static bool
on_offer(void *ctx, const struct merge_name *name, struct slice item)
{
    struct told *told = ctx;

    assert_int_equal(name->incarnation, LIFE);
    buf_printf(&told->text, "offer %u %.*s %.*s;", name->db,
               (int)name->name.len, name->name.data, (int)item.len, item.data);
    return !told->refuses;
}

static bool
on_aside(void *ctx, uint32_t db, const struct slice *argv, size_t argc,
         size_t changes)
{
    struct told *told = ctx;

    buf_printf(&told->text, "aside %u", db);
    for (size_t i = 0; i < argc; i++) {
        buf_printf(&told->text, " %.*s", (int)argv[i].len, argv[i].data);
    }
    buf_append(&told->text, ";", 1);
    told->changes += changes;
    return !told->refuses;
}

static struct merge_sift *
sift_new(void)
{
    command_table_init(command_rows);
    return merge_sift_new();
}

/* Sifts a log of one group in which all keys but "gone" are there. */
static int
sift(const char *text, struct told *ret_told)
{
    struct merge_sift_hooks hooks = { on_offer, on_aside, ret_told };
    struct merge_sift *made = sift_new();
    struct buf group = { 0 };
    int error;

    memset(ret_told, 0, sizeof(*ret_told));
    encode(&group, text);
    error = merge_sift_note(made, buf_slice(&group));
    for (size_t i = 0; i < merge_sift_count(made); i++) {
        struct merge_name *name = merge_sift_name(made, i);

        name->incarnation =
            slice_equal(name->name, slice_lit("gone")) ? 0 : LIFE;
    }
    if (error == 0) {
        error = merge_sift_split(made, buf_slice(&group), &hooks);
    }
    buf_append(&ret_told->text, "", 1);
    buf_free(&group);
    merge_sift_free(made);
    return error;
}

static void
assert_sifted(const char *log, const char *wanted, size_t changes)
{
    struct told told;

    assert_int_equal(sift(log, &told), 0);
    assert_string_equal(told.text.data, wanted);
    assert_int_equal(told.changes, changes);
    buf_free(&told.text);
}

TEST(adds_of_all_forms_are_offered_item_by_item)
{
    assert_sifted("SELECT 0;BF.ADD k a;BF.MADD k b c;SELECT 3;"
                  "BF.INSERT k NOCREATE ERROR 0.1 ITEMS d items",
                  "offer 0 k a;offer 0 k b;offer 0 k c;offer 3 k d;"
                  "offer 3 k items;",
                  0);
}

TEST(a_key_that_is_not_there_any_more_is_set_aside)
{
    assert_sifted("SELECT 0;BF.MADD gone a b;BF.ADD k a",
                  "aside 0 BF.MADD gone a b;offer 0 k a;", 2);
}

TEST(items_that_look_like_words_of_the_log_are_set_aside_too)
{
    assert_sifted("SELECT 0;BF.MADD gone a incarnation 4",
                  "aside 0 BF.MADD gone a incarnation 4;", 3);
}

TEST(all_of_a_key_that_was_created_or_deleted_is_set_aside)
{
    assert_sifted("SELECT 0;BF.ADD k a;BF.ADD x b;DEL k;"
                  "BF.INSERT k CAPACITY 5 SEED s STRIPES 1 LINES 2 "
                  "INCARNATION 9 ITEMS c;BF.ADD k d;SELECT 1;BF.ADD k e",
                  "aside 0 BF.ADD k a;offer 0 x b;aside 0 DEL k;"
                  "aside 0 BF.INSERT k CAPACITY 5 SEED s ITEMS c;"
                  "aside 0 BF.ADD k d;offer 1 k e;",
                  4);
}

TEST(a_time_to_live_leaves_the_life_as_it_is)
{
    assert_sifted("SELECT 0;BF.ADD k a;PEXPIREAT k 99;PERSIST k",
                  "offer 0 k a;aside 0 PEXPIREAT k 99;aside 0 PERSIST k;", 2);
}

TEST(copies_and_moves_count_in_all_databases)
{
    assert_sifted("SELECT 0;BF.ADD a 1;BF.ADD b 2;COPY a b DB 1 REPLACE "
                  "INCARNATION 5;SELECT 1;BF.ADD b 3;BF.ADD a 4",
                  "offer 0 a 1;aside 0 BF.ADD b 2;aside 0 COPY a b DB 1 "
                  "REPLACE;aside 1 BF.ADD b 3;offer 1 a 4;",
                  3);
    assert_sifted("SELECT 0;BF.ADD a 1;MOVE a 1",
                  "aside 0 BF.ADD a 1;aside 0 MOVE a 1;", 2);
}

TEST(a_merge_changes_its_destination_only)
{
    assert_sifted("SELECT 0;BF.MERGE d s INCARNATION 4;BF.ADD d 1;BF.ADD s 2",
                  "aside 0 BF.MERGE d s;aside 0 BF.ADD d 1;offer 0 s 2;", 2);
}

TEST(a_swap_of_databases_sets_all_aside)
{
    assert_sifted("SELECT 0;BF.ADD k a;SWAPDB 0 1;BF.ADD x b",
                  "aside 0 BF.ADD k a;aside 0 SWAPDB 0 1;aside 0 BF.ADD x b;",
                  3);
}

TEST(words_of_a_log_do_not_reach_a_client)
{
    assert_sifted("SELECT 0;BF.INSERT d PLACED + a 3 b;BF.MDEL d PLACED 1 a;"
                  "BF.INSERT g AT 77 ITEMS c;MULTI;BF.ADD k a;EXEC;"
                  "REPLCONF HISTORY x",
                  "aside 0 BF.INSERT d ITEMS a b;aside 0 BF.MDEL d a;"
                  "aside 0 BF.INSERT g ITEMS c;offer 0 k a;",
                  3);
}

TEST(what_is_no_log_is_refused_and_hooks_can_end_it)
{
    struct merge_sift_hooks hooks = { on_offer, on_aside, NULL };
    struct merge_sift *made = sift_new();
    struct told told = { .refuses = true };
    struct buf group = { 0 };

    assert_int_equal(merge_sift_note(made, slice_lit("rubbish")), EINVAL);
    encode(&group, "SELECT 0;NOSUCH k");
    assert_int_equal(merge_sift_note(made, buf_slice(&group)), EINVAL);
    buf_free(&group);
    encode(&group, "SELECT x;BF.ADD k a");
    assert_int_equal(merge_sift_note(made, buf_slice(&group)), EINVAL);
    buf_free(&group);
    encode(&group, "SELECT 0;BF.ADD k a");
    assert_int_equal(merge_sift_note(made, buf_slice(&group)), 0);
    hooks.ctx = &told;
    assert_int_equal(merge_sift_split(made, buf_slice(&group), &hooks),
                     ECANCELED);
    buf_free(&group);
    buf_free(&told.text);
    merge_sift_free(made);
}

TEST(without_memory_nothing_is_noted_by_halves)
{
    struct buf group = { 0 };
    bool fired = true;

    encode(&group, "SELECT 0;BF.ADD k a;BF.ADD x b;DEL y");
    for (unsigned nth = 1; fired; nth++) {
        struct merge_sift *made = sift_new();
        int error;

        mem_fail_at(nth);
        error = merge_sift_note(made, buf_slice(&group));
        fired = mem_fail_clear();
        assert_true(error == 0 || (fired && error == ENOMEM));
        if (error == 0) {
            assert_int_equal(merge_sift_count(made), 3);
        }
        merge_sift_free(made);
    }
    buf_free(&group);
}
