/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A part of the log becomes a heal file and a quarantine, or an error.
 */
#include "heal/merge_log.h"

#include "../engine/group_help.h"
#include "../home.h"
#include "base/file.h"
#include "heal/merge_held.h"
#include "heal/merge_names.h"

#include <errno.h>
#include <fcntl.h>

enum { KEY = 77, PLENTY = 1 << 20, LIFE = 7 };

#define HISTORY "0123456789abcdef0123456789abcdef01234567"

struct place {
    char dir[40];
    int fd;
    struct merge_held held;
    struct merge_log log;
    struct buf bytes; /* of the log */
    char heal[MERGE_NAME_MAX], aside[MERGE_NAME_MAX];
};

static void
place_open(struct place *place)
{
    command_table_init(command_rows);
    *place = (struct place){ .dir = "/tmp/merge-log-XXXXXX" };
    home_make(place->dir);
    assert_int_equal(0, file_open_dir(place->dir, false, &place->fd));
    place->held.dir = place->dir;
    place->log = (struct merge_log){ .dir = place->dir,
                                     .history = HISTORY,
                                     .position = 1000,
                                     .key = KEY,
                                     .quarantine_max = PLENTY,
                                     .held = &place->held,
                                     .raw_fd = -1 };
    merge_names_heal(HISTORY, 1000, place->heal);
    merge_names_quarantine(HISTORY, 1000, place->aside);
}

static void
place_close(struct place *place)
{
    merge_log_end(&place->log);
    merge_held_fini(&place->held);
    buf_free(&place->bytes);
    file_close(place->fd);
    home_remove(place->dir);
}

/* Appends a group with its seal. */
static void
put_group(struct place *place, uint64_t sequence, const char *text)
{
    struct group_hash *hash = group_hash_new();
    struct group_seal seal = { .sequence = sequence };
    struct buf *out = &place->bytes;
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

/* Collects the log in two pieces, as a backlog lends it. */
static int
collect(struct place *place)
{
    struct merge_log *log = &place->log;
    size_t half = place->bytes.len / 2;

    log->slices = mem_alloc(2 * sizeof(*log->slices));
    log->slices[0] = (struct slice){ place->bytes.data, half };
    log->slices[1] =
        (struct slice){ place->bytes.data + half, place->bytes.len - half };
    log->count = 2;
    log->end = log->position + place->bytes.len;
    merge_log_collect(log);
    return log->error;
}

/* All names but "gone" are there. */
static int
save(struct place *place)
{
    struct merge_log *log = &place->log;

    for (size_t i = 0; i < merge_sift_count(log->sift); i++) {
        struct merge_name *name = merge_sift_name(log->sift, i);

        name->incarnation =
            slice_equal(name->name, slice_lit("gone")) ? 0 : LIFE;
    }
    merge_log_write(log);
    return log->error;
}

static bool
is_there(const struct place *place, const char *name)
{
    return faccessat(place->fd, name, F_OK, 0) == 0;
}

static void
expect_no_rest(struct place *place)
{
    char temp[MERGE_NAME_MAX + 8];

    (void)snprintf(temp, sizeof(temp), "%s.tmp", place->heal);
    assert_false(is_there(place, temp));
}

/* Compares the only group of the heal file with commands. */
static void
expect_heal(struct place *place, const char *text)
{
    static char got[8192];
    struct group_file first;
    struct group group;
    struct buf want = { 0 };
    size_t len = 0;

    encode(&want, text);
    assert_int_equal(
        0, file_read_name(place->fd, place->heal, got, sizeof(got), &len));
    assert_int_equal(GROUP_OK,
                     group_read_first_line((struct slice){ got, len }, &first));
    assert_string_equal(HISTORY, first.run_id);
    assert_int_equal(GROUP_OK, group_read((struct slice){ got, len }, first.key,
                                          GROUP_FIRST_LINE_BYTES, &group));
    assert_int_equal(len, group.end);
    assert_int_equal(want.len, group.commands.len);
    assert_memory_equal(want.data, group.commands.data, want.len);
    buf_free(&want);
}

TEST(adds_are_offered_by_key_and_the_rest_is_set_aside)
{
    struct place place;

    place_open(&place);
    put_group(&place, 5, "SELECT 0;BF.ADD k a;BF.ADD other x;BF.ADD k b");
    put_group(&place, 6, "SELECT 0;BF.ADD gone g;BF.ADD k c");
    assert_int_equal(0, collect(&place));
    assert_int_equal(3, merge_sift_count(place.log.sift));
    assert_int_equal(0, save(&place));
    assert_int_equal(4, place.log.offered);
    assert_int_equal(1, place.log.quarantined);
    assert_int_equal(0, place.log.lost);
    assert_int_equal(1, place.held.count);
    expect_heal(&place, "SELECT 0;BF.INSERT k IFINCARNATION 7 ITEMS a b c;"
                        "BF.INSERT other IFINCARNATION 7 ITEMS x");
    assert_true(is_there(&place, place.aside));
    expect_no_rest(&place);
    place_close(&place);
}

TEST(a_log_without_offers_leaves_no_heal_file)
{
    struct place place;

    place_open(&place);
    put_group(&place, 5, "SELECT 0;BF.ADD gone a;DEL gone");
    assert_int_equal(0, collect(&place));
    assert_int_equal(0, save(&place));
    assert_int_equal(0, place.log.offered);
    assert_int_equal(0, place.held.count);
    assert_false(is_there(&place, place.heal));
    assert_true(is_there(&place, place.aside));
    expect_no_rest(&place);
    place_close(&place);
}

TEST(a_quarantine_that_is_full_counts_what_is_lost)
{
    struct place place;

    place_open(&place);
    place.log.quarantine_max = 70; /* a SELECT and one of them */
    put_group(&place, 5, "SELECT 0;BF.MADD gone a;BF.MADD gone b c;BF.ADD k d");
    assert_int_equal(0, collect(&place));
    assert_int_equal(0, save(&place));
    assert_int_equal(1, place.log.quarantined);
    assert_int_equal(2, place.log.lost);
    assert_int_equal(1, place.log.offered);
    place_close(&place);
}

TEST(damage_in_the_part_is_an_error_and_leaves_no_file)
{
    struct place place;

    place_open(&place);
    put_group(&place, 5, "SELECT 0;BF.ADD k a");
    place.bytes.data[place.bytes.len / 2] ^= 1;
    assert_int_equal(EBADMSG, collect(&place));
    assert_false(is_there(&place, place.heal));
    place_close(&place);
}

TEST(a_directory_that_is_gone_is_an_error)
{
    struct place place;

    place_open(&place);
    put_group(&place, 5, "SELECT 0;BF.ADD k a");
    assert_int_equal(0, collect(&place));
    place.log.dir = "/nothing/here";
    assert_int_equal(ENOENT, save(&place));
    assert_int_equal(0, place.held.count);
    place.log.dir = place.dir;
    place_close(&place);
}

TEST(a_journal_that_is_missing_may_come_and_is_tried_again)
{
    struct place place;

    place_open(&place);
    place.log.end = 2000;
    place.log.journal_dir = mem_copy_text(slice_lit("/nothing/here"));
    merge_log_collect(&place.log);
    assert_int_equal(ENODATA, place.log.error);
    merge_log_collect(&place.log);
    assert_int_equal(ENODATA, place.log.error);
    place_close(&place);
}
