/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A kept file: failing disks, and texts that replace each other.
 */
#include "persist/kept_file.h"

#include "../home.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "conf/conf.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEADLINE_MS = 20000, TEXT_MAX = 2048 };

#define NAME "kept"

struct home {
    char dir[64];
    int fd;
    struct kept_file *file;
    atomic_uint attempts;
};

static void
home_open(struct home *home)
{
    memset(home, 0, sizeof(*home));
    log_set_level((enum log_level)CONF_LOG_NOTHING);
    (void)snprintf(home->dir, sizeof(home->dir), "/tmp/kept-file-XXXXXX");
    home_make(home->dir);
    assert_int_equal(0, file_open_dir(home->dir, false, &home->fd));
}

static void
home_close(struct home *home)
{
    kept_file_free(home->file);
    file_close(home->fd);
    home_remove(home->dir);
}

static void
on_written(void *ctx)
{
    struct home *home = ctx;

    atomic_fetch_add(&home->attempts, 1);
}

static void
home_start_in(struct home *home, const char *dir, uint64_t room_bytes)
{
    const struct kept_file_options options = { .dir = dir,
                                               .name = NAME,
                                               .thread = "kept",
                                               .room_bytes = room_bytes,
                                               .failed_event = "failed",
                                               .mended_event = "mended",
                                               .written = on_written,
                                               .ctx = home };

    home->file = kept_file_new(&options);
}

static void
home_start(struct home *home)
{
    home_start_in(home, home->dir, 0);
}

static uint64_t
put(struct home *home, unsigned number)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "text %u\n", number);
    return kept_file_write(home->file, slice_of(text));
}

#define wait_until(cond)                                                       \
    do {                                                                       \
        uint64_t give_up_ = clock_mono_ns() + DEADLINE_MS * 1000000ULL;        \
                                                                               \
        while (!(cond)) {                                                      \
            assert_true(clock_mono_ns() < give_up_);                           \
            (void)usleep(200);                                                 \
        }                                                                      \
    } while (0)

static void
keep(struct home *home, unsigned number)
{
    uint64_t ticket = put(home, number);

    wait_until(kept_file_outcome(home->file, ticket) == 1);
}

static void
assert_read(struct home *home, unsigned number)
{
    char want[32];
    char got[TEXT_MAX + 1];
    size_t len = 0;

    (void)snprintf(want, sizeof(want), "text %u\n", number);
    assert_int_equal(0, file_read_name(home->fd, NAME, got, TEXT_MAX, &len));
    got[len] = '\0';
    assert_string_equal(want, got);
}

/* ---- disks that fail ----------------------------------------------------- */

TEST(a_failed_write_is_repeated_until_it_succeeds)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC, FILE_CALL_RENAME };
    struct home home;

    home_open(&home);
    home_start(&home);
    keep(&home, 0);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        unsigned before = home.attempts;
        uint64_t ticket;

        file_fail_at(calls[i], 1, ENOSPC, true);
        ticket = put(&home, (unsigned)i + 1);
        wait_until(kept_file_outcome(home.file, ticket) != 0);
        assert_int_equal(-1, kept_file_outcome(home.file, ticket));
        wait_until(home.attempts >= before + 2); /* it failed again */
        assert_int_equal(-1, kept_file_outcome(home.file, ticket));
        assert_true(file_fail_clear());
        wait_until(kept_file_outcome(home.file, ticket) == 1);
        assert_read(&home, (unsigned)i + 1);
    }
    home_close(&home);
}

TEST(a_failed_write_leaves_the_old_text)
{
    struct home home;
    uint64_t ticket;

    home_open(&home);
    home_start(&home);
    keep(&home, 0);
    file_fail_at(FILE_CALL_WRITE, 1, EIO, true);
    ticket = put(&home, 7);
    wait_until(kept_file_outcome(home.file, ticket) == -1);
    assert_read(&home, 0);
    kept_file_free(home.file); /* its last attempt fails as well */
    home.file = NULL;
    assert_true(file_fail_clear());
    assert_read(&home, 0);
    home_close(&home);
}

static bool
has_room(const struct home *home)
{
    return faccessat(home->fd, NAME ".room", F_OK, 0) == 0;
}

TEST(a_full_disk_takes_a_text_for_which_there_is_room)
{
    struct home home;

    home_open(&home);
    home_start_in(&home, home.dir, 1 << 16);
    wait_until(has_room(&home));
    keep(&home, 0);
    file_fail_at(FILE_CALL_RESERVE, 1, ENOSPC, true);
    for (unsigned number = 1; number < 5; number++) {
        keep(&home, number);
        assert_read(&home, number);
    }
    assert_true(file_fail_clear());
    home_close(&home);
}

