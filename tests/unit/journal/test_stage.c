/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes of a piece, and that chunks live exactly as long as they are
 * needed.
 */
#include "journal/stage.h"

#include "../test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORDS_MAX = 8 };

/* Adds an effect of words that a blank separates. */
static void
add(struct stage *stage, uint32_t db, const char *text)
{
    struct slice argv[WORDS_MAX];
    size_t argc = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        argv[argc++] = (struct slice){ text, len };
        text += len;
        text += *text == ' ';
    }
    stage_add(stage, db, argv, argc);
}

static void
open_piece(struct stage *stage, size_t bytes)
{
    assert_true(stage_open(stage, bytes));
}

static void
assert_text(const char *expected, const struct piece *piece)
{
    struct slice text = piece_text(piece);

    assert_int_equal(strlen(expected), text.len);
    assert_memory_equal(expected, text.data, text.len);
    assert_ptr_equal(piece->select.data + piece->select.len, piece->body.data);
}

TEST(an_effect_is_written_as_resp_behind_a_select)
{
    struct stage stage = { 0 };
    struct piece *piece;

    open_piece(&stage, 1000);
    add(&stage, 7, "BF.ADD key item");
    piece = stage_close(&stage, false);
    assert_text("*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n"
                "*3\r\n$6\r\nBF.ADD\r\n$3\r\nkey\r\n$4\r\nitem\r\n",
                piece);
    assert_int_equal(7, piece->db_first);
    assert_int_equal(7, piece->db_last);
    assert_false(piece->last);
    piece_free(piece);
    stage_fini(&stage);
}

TEST(an_effect_in_resp_is_taken_as_it_is)
{
    struct stage stage = { 0 };
    struct piece *piece;

    open_piece(&stage, 1000);
    stage_add_resp(&stage, 7, slice_lit("*1\r\n$4\r\nPING\r\n"));
    add(&stage, 7, "DEL k");
    stage_add_resp(&stage, 2, slice_lit("*1\r\n$4\r\nPING\r\n"));
    piece = stage_close(&stage, true);
    assert_text("*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n*1\r\n$5\r\nMULTI\r\n"
                "*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
                "*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n*1\r\n$4\r\nPING\r\n"
                "*1\r\n$4\r\nEXEC\r\n",
                piece);
    piece_free(piece);
    stage_fini(&stage);
}

TEST(a_database_of_any_number_is_selected)
{
    struct stage stage = { 0 };
    uint32_t db = 1;

    for (int digits = 1; digits <= 10; digits++) {
        char expected[100];
        struct piece *piece;

        (void)snprintf(expected, sizeof(expected),
                       "*2\r\n$6\r\nSELECT\r\n$%d\r\n%u\r\n"
                       "*2\r\n$3\r\nDEL\r\n$1\r\na\r\n",
                       digits, db);
        open_piece(&stage, 1000);
        add(&stage, db, "DEL a");
        piece = stage_close(&stage, false);
        assert_text(expected, piece);
        piece_free(piece);
        db = db * 10 + 3;
    }
    stage_fini(&stage);
}

TEST(another_database_is_selected_in_between)
{
    struct stage stage = { 0 };
    struct piece *piece;

    open_piece(&stage, 1000);
    add(&stage, UINT32_MAX, "DEL a");
    add(&stage, UINT32_MAX, "DEL b");
    add(&stage, 0, "DEL c");
    piece = stage_close(&stage, false);
    assert_text("*2\r\n$6\r\nSELECT\r\n$10\r\n4294967295\r\n"
                "*2\r\n$3\r\nDEL\r\n$1\r\na\r\n"
                "*2\r\n$3\r\nDEL\r\n$1\r\nb\r\n"
                "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
                "*2\r\n$3\r\nDEL\r\n$1\r\nc\r\n",
                piece);
    assert_true(piece->db_first == UINT32_MAX);
    assert_int_equal(0, piece->db_last);
    piece_free(piece);
    stage_fini(&stage);
}

TEST(a_transaction_of_several_stands_between_multi_and_exec)
{
    struct stage stage = { 0 };
    struct piece *one, *two;

    open_piece(&stage, 1000);
    add(&stage, 12, "DEL a");
    one = stage_close(&stage, true);
    open_piece(&stage, 1000);
    add(&stage, UINT32_MAX, "DEL a");
    add(&stage, UINT32_MAX, "DEL b");
    two = stage_close(&stage, true);
    assert_text("*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n*2\r\n$3\r\nDEL\r\n$1\r\n"
                "a\r\n",
                one);
    assert_text("*2\r\n$6\r\nSELECT\r\n$10\r\n4294967295\r\n"
                "*1\r\n$5\r\nMULTI\r\n"
                "*2\r\n$3\r\nDEL\r\n$1\r\na\r\n*2\r\n$3\r\nDEL\r\n$1\r\nb\r\n"
                "*1\r\n$4\r\nEXEC\r\n",
                two);
    piece_free(two);
    piece_free(one);
    stage_fini(&stage);
}

