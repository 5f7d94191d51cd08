/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Heal files outlast the loss of their directory, and come back once.
 */
#include "heal/merge_held.h"

#include "../home.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct place {
    char dir[32];
    int fd;
    struct merge_held held;
};

static void
open_place(struct place *place)
{
    *place = (struct place){ .dir = "/tmp/merge-held-XXXXXX", .fd = -1 };
    home_make(place->dir);
    assert_int_equal(0, file_open_dir(place->dir, false, &place->fd));
    place->held.dir = place->dir;
}

static void
close_place(struct place *place)
{
    merge_held_fini(&place->held);
    assert_int_equal(0, place->held.count);
    file_close(place->fd);
    home_remove(place->dir);
}

static void
put(struct place *place, const char *name, const char *text)
{
    int fd = -1;

    assert_int_equal(0, file_create(place->fd, name, &fd));
    assert_int_equal(0, file_write(fd, text, strlen(text)));
    file_close(fd);
}

static void
expect(struct place *place, const char *name, const char *text)
{
    char path[64];
    char got[64] = "";
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", place->dir, name);
    fd = open(path, O_RDONLY);
    assert_true((fd >= 0) == (text != NULL));
    if (fd >= 0) {
        assert_int_equal(strlen(text), read(fd, got, sizeof(got) - 1));
        assert_string_equal(text, got);
        assert_int_equal(0, close(fd));
    }
}

/* All that is in the directory goes, as with a volume that was lost. */
static void
lose(struct place *place, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(0, unlinkat(place->fd, names[i], 0));
    }
}

TEST(lost_files_are_written_again_and_others_stay)
{
    static const char *const lost[] = { "a.log" };
    struct place place;

    open_place(&place);
    put(&place, "a.log", "all of a");
    put(&place, "b.log", "all of b");
    merge_held_add(&place.held, place.fd, "a.log");
    merge_held_add(&place.held, place.fd, "a.log"); /* is open already */
    merge_held_add(&place.held, place.fd, "b.log");
    merge_held_add(&place.held, place.fd, "missing.log");
    assert_int_equal(2, place.held.count);
    lose(&place, lost, 1);
    put(&place, "b.log", "another b"); /* what is there is newer */
    merge_held_write_again(&place.held);
    assert_int_equal(0, place.held.error);
    expect(&place, "a.log", "all of a");
    expect(&place, "b.log", "another b");
    expect(&place, "a.log.tmp", NULL);
    close_place(&place);
}

TEST(a_file_that_was_removed_does_not_come_back)
{
    static const char *const lost[] = { "a.log", "b.log", "c.log" };
    struct place place;

    open_place(&place);
    for (size_t i = 0; i < 3; i++) {
        put(&place, lost[i], lost[i]);
        merge_held_add(&place.held, place.fd, lost[i]);
    }
    merge_held_remove(&place.held, "a.log");
    merge_held_remove(&place.held, "a.log");
    assert_int_equal(2, place.held.count);
    lose(&place, lost, 3);
    merge_held_write_again(&place.held);
    assert_int_equal(0, place.held.error);
    expect(&place, "a.log", NULL);
    expect(&place, "b.log", "b.log");
    expect(&place, "c.log", "c.log");
    close_place(&place);
}

TEST(a_disk_that_fails_is_told_and_tried_again)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC, FILE_CALL_RENAME };
    struct place place;

    open_place(&place);
    put(&place, "a.log", "text");
    merge_held_add(&place.held, place.fd, "a.log");
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            (void)unlinkat(place.fd, "a.log", 0);
            file_fail_at(calls[i], nth, ENOSPC, false);
            merge_held_write_again(&place.held);
            fired = file_fail_clear();
            assert_int_equal(fired ? ENOSPC : 0, place.held.error);
            assert_true(nth > 1 || fired);
            merge_held_write_again(&place.held);
            assert_int_equal(0, place.held.error);
            expect(&place, "a.log", "text");
        }
    }
    close_place(&place);
}

TEST(no_more_files_are_held_than_there_is_room_for)
{
    struct place place;
    char name[MERGE_NAME_MAX];

    open_place(&place);
    for (unsigned i = 0; i < MERGE_HELD_MAX + 2; i++) {
        (void)snprintf(name, sizeof(name), "%u.log", i);
        put(&place, name, name);
        merge_held_add(&place.held, place.fd, name);
    }
    assert_int_equal(MERGE_HELD_MAX, place.held.count);
    close_place(&place);
}
