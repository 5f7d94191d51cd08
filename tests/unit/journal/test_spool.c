/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups come back as they went in, from memory and from the file, and what
 * goes wrong is told.
 */
#include "../test.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "journal/group.h"
#include "journal/spool.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIMIT = 16 << 20, BEGIN = 1000 };

struct place {
    char path[64];
    int dir_fd;
    struct spool *spool;
    struct journal_tap tap;
    uint64_t position, sequence; /* where the next group begins */
    /* What came back. */
    uint64_t read_position, read_sequence;
    struct buf expected; /* all groups, one behind the other */
    size_t at;
    int error;
    atomic_int pokes;
};

static void
on_poke(void *ctx)
{
    atomic_fetch_add(&((struct place *)ctx)->pokes, 1);
}

static struct place *
place_new(uint64_t limit)
{
    struct place *place = mem_zalloc(sizeof(*place));

    strcpy(place->path, "/tmp/bloomery-spool-XXXXXX");
    assert_non_null(mkdtemp(place->path));
    assert_int_equal(file_open_dir(place->path, false, &place->dir_fd), 0);
    place->spool = spool_new(on_poke, place);
    spool_open(place->spool, place->dir_fd, limit);
    place->tap = spool_tap(place->spool);
    place->position = place->read_position = BEGIN;
    place->read_sequence = 7;
    place->tap.begin(place->tap.ctx, BEGIN, 7);
    return place;
}

/* The directory must be empty: the file has no name. */
static void
place_free(struct place *place)
{
    assert_int_equal(rmdir(place->path), 0);
    spool_free(place->spool);
    file_close(place->dir_fd);
    buf_free(&place->expected);
    mem_free(place);
}

/* A group of so many pieces. */
static void
put_group(struct place *place, unsigned pieces, size_t bytes, char byte)
{
    char *text = mem_alloc(bytes);

    memset(text, byte, bytes);
    for (unsigned i = 0; i < pieces; i++) {
        place->tap.text(place->tap.ctx, (struct slice){ text, bytes });
        buf_append(&place->expected, text, bytes);
    }
    place->tap.close(place->tap.ctx, 0, NULL);
    mem_free(text);
}

static int
on_group(void *ctx, uint64_t position, uint64_t sequence, struct slice commands)
{
    struct place *place = ctx;

    assert_int_equal(position, place->read_position);
    assert_int_equal(sequence, place->read_sequence + 1);
    assert_true(place->at + commands.len <= place->expected.len);
    assert_memory_equal(commands.data, place->expected.data + place->at,
                        commands.len);
    place->at += commands.len;
    place->read_position += commands.len + GROUP_SEAL_BYTES;
    place->read_sequence++;
    return place->error;
}

TEST(spool_gives_groups_back_from_memory)
{
    struct place *place = place_new(LIMIT);

    for (unsigned i = 0; i < 1000; i++) {
        put_group(place, 1 + i % 3, 1 + i, (char)('a' + i % 26));
    }
    assert_true(spool_bytes(place->spool) > 0);
    assert_int_equal(spool_read(place->spool, on_group, place), 0);
    assert_int_equal(place->at, place->expected.len);
    assert_int_equal(place->read_sequence, 1007);
    spool_close(place->spool);
    assert_int_equal(spool_bytes(place->spool), 0);
    place_free(place);
}

TEST(spool_gives_groups_back_from_its_file)
{
    struct place *place = place_new((uint64_t)1 << 30);

    for (unsigned i = 0; i < 100; i++) {
        put_group(place, 3, 300000 + i, (char)('a' + i % 26));
    }
    assert_int_equal(spool_error(place->spool), 0);
    assert_int_equal(spool_read(place->spool, on_group, place), 0);
    assert_int_equal(place->at, place->expected.len);
    place_free(place);
}

TEST(spool_of_nothing_has_no_groups)
{
    struct place *place = place_new(LIMIT);

    assert_int_equal(spool_read(place->spool, on_group, place), 0);
    assert_int_equal(place->read_sequence, 7);
    place_free(place);
}

TEST(spool_ends_with_the_error_of_the_reader)
{
    struct place *place = place_new(LIMIT);

    put_group(place, 1, 10, 'x');
    put_group(place, 1, 10, 'y');
    place->error = ENOSPC;
    assert_int_equal(spool_read(place->spool, on_group, place), ENOSPC);
    assert_int_equal(place->read_sequence, 8);
    place_free(place);
}

TEST(spool_fails_when_its_limit_is_reached)
{
    struct place *place = place_new(1 << 20);

    put_group(place, 4, 512 << 10, 'x');
    assert_int_equal(spool_error(place->spool), ENOBUFS);
    assert_int_equal(spool_read(place->spool, on_group, place), ENOBUFS);
    spool_open(place->spool, place->dir_fd, LIMIT); /* and again */
    assert_int_equal(spool_error(place->spool), 0);
    place_free(place);
}

/* So little stays in memory anyhow: the file takes nothing. */
TEST(spool_is_crowded_before_its_limit)
{
    struct place *place = place_new(4 << 20);

    put_group(place, 1, 2500 << 10, 'x');
    assert_false(spool_is_crowded(place->spool));
    assert_int_equal(atomic_load(&place->pokes), 0);
    put_group(place, 1, 1 << 20, 'x');
    assert_true(spool_is_crowded(place->spool));
    assert_int_equal(atomic_load(&place->pokes), 1);
    assert_int_equal(spool_error(place->spool), 0);
    spool_open(place->spool, place->dir_fd, LIMIT);
    assert_false(spool_is_crowded(place->spool));
    place_free(place);
}

/* The least that save-buffer-limit can be. */
TEST(spool_is_not_crowded_when_its_file_has_taken_enough)
{
    struct place *place = place_new(8 << 20);

    put_group(place, 1, 7 << 20, 'x');
    for (int i = 0; i < 20000 && spool_is_crowded(place->spool); i++) {
        (void)poll(NULL, 0, 1);
    }
    assert_false(spool_is_crowded(place->spool));
    assert_int_equal(atomic_load(&place->pokes) % 2, 0); /* on and off */
    assert_int_equal(spool_error(place->spool), 0);
    place_free(place);
}

TEST(spool_fails_when_the_log_moves)
{
    struct place *place = place_new(LIMIT);

    place->tap.begin(place->tap.ctx, BEGIN + 5, 9);
    assert_int_equal(spool_error(place->spool), ESTALE);
    place_free(place);
}

static void
wait_for_error(struct place *place)
{
    for (int i = 0; i < 20000 && spool_error(place->spool) == 0; i++) {
        (void)poll(NULL, 0, 1);
    }
}

TEST(spool_tells_of_a_file_that_fails)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct place *place = place_new(LIMIT);

        file_fail_at(calls[i], 1, ENOSPC, true);
        put_group(place, 12, 512 << 10, 'x');
        wait_for_error(place);
        assert_true(file_fail_clear());
        assert_int_equal(spool_error(place->spool), ENOSPC);
        place_free(place);
    }
}

TEST(spool_tells_of_missing_memory)
{
    struct place *place = place_new(LIMIT);

    mem_fail_at(1);
    place->tap.text(place->tap.ctx, slice_lit("text"));
    assert_true(mem_fail_clear());
    assert_int_equal(spool_error(place->spool), ENOMEM);
    place->tap.close(place->tap.ctx, 0, NULL);
    place_free(place);
}