TEST(room_is_made_when_there_is_space_again)
{
    struct home home;

    home_open(&home);
    file_fail_at(FILE_CALL_RESERVE, 1, ENOSPC, true);
    home_start_in(&home, home.dir, 1 << 16);
    (void)put(&home, 1);
    wait_until(home.attempts >= 2);
    assert_true(file_fail_clear());
    wait_until(has_room(&home));
    home_close(&home);
}

TEST(a_new_text_does_not_wait_for_a_failed_one)
{
    struct home home;
    uint64_t one;
    uint64_t two;

    home_open(&home);
    home_start(&home);
    file_fail_at(FILE_CALL_RENAME, 1, EIO, true);
    one = put(&home, 1);
    wait_until(home.attempts >= 4); /* the next pause is long */
    assert_true(file_fail_clear());
    two = put(&home, 2);
    wait_until(kept_file_outcome(home.file, two) == 1);
    /* A newer state is on the disk. */
    assert_int_equal(1, kept_file_outcome(home.file, one));
    assert_read(&home, 2);
    home_close(&home);
}

TEST(a_directory_that_comes_later_is_found)
{
    struct home home;
    char dir[80];
    uint64_t ticket;

    home_open(&home);
    (void)snprintf(dir, sizeof(dir), "%s/later", home.dir);
    home_start_in(&home, dir, 0);
    ticket = put(&home, 7);
    wait_until(kept_file_outcome(home.file, ticket) == -1);
    assert_int_equal(0, mkdir(dir, 0700));
    wait_until(kept_file_outcome(home.file, ticket) == 1);
    file_close(home.fd);
    assert_int_equal(0, file_open_dir(dir, false, &home.fd));
    assert_read(&home, 7);
    home_close(&home);
}

/* ---- texts that replace each other -------------------------------------- */

TEST(freeing_writes_the_newest_text)
{
    struct home home;

    home_open(&home);
    for (uint32_t i = 1; i < 50; i++) {
        home_start(&home);
        (void)put(&home, i);
        kept_file_free(home.file);
        home.file = NULL;
        assert_read(&home, i);
    }
    home_close(&home);
    kept_file_free(NULL);
}

struct asker {
    struct home *home;
    pthread_t thread;
    uint64_t tickets[200];
};

static void *
ask(void *arg)
{
    struct asker *asker = arg;

    for (uint32_t i = 0; i < 200; i++) {
        asker->tickets[i] = put(asker->home, i + 1);
        assert_true(i == 0 || asker->tickets[i] > asker->tickets[i - 1]);
        (void)kept_file_outcome(asker->home->file, asker->tickets[i]);
    }
    return NULL;
}

TEST(the_newest_of_many_texts_stays)
{
    enum { ASKERS = 4 };
    struct asker asker[ASKERS];
    struct home home;

    home_open(&home);
    home_start(&home);
    for (int i = 0; i < ASKERS; i++) {
        asker[i].home = &home;
        assert_int_equal(
            0, pthread_create(&asker[i].thread, NULL, ask, &asker[i]));
    }
    for (int i = 0; i < ASKERS; i++) {
        assert_int_equal(0, pthread_join(asker[i].thread, NULL));
    }
    keep(&home, 9999);
    for (int i = 0; i < ASKERS; i++) {
        assert_int_equal(1, kept_file_outcome(home.file, asker[i].tickets[0]));
        assert_int_equal(1,
                         kept_file_outcome(home.file, asker[i].tickets[199]));
    }
    assert_true(home.attempts <= ASKERS * 200 + 1);
    assert_read(&home, 9999);
    home_close(&home);
}

TEST(a_lost_file_is_written_again)
{
    struct home home;

    home_open(&home);
    home_start(&home);
    assert_true(kept_file_write_again(home.file) == 0); /* there was none */
    keep(&home, 7);
    for (int life = 0; life < 2; life++) { /* written, and read */
        uint64_t ticket;

        assert_int_equal(0, file_unlink(home.fd, NAME));
        ticket = kept_file_write_again(home.file);
        assert_true(ticket > 0);
        wait_until(kept_file_outcome(home.file, ticket) == 1);
        assert_read(&home, 7);
        kept_file_free(home.file);
        home_start(&home);
    }
    home_close(&home);
}
