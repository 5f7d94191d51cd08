/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Saved adds are read batch by batch; what was refused of them is kept as
 * commands, and a damaged file under another name.
 */
#include "heal/merge_read.h"

#include "../engine/group_help.h"
#include "../home.h"
#include "base/buf.h"
#include "base/file.h"
#include "command/rows.h"
#include "heal/merge_held.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { KEY = 77, PLENTY = 1 << 20 };

#define HISTORY         "0123456789abcdef0123456789abcdef01234567"
#define ADD(key, items) "BF.INSERT " key " IFINCARNATION 7 ITEMS " items

struct place {
    char dir[40];
    int fd;
    struct merge_held held;
    struct merge_read read;
};

static void
open_place(struct place *place)
{
    command_table_init(command_rows);
    *place = (struct place){ .dir = "/tmp/merge-read-XXXXXX", .fd = -1 };
    home_make(place->dir);
    assert_int_equal(0, file_open_dir(place->dir, false, &place->fd));
    place->held.dir = place->read.dir = place->dir;
    place->read.held = &place->held;
    place->read.quarantine_max = PLENTY;
}

static void
close_place(struct place *place)
{
    merge_read_end(&place->read);
    merge_held_fini(&place->held);
    file_close(place->fd);
    home_remove(place->dir);
}

/* Appends a group with its seal. */
static void
put_group(struct buf *out, uint64_t sequence, const char *text)
{
    struct group_hash *hash = group_hash_new();
    struct group_seal seal = { .sequence = sequence };
    char sealed[GROUP_SEAL_BYTES];
    size_t begin = out->len;

    encode(out, text);
    seal.bytes = out->len - begin;
    group_hash_begin(hash, KEY);
    group_hash_add(hash, out->data + begin, out->len - begin);
    group_write_seal(hash, KEY, &seal, sealed);
    buf_append(out, sealed, sizeof(sealed));
    group_hash_free(hash);
}

/* Writes a heal file; ret_name gets its name. cut: bytes that it lacks. */
static void
put_file(struct place *place, uint64_t position, const char *const *groups,
         size_t count, size_t cut, char *ret_name)
{
    struct group_file first = { .key = KEY };
    struct buf out = { 0 };
    int fd = -1;

    memcpy(first.run_id, HISTORY, sizeof(HISTORY));
    group_write_first_line(&first, buf_reserve(&out, GROUP_FIRST_LINE_BYTES));
    out.len += GROUP_FIRST_LINE_BYTES;
    for (size_t i = 0; i < count; i++) {
        put_group(&out, i + 1, groups[i]);
    }
    merge_names_heal(HISTORY, position, ret_name);
    assert_int_equal(0, file_create(place->fd, ret_name, &fd));
    assert_int_equal(0, file_write(fd, out.data, out.len - cut));
    file_close(fd);
    buf_free(&out);
}

static bool
is_there(const struct place *place, const char *name)
{
    return faccessat(place->fd, name, F_OK, 0) == 0;
}

/* Compares a file with commands. */
static void
expect_file(const struct place *place, const char *name, const char *text)
{
    static char got[4096];
    struct buf want = { 0 };
    size_t len = 0;

    encode(&want, text);
    assert_int_equal(0,
                     file_read_name(place->fd, name, got, sizeof(got), &len));
    assert_int_equal(want.len, len);
    assert_memory_equal(want.data, got, len);
    buf_free(&want);
}

/* Reads the next batch, and refuses these of it. */
static void
next_batch(struct place *place, uint32_t commands,
           struct merge_refusal *refusals, size_t refused)
{
    struct merge_read *read = &place->read;

    merge_read_next(read);
    assert_int_equal(0, read->error);
    assert_int_equal(commands, read->commands);
    assert_true((commands > 0) == (read->batch.len > 0));
    read->refusals = refusals;
    read->refused = refused;
    merge_read_store(read);
    assert_int_equal(0, read->error);
}

TEST(an_offered_file_goes_and_what_was_refused_stays)
{
    static const char *const groups[] = {
        "SELECT 0;" ADD("k", "a b c") ";" ADD("l", "d"),
        "SELECT 3;" ADD("k", "e") ";" ADD("m", "f g"),
    };
    struct merge_refusal first[] = { { 1, 1 }, { 2, 0 } };
    struct merge_refusal second[] = { { 2, 1 } };
    struct place place;
    char name[MERGE_NAME_MAX], refused[MERGE_NAME_MAX];

    open_place(&place);
    put_file(&place, 9, groups, 2, 0, name);
    merge_read_find(&place.read);
    assert_string_equal(name, place.read.name);
    assert_int_equal(1, place.held.count);
    next_batch(&place, 3, first, 2);
    assert_int_equal(3, place.read.quarantined);
    next_batch(&place, 3, second, 1);
    assert_int_equal(1, place.read.quarantined);
    next_batch(&place, 0, NULL, 0);
    merge_read_finish(&place.read);
    assert_int_equal(0, place.read.error);
    assert_int_equal(0, place.held.count);
    assert_false(is_there(&place, name));
    merge_names_refused(name, refused);
    expect_file(&place, refused,
                "SELECT 0;BF.MADD k b c;BF.MADD l d;SELECT 3;BF.MADD m g");
    close_place(&place);
}