TEST(a_piece_without_effects_is_none)
{
    struct stage stage = { 0 };
    struct piece *piece;

    assert_null(stage_close(&stage, false));
    open_piece(&stage, 100);
    assert_null(stage_close(&stage, true));
    open_piece(&stage, 0);
    open_piece(&stage, 200); /* the last one counts */
    add(&stage, 0, "DEL a");
    piece = stage_close(&stage, false);
    assert_non_null(piece);
    assert_null(stage_close(&stage, false));
    piece_free(piece);
    stage_fini(&stage);
}

/* All lengths around the copies of fixed size, in exactly the room that was
 * asked for. */
TEST(words_of_any_length_are_copied_into_the_room_they_ask_for)
{
    struct stage stage = { 0 };
    char word[1100];

    for (size_t i = 0; i < sizeof(word); i++) {
        word[i] = (char)(i * 7 % 251);
    }
    for (size_t len = 0; len < sizeof(word); len += len < 80 ? 1 : 101) {
        struct slice argv[12];
        struct buf expected = { 0 };
        struct piece *piece;
        size_t argc = 1 + len % 12;

        for (size_t i = 0; i < argc; i++) {
            argv[i] = (struct slice){ word + i, i == 0 ? len : i * 5 };
        }
        open_piece(&stage, stage_effect_bytes(argv, argc));
        stage_add(&stage, 3, argv, argc);
        piece = stage_close(&stage, false);
        buf_printf(&expected, "*%zu\r\n", argc);
        for (size_t i = 0; i < argc; i++) {
            buf_printf(&expected, "$%zu\r\n", argv[i].len);
            buf_append_slice(&expected, argv[i]);
            buf_append(&expected, "\r\n", 2);
        }
        assert_int_equal(expected.len, piece->body.len);
        assert_memory_equal(expected.data, piece->body.data, expected.len);
        buf_free(&expected);
        piece_free(piece);
    }
    stage_fini(&stage);
}

/* ---- chunks -------------------------------------------------------------- */

static struct piece *
make_piece(struct stage *stage)
{
    open_piece(stage, 200);
    add(stage, 0, "BF.ADD key item");
    return stage_close(stage, false);
}

TEST(the_room_of_pieces_that_are_done_with_is_used_again)
{
    struct stage stage = { 0 };
    struct chunk *chunk;

    piece_free(make_piece(&stage));
    chunk = stage.chunk;
    for (int i = 0; i < 10000; i++) {
        piece_free(make_piece(&stage));
        assert_ptr_equal(chunk, stage.chunk);
    }
    stage_fini(&stage);
}

TEST(pieces_outlive_what_comes_behind_them_and_their_stage)
{
    uint64_t before = mem_used();
    struct stage stage = { 0 };
    struct piece *pieces = NULL;

    for (int i = 0; i < 10000; i++) {
        struct piece *piece = make_piece(&stage);

        piece->next = pieces;
        pieces = piece;
    }
    stage_fini(&stage);
    assert_true(mem_used() > before);
    while (pieces != NULL) {
        struct piece *next = pieces->next;

        assert_text("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
                    "*3\r\n$6\r\nBF.ADD\r\n$3\r\nkey\r\n$4\r\nitem\r\n",
                    pieces);
        piece_free(pieces);
        pieces = next;
    }
    assert_int_equal(before, mem_used());
}

/* What is reserved and not used is held as long as the pieces beside it. */
TEST(pieces_know_what_memory_their_chunks_cannot_use)
{
    struct stage stage = { 0 };
    struct piece *pieces[40];
    size_t known = 0;
    int64_t before = metric_sum(METRIC_MEM_USED);
    int64_t held;

    for (size_t i = 0; i < 40; i++) {
        open_piece(&stage, 90000); /* two in a chunk of 256 KiB */
        for (size_t n = 0; n < 1000; n++) {
            add(&stage, 0, "BF.ADD a-key-of-some-length item");
        }
        pieces[i] = stage_close(&stage, false);
        known +=
            piece_text(pieces[i]).len + sizeof(*pieces[i]) + pieces[i]->spare;
    }
    held = metric_sum(METRIC_MEM_USED) - before;
    assert_true(held > 0 && known < (size_t)held);
    /* All but the last chunk, and what the allocator rounds up. */
    assert_true((double)known > 0.75 * (double)held);
    for (size_t i = 0; i < 40; i++) {
        piece_free(pieces[i]);
    }
    stage_fini(&stage);
    assert_int_equal(metric_sum(METRIC_MEM_USED), before);
}

TEST(a_large_request_gets_a_chunk_of_its_own)
{
    uint64_t before = mem_used();
    struct stage stage = { 0 };
    size_t len = 3000001;
    char *item = mem_alloc(len);
    struct slice argv[] = { slice_lit("BF.ADD"),
                            slice_lit("key"),
                            { item, len } };
    struct piece *small = make_piece(&stage);
    struct piece *large;

    memset(item, 'x', len);
    open_piece(&stage, stage_effect_bytes(argv, 3));
    stage_add(&stage, 0, argv, 3);
    large = stage_close(&stage, false);
    assert_true(large->body.len > len);
    assert_memory_equal(item, large->body.data + large->body.len - 2 - len,
                        len);
    piece_free(large);
    piece_free(make_piece(&stage));
    piece_free(small);
    stage_fini(&stage);
    mem_free(item);
    assert_int_equal(before, mem_used());
}

