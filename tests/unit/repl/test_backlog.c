/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is tapped comes out again, with seals that hold, wherever blocks end;
 * while others append; and after memory was short.
 */
#include "repl/backlog.h"

#include "../journal/log_help.h"
#include "../test.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <pthread.h>
#include <sched.h>

enum { BLOCK = 64 * 1024 };

static const char select_zero[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";

/* Appends a group of about `bytes` bytes in pieces, as a journal does.
 * Allocates no memory that may fail. */
static void
tap_group(struct backlog *backlog, uint64_t sequence, size_t bytes)
{
    struct journal_tap tap = backlog_tap(backlog);
    char head[64];
    char *item = mem_alloc(bytes + 2);

    (void)snprintf(head, sizeof(head),
                   "*3\r\n$6\r\nBF.ADD\r\n$4\r\nname\r\n$%zu\r\n", bytes);
    memset(item, 'a' + (int)(sequence % 26), bytes);
    memcpy(item + bytes, "\r\n", 2);
    tap.text(tap.ctx, slice_of(select_zero));
    tap.text(tap.ctx, slice_of(head));
    tap.text(tap.ctx, (struct slice){ item, bytes + 2 });
    tap.close(tap.ctx, sequence, NULL);
    mem_free(item);
}

/* Reads all bytes from `from` on. */
static void
read_all(const struct backlog *backlog, uint64_t from, struct buf *ret_text)
{
    uint64_t end = backlog_sealed(backlog);

    ret_text->len = 0;
    while (from < end) {
        struct slice some = backlog_read(backlog, from, end);

        assert_true(some.len > 0 && some.len <= BLOCK);
        buf_append_slice(ret_text, some);
        from += some.len;
    }
    assert_int_equal(backlog_read(backlog, end, end).len, 0);
}

/* Checks the groups first, first + 1, ... of the text. Returns how many there
 * are. */
static uint64_t
assert_groups(struct slice log, uint64_t key, uint64_t first)
{
    uint64_t count = 0;
    struct group group = { 0 };

    while (group.end < log.len) {
        assert_int_equal(group_read(log, key, group.end, &group), GROUP_OK);
        assert_int_equal(group.seal.sequence, first + count);
        assert_int_equal(group.seal.durable_sequence, 0);
        assert_int_equal(group.seal.unix_ms, LOG_MS);
        count++;
    }
    return count;
}

TEST(a_new_one_is_empty_and_costs_nothing)
{
    struct backlog *backlog = backlog_new();

    assert_int_equal(backlog_bytes(backlog), 0);
    assert_int_equal(backlog_first(backlog), 0);
    assert_int_equal(backlog_seal(backlog, LOG_KEY, LOG_MS), 0);
    assert_int_equal(backlog_read(backlog, 0, 0).len, 0);
    assert_false(backlog_is_broken(backlog));
    backlog_trim(backlog, UINT64_MAX, 0);
    backlog_begin(backlog, 77);
    assert_int_equal(backlog_first(backlog), 77);
    assert_int_equal(backlog_sealed(backlog), 77);
    backlog_free(backlog);
    backlog_free(NULL);
}

TEST(nothing_is_read_before_its_group_is_closed_and_sealed)
{
    struct backlog *backlog = backlog_new();
    struct journal_tap tap = backlog_tap(backlog);
    uint64_t end;
    struct buf log = { 0 };

    backlog_begin(backlog, 1000);
    tap.text(tap.ctx, slice_of(select_zero));
    assert_int_equal(backlog_seal(backlog, LOG_KEY, LOG_MS), 1000);
    tap.close(tap.ctx, 5, NULL);
    assert_int_equal(backlog_sealed(backlog), 1000);
    end = backlog_seal(backlog, LOG_KEY, LOG_MS);
    assert_int_equal(end, 1000 + sizeof(select_zero) - 1 + GROUP_SEAL_BYTES);
    assert_int_equal(backlog_sealed(backlog), end);
    read_all(backlog, 1000, &log);
    assert_int_equal(assert_groups(buf_slice(&log), LOG_KEY, 5), 1);
    buf_free(&log);
    backlog_free(backlog);
}

/* Groups of all lengths, so that blocks end at each byte of groups and seals.
 */
TEST(groups_and_seals_may_lie_across_blocks)
{
    struct backlog *backlog = backlog_new();
    struct buf log = { 0 };
    uint64_t count = 0;
    uint64_t base = 7;

    backlog_begin(backlog, base);
    for (size_t bytes = BLOCK - 400; bytes < BLOCK + 10; bytes++) {
        tap_group(backlog, ++count, bytes);
        if (count % 3 == 0) {
            (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
        }
    }
    tap_group(backlog, ++count, (size_t)5 * BLOCK); /* and one over many */
    (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
    read_all(backlog, base, &log);
    assert_int_equal(log.len, backlog_sealed(backlog) - base);
    assert_int_equal(assert_groups(buf_slice(&log), LOG_KEY, 1), count);
    for (uint64_t at = 0; at < log.len; at += 9973) { /* from anywhere */
        struct slice some =
            backlog_read(backlog, base + at, backlog_sealed(backlog));

        assert_memory_equal(some.data, log.data + at, some.len);
    }
    buf_free(&log);
    backlog_free(backlog);
}

TEST(a_group_that_came_sealed_keeps_its_seal)
{
    struct backlog *backlog = backlog_new();
    struct journal_tap tap = backlog_tap(backlog);
    struct buf group = { 0 };
    struct buf log = { 0 };

    log_group(&group, LOG_KEY + 9, 3, 2, 10);
    tap.text(tap.ctx,
             (struct slice){ group.data, group.len - GROUP_SEAL_BYTES });
    tap.close(tap.ctx, 3, group.data + group.len - GROUP_SEAL_BYTES);
    tap_group(backlog, 4, 10);
    (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
    read_all(backlog, 0, &log);
    assert_memory_equal(log.data, group.data, group.len);
    assert_int_equal(assert_groups((struct slice){ log.data + group.len,
                                                   log.len - group.len },
                                   LOG_KEY, 4),
                     1);
    buf_free(&log);
    buf_free(&group);
    backlog_free(backlog);
}

TEST(trimming_keeps_what_is_needed_and_the_last_bytes)
{
    struct backlog *backlog = backlog_new();
    struct buf log = { 0 };
    uint64_t end;
    uint64_t first;

    for (uint64_t i = 1; i <= 100; i++) {
        tap_group(backlog, i, BLOCK / 2);
    }
    end = backlog_seal(backlog, LOG_KEY, LOG_MS);
    read_all(backlog, 0, &log);

    backlog_trim(backlog, 0, 0); /* all is needed */
    assert_int_equal(backlog_first(backlog), 0);
    backlog_trim(backlog, UINT64_MAX, UINT64_MAX);
    backlog_trim(backlog, UINT64_MAX, end);
    assert_int_equal(backlog_first(backlog), 0);
    backlog_trim(backlog, 10 * BLOCK, 16384);
    first = backlog_first(backlog);
    assert_true(first <= 10 * BLOCK && first > 9 * BLOCK);
    backlog_trim(backlog, UINT64_MAX, 20 * BLOCK);
    first = backlog_first(backlog);
    assert_true(first <= end - 20 * BLOCK && first > end - 21 * BLOCK);
    backlog_trim(backlog, UINT64_MAX, 0);
    first = backlog_first(backlog);
    assert_true(end - first <= BLOCK);

    for (uint64_t at = first; at < end;) {
        struct slice some = backlog_read(backlog, at, end);

        assert_memory_equal(some.data, log.data + at, some.len);
        at += some.len;
    }
    tap_group(backlog, 101, 10); /* the log continues there */
    assert_true(backlog_seal(backlog, LOG_KEY, LOG_MS) > end);
    log.len = 0;
    read_all(backlog, end, &log);
    assert_int_equal(assert_groups(buf_slice(&log), LOG_KEY, 101), 1);
    buf_free(&log);
    backlog_free(backlog);
}

/* The writer may still fill the last block. */
TEST(the_last_block_stays_even_if_it_ends_with_a_group)
{
    struct backlog *backlog = backlog_new();
    struct journal_tap tap = backlog_tap(backlog);
    size_t bytes = BLOCK - sizeof(void *) - GROUP_SEAL_BYTES;
    char *text = mem_zalloc(bytes);
    struct buf log = { 0 };

    tap.text(tap.ctx, (struct slice){ text, bytes });
    tap.close(tap.ctx, 1, NULL);
    (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
    backlog_trim(backlog, UINT64_MAX, 0);
    assert_int_equal(backlog_first(backlog), 0);
    tap_group(backlog, 2, 10);
    (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
    backlog_trim(backlog, UINT64_MAX, 0);
    assert_int_equal(backlog_first(backlog), BLOCK - sizeof(void *));
    read_all(backlog, backlog_first(backlog), &log);
    assert_int_equal(assert_groups(buf_slice(&log), LOG_KEY, 2), 1);
    buf_free(&log);
    mem_free(text);
    backlog_free(backlog);
}

TEST(memory_stays_near_what_is_kept_and_is_counted)
{
    struct backlog *backlog = backlog_new();
    int64_t before = metric_sum(METRIC_REPL_BACKLOG);

    for (uint64_t i = 1; i <= 5000; i++) {
        tap_group(backlog, i, 2000);
        if (i % 10 == 0) {
            (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
            backlog_trim(backlog, UINT64_MAX, 256 * 1024);
            assert_true(backlog_bytes(backlog) < (256 + 11 * 64) * 1024);
        }
        assert_int_equal(backlog_bytes(backlog),
                         metric_sum(METRIC_REPL_BACKLOG) - before);
    }
    backlog_begin(backlog, 3);
    assert_int_equal(backlog_bytes(backlog), 0);
    assert_int_equal(metric_sum(METRIC_REPL_BACKLOG), before);
    tap_group(backlog, 1, 10);
    assert_true(backlog_bytes(backlog) <= BLOCK + 8192);
    backlog_free(backlog);
    assert_int_equal(metric_sum(METRIC_REPL_BACKLOG), before);
}

/* If memory ends at any moment, sealed groups can still be read, and the
 * backlog can begin anew. */
TEST(without_memory_it_breaks_and_can_begin_anew)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct backlog *backlog = backlog_new();
        struct buf log = { 0 };
        uint64_t sealed;

        for (uint64_t i = 1; i <= 600; i++) {
            if (i == 300) {
                mem_fail_at(nth);
            }
            tap_group(backlog, i, 1000);
            (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
        }
        fired = mem_fail_clear();
        assert_int_equal(fired, backlog_is_broken(backlog));
        sealed = backlog_sealed(backlog);
        read_all(backlog, 0, &log);
        if (fired) {
            assert_true(assert_groups(buf_slice(&log), LOG_KEY, 1) >= 299);
        } else {
            assert_int_equal(assert_groups(buf_slice(&log), LOG_KEY, 1), 600);
        }
        tap_group(backlog, 601, 10);
        if (fired) {
            assert_int_equal(backlog_seal(backlog, LOG_KEY, LOG_MS), sealed);
        }

        backlog_begin(backlog, 99);
        assert_false(backlog_is_broken(backlog));
        tap_group(backlog, 7, 10);
        (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
        read_all(backlog, 99, &log);
        assert_int_equal(assert_groups(buf_slice(&log), LOG_KEY, 7), 1);
        buf_free(&log);
        backlog_free(backlog);
    }
}

TEST(what_is_lent_stays_until_it_comes_back)
{
    struct backlog *backlog = backlog_new();
    struct slice slices[16];
    struct buf log = { 0 };
    uint64_t sealed;
    size_t count;

    for (uint64_t i = 1; i <= 600; i++) {
        tap_group(backlog, i, 900);
    }
    sealed = backlog_seal(backlog, LOG_KEY, LOG_MS);
    assert_true(backlog_slices(sealed) <= 16);
    assert_int_equal(backlog_lend(backlog, 0, sealed, slices, 3), 0);
    assert_int_equal(backlog_lend(backlog, sealed, sealed, slices, 16), 0);
    count = backlog_lend(backlog, 0, sealed, slices, 16);
    assert_true(count > 3);
    backlog_trim(backlog, UINT64_MAX, 0);
    assert_int_equal(backlog_first(backlog), 0);
    backlog_begin(backlog, 99);
    tap_group(backlog, 7, 10);
    (void)backlog_seal(backlog, LOG_KEY, LOG_MS);
    backlog_begin(backlog, 999);
    for (size_t i = 0; i < count; i++) {
        buf_append_slice(&log, slices[i]);
    }
    assert_int_equal(log.len, sealed);
    assert_int_equal(assert_groups(buf_slice(&log), LOG_KEY, 1), 600);
    assert_true(backlog_bytes(backlog) > sealed);
    backlog_return(backlog);
    assert_int_equal(backlog_bytes(backlog), 0);
    assert_int_equal(backlog_first(backlog), 999);
    buf_free(&log);
    backlog_free(backlog);
}

/* ---- many append, one reads ---------------------------------------------- */

enum { APPENDERS = 4, GROUPS_EACH = 4000 };

struct shared {
    struct backlog *backlog;
    pthread_mutex_t mutex; /* as the journal's */
    uint64_t sequence, end;
    _Atomic unsigned left;
};

static void *
append_groups(void *arg)
{
    struct shared *shared = arg;

    for (int i = 0; i < GROUPS_EACH; i++) {
        pthread_mutex_lock(&shared->mutex);
        shared->sequence++;
        tap_group(shared->backlog, shared->sequence,
                  (size_t)(shared->sequence * 37 % 900));
        pthread_mutex_unlock(&shared->mutex);
    }
    shared->left--;
    metric_thread_exit();
    return NULL;
}

TEST(loops_may_append_while_loop_0_seals_reads_and_trims)
{
    struct shared shared = { .backlog = backlog_new(), .left = APPENDERS };
    pthread_t threads[APPENDERS];
    uint64_t at = 0;
    uint64_t groups = 0;
    struct buf log = { 0 };
    bool last = false;

    assert_int_equal(pthread_mutex_init(&shared.mutex, NULL), 0);
    for (int i = 0; i < APPENDERS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, append_groups, &shared), 0);
    }
    while (!last) {
        uint64_t end;

        last = shared.left == 0;
        end = backlog_seal(shared.backlog, LOG_KEY, LOG_MS);
        log.len = 0;
        read_all(shared.backlog, at, &log);
        groups += assert_groups(buf_slice(&log), LOG_KEY, groups + 1);
        at = end;
        backlog_trim(shared.backlog, at, 0);
        (void)sched_yield();
    }
    for (int i = 0; i < APPENDERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    assert_int_equal(groups, APPENDERS * GROUPS_EACH);
    assert_false(backlog_is_broken(shared.backlog));
    (void)pthread_mutex_destroy(&shared.mutex);
    buf_free(&log);
    backlog_free(shared.backlog);
}