TEST(without_refusals_there_is_no_quarantine)
{
    static const char *const groups[] = { "SELECT 0;" ADD("k", "a") };
    struct place place;
    char name[MERGE_NAME_MAX], refused[MERGE_NAME_MAX];

    open_place(&place);
    put_file(&place, 9, groups, 1, 0, name);
    merge_names_refused(name, refused);
    merge_read_find(&place.read);
    next_batch(&place, 2, NULL, 0);
    next_batch(&place, 0, NULL, 0);
    merge_read_finish(&place.read);
    assert_false(is_there(&place, name));
    assert_false(is_there(&place, refused));
    close_place(&place);
}

/* What is too much for it is counted; what is smaller may still fit. */
TEST(the_quarantine_has_a_limit)
{
    static const char *const groups[] = {
        "SELECT 0;" ADD("k", "a-long-item-that-does-not-fit b") ";" ADD("k",
                                                                        "c"),
    };
    struct merge_refusal all[] = { { 1, 0 }, { 2, 0 } };
    struct place place;
    char name[MERGE_NAME_MAX], refused[MERGE_NAME_MAX];

    open_place(&place);
    place.read.quarantine_max = 64;
    put_file(&place, 9, groups, 1, 0, name);
    merge_names_refused(name, refused);
    merge_read_find(&place.read);
    next_batch(&place, 3, all, 2);
    assert_int_equal(2, place.read.lost);
    assert_int_equal(1, place.read.quarantined);
    expect_file(&place, refused, "SELECT 0;BF.MADD k c");
    close_place(&place);
}

/* An interrupted offer begins again, with an empty file of refusals. */
TEST(an_interrupted_offer_begins_again)
{
    static const char *const groups[] = { "SELECT 0;" ADD("k", "a"),
                                          "SELECT 0;" ADD("k", "b") };
    struct merge_refusal one[] = { { 1, 0 } };
    struct place place;
    char name[MERGE_NAME_MAX], refused[MERGE_NAME_MAX];

    open_place(&place);
    put_file(&place, 9, groups, 2, 0, name);
    merge_names_refused(name, refused);
    for (unsigned round = 0; round < 2; round++) {
        merge_read_find(&place.read);
        next_batch(&place, 2, one, 1);
        expect_file(&place, refused, "SELECT 0;BF.MADD k a");
        merge_read_end(&place.read);
    }
    assert_true(is_there(&place, name));
    close_place(&place);
}

TEST(files_come_by_name_and_unfinished_ones_go)
{
    static const char *const groups[] = { "SELECT 0;" ADD("k", "a") };
    struct place place;
    char late[MERGE_NAME_MAX], early[MERGE_NAME_MAX];
    int fd = -1;

    open_place(&place);
    put_file(&place, 12, groups, 1, 0, late);
    put_file(&place, 11, groups, 1, 0, early);
    assert_int_equal(0, file_create(place.fd, "heal-x-1.log.tmp", &fd));
    file_close(fd);
    merge_read_find(&place.read);
    assert_string_equal(early, place.read.name);
    assert_int_equal(2, place.held.count);
    assert_int_equal(2 * merge_names_bytes(place.fd, late),
                     place.read.bytes_waiting);
    assert_false(is_there(&place, "heal-x-1.log.tmp"));
    close_place(&place);
}

static void
expect_damage(const char *const *groups, size_t count, size_t cut,
              unsigned whole)
{
    struct place place;
    char name[MERGE_NAME_MAX], aside[MERGE_NAME_MAX + 16];

    open_place(&place);
    put_file(&place, 9, groups, count, cut, name);
    merge_read_find(&place.read);
    for (unsigned i = 0; i < whole; i++) {
        next_batch(&place, 2, NULL, 0);
    }
    if (place.read.error == 0) {
        merge_read_next(&place.read);
    }
    assert_int_equal(EBADMSG, place.read.error);
    assert_int_equal(0, place.read.batch.len);
    merge_read_finish(&place.read);
    assert_true(place.read.set_aside);
    assert_int_equal(0, place.read.error);
    (void)snprintf(aside, sizeof(aside), "%s.damaged", name);
    assert_true(is_there(&place, aside));
    assert_false(is_there(&place, name));
    close_place(&place);
}

TEST(a_damaged_file_is_set_aside_behind_its_intact_batches)
{
    static const char *const two[] = { "SELECT 0;" ADD("k", "a"),
                                       "SELECT 0;" ADD("k", "b") };
    static const char *const no_item[] = {
        "SELECT 0;" ADD("k", "a"), "SELECT 0; BF.INSERT k IFINCARNATION 7 ITEMS"
    };
    static const char *const no_number[] = { "SELECT x;" ADD("k", "a") };

    expect_damage(two, 2, 1, 1);
    expect_damage(two, 2, GROUP_SEAL_BYTES, 1);
    expect_damage(two, 0, 1, 0); /* of the first line */
    expect_damage(no_item, 2, 0, 1);
    expect_damage(no_number, 1, 0, 0);
}

TEST(a_directory_without_saved_adds_has_no_file)
{
    struct place place;

    open_place(&place);
    merge_read_find(&place.read);
    assert_int_equal(0, place.read.error);
    assert_string_equal("", place.read.name);
    close_place(&place);
}