/* However large the request, and whatever came of it. */
TEST(a_stage_keeps_one_chunk_of_the_usual_size_at_most)
{
    enum { USUAL = 300 * 1024 }; /* with the allocator's overhead */
    static const size_t sizes[] = { 200, 200 * 1024, 260 * 1024, 120 << 20 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint64_t before = mem_used();
        struct stage stage = { 0 };
        struct piece *piece;

        open_piece(&stage, sizes[i]); /* and refused */
        assert_null(stage_close(&stage, false));
        assert_true(mem_used() < before + USUAL);

        open_piece(&stage, sizes[i]);
        add(&stage, 0, "DEL a");
        piece = stage_close(&stage, false);
        piece_free(piece); /* the room goes with it */
        assert_true(mem_used() < before + USUAL);

        open_piece(&stage, sizes[i]);
        open_piece(&stage, 200); /* the last one counts */
        assert_true(mem_used() < before + USUAL);
        add(&stage, 0, "DEL a");
        piece = stage_close(&stage, false);
        assert_true(mem_used() < before + USUAL);
        piece_free(piece);
        piece_free(make_piece(&stage));
        assert_true(mem_used() < before + USUAL);
        stage_fini(&stage);
        assert_int_equal(before, mem_used());
    }
}

TEST(without_memory_for_less_the_room_for_more_has_to_do)
{
    struct stage stage = { 0 };
    uint64_t before = mem_used();

    open_piece(&stage, 1 << 20);
    mem_fail_from(1);
    open_piece(&stage, 200);
    assert_true(mem_fail_clear());
    add(&stage, 0, "DEL a");
    piece_free(stage_close(&stage, false));
    assert_int_equal(before, mem_used());
}

TEST(without_memory_nothing_changes)
{
    struct stage stage = { 0 };
    struct piece *piece;

    mem_fail_from(1);
    assert_false(stage_open(&stage, 100));
    assert_true(mem_fail_clear());
    assert_null(stage.chunk);
    assert_false(stage_open(&stage, SIZE_MAX - 10));
    piece = make_piece(&stage);
    mem_fail_from(1);
    assert_false(stage_open(&stage, 1000000));
    assert_true(mem_fail_clear());
    assert_false(stage_open(&stage, SIZE_MAX - 10));
    piece_free(piece);
    piece_free(make_piece(&stage));
    stage_fini(&stage);
}

TEST(with_little_memory_a_chunk_is_no_larger_than_it_must_be)
{
    struct stage stage = { 0 };
    uint64_t before = mem_used();

    mem_fail_at(1);
    assert_true(stage_open(&stage, 200));
    assert_true(mem_fail_clear());
    assert_in_range(mem_used() - before, 100, 1000);
    add(&stage, 0, "DEL a");
    piece_free(stage_close(&stage, false));
    open_piece(&stage, 200); /* there is memory again */
    add(&stage, 0, "DEL a");
    piece_free(stage_close(&stage, false));
    stage_fini(&stage);
    assert_int_equal(before, mem_used());
}

struct pipe {
    _Atomic(struct piece *) slot[64];
};

enum { PIPED = 100000 };

static void *
free_piped(void *arg)
{
    struct pipe *pipe = arg;
    unsigned count = test_times(PIPED);

    for (unsigned i = 0; i < count; i++) {
        struct piece *piece;

        while ((piece = atomic_exchange(&pipe->slot[i % 64], NULL)) == NULL) {
            (void)sched_yield();
        }
        assert_int_equal('*', piece->body.data[0]);
        piece_free(piece);
    }
    metric_thread_exit();
    return NULL;
}

TEST(pieces_may_be_freed_by_another_thread_while_others_are_made)
{
    uint64_t before = mem_used();
    struct stage stage = { 0 };
    struct pipe pipe = { { NULL } };
    unsigned count = test_times(PIPED);
    pthread_t thread;

    assert_int_equal(0, pthread_create(&thread, NULL, free_piped, &pipe));
    for (unsigned i = 0; i < count; i++) {
        struct piece *piece = make_piece(&stage);
        struct piece *none = NULL;

        while (
            !atomic_compare_exchange_weak(&pipe.slot[i % 64], &none, piece)) {
            (void)sched_yield();
            none = NULL;
        }
    }
    stage_fini(&stage);
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(before, mem_used());
}

TEST(a_copied_group_is_a_piece_of_its_own)
{
    uint64_t before = mem_used();
    char text[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";
    struct piece *piece = piece_try_copy(slice_of(text));

    assert_non_null(piece);
    memset(text, 'x', sizeof(text));
    assert_text("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n", piece);
    assert_int_equal(0, piece->select.len);
    assert_true(piece->last && piece->next == NULL);
    piece_free(piece);
    mem_fail_at(1);
    assert_null(piece_try_copy(slice_lit("*1")));
    assert_true(mem_fail_clear());
    assert_null(piece_try_copy((struct slice){ text, SIZE_MAX - 8 }));
    assert_int_equal(before, mem_used());
}
