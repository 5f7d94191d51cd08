/* SPDX-License-Identifier: BSD-3-Clause
 *
 * In a directory of its own below /tmp, removed at the end of each case.
 */
#include "base/file.h"

#include "../test.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VECTORS = 3000 };

static char dir_path[] = "/tmp/bloomery-test-file-XXXXXX";
static const char template[] = "/tmp/bloomery-test-file-XXXXXX";

static int
open_dir(void)
{
    int fd = -1;

    memcpy(dir_path, template, sizeof(template));
    assert_non_null(mkdtemp(dir_path));
    assert_int_equal(0, file_open_dir(dir_path, false, &fd));
    return fd;
}

/* The names that a case leaves behind are among these. */
static void
remove_dir(int fd)
{
    static const char *const names[] = { "a", "b", "c", "sub/a" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)unlinkat(fd, names[i], 0);
    }
    (void)unlinkat(fd, "sub", AT_REMOVEDIR);
    file_close(fd);
    assert_int_equal(0, rmdir(dir_path));
}

static void
make_file(int dir, const char *name, struct slice content)
{
    int fd = -1;

    assert_int_equal(0, file_create(dir, name, &fd));
    assert_int_equal(0, file_write(fd, content.data, content.len));
    assert_int_equal(0, file_sync(fd));
    file_close(fd);
    assert_int_equal(0, file_sync_dir(dir));
}

static void
assert_content(int dir, const char *name, struct slice expected)
{
    struct slice mapped;
    int fd = -1;

    assert_int_equal(0, file_open(dir, name, &fd));
    assert_int_equal(0, file_map(fd, SIZE_MAX, &mapped));
    file_close(fd);
    assert_int_equal(expected.len, mapped.len);
    assert_memory_equal(expected.data, mapped.data, expected.len);
    file_unmap(mapped);
}

/* A FIFO would else be waited for until somebody writes to it. */
TEST(only_a_regular_file_is_opened_and_nothing_is_waited_for)
{
    int dir = open_dir();
    int fd = -1;

    assert_int_equal(0, mkfifoat(dir, "a", 0600));
    assert_int_equal(EMEDIUMTYPE, file_open(dir, "a", &fd));
    assert_int_equal(0, mkdirat(dir, "sub", 0700));
    assert_int_equal(EISDIR, file_open(dir, "sub", &fd));
    assert_int_equal(EMEDIUMTYPE, file_open(dir, "/dev/null", &fd));
    assert_int_equal(0, unlinkat(dir, "a", 0));
    assert_int_equal(0, mknodat(dir, "a", S_IFSOCK | 0600, 0));
    assert_int_equal(EMEDIUMTYPE, file_open(dir, "a", &fd));
    assert_int_equal(ENOENT, file_open(dir, "b", &fd));
    assert_int_equal(-1, fd);

    make_file(dir, "b", slice_of("linked"));
    assert_int_equal(0, symlinkat("b", dir, "c"));
    assert_content(dir, "c", slice_of("linked"));
    remove_dir(dir);
}

TEST(a_written_file_reads_back)
{
    int dir = open_dir();
    struct slice mapped;
    uint64_t size = 0;
    char bytes[8];
    size_t len = 99;
    int fd = -1;

    make_file(dir, "a", slice_lit("apple pie"));
    assert_content(dir, "a", slice_lit("apple pie"));
    assert_int_equal(0, file_open(dir, "a", &fd));
    assert_int_equal(0, file_size(fd, &size));
    assert_int_equal(9, size);
    assert_int_equal(0, file_read_at(fd, bytes, 3, 6, &len));
    assert_int_equal(3, len);
    assert_memory_equal("pie", bytes, 3);
    assert_int_equal(ENODATA, file_read_at(fd, bytes, 8, 6, &len));
    assert_int_equal(3, len);
    assert_int_equal(ENODATA, file_read_at(fd, bytes, 1, 100, &len));
    assert_int_equal(0, len);
    assert_int_equal(0, file_read_at(fd, bytes, 0, 100, &len));
    assert_int_equal(0, file_map(fd, 5, &mapped));
    assert_int_equal(5, mapped.len);
    assert_memory_equal("apple", mapped.data, 5);
    file_unmap(mapped);
    assert_int_equal(0, file_read_and_map(fd, 5, &mapped, &size));
    assert_int_equal(5, size);
    assert_int_equal(5, mapped.len);
    file_unmap(mapped);
    file_fail_at(FILE_CALL_READ, 1, EIO, false); /* no page of it is touched */
    assert_int_equal(EIO, file_read_and_map(fd, SIZE_MAX, &mapped, &size));
    assert_int_equal(0, size);
    assert_true(file_fail_clear());
    file_start_writing(fd, 0, 9);
    file_will_read(fd, 0, 9);
    file_close(fd);
    file_close(-1);
    remove_dir(dir);
}

TEST(an_empty_file_is_an_empty_slice)
{
    int dir = open_dir();

    make_file(dir, "a", slice_lit(""));
    assert_content(dir, "a", slice_lit(""));
    remove_dir(dir);
}

TEST(descriptors_close_on_exec_and_files_are_not_for_others)
{
    int dir = open_dir();
    struct stat info;
    mode_t mask = umask(0);
    int fd = -1;

    assert_int_equal(0, file_create(dir, "a", &fd));
    (void)umask(mask);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(dir, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(0, fstat(fd, &info));
    assert_int_equal(0640, info.st_mode & 07777);
    file_close(fd);
    remove_dir(dir);
}

/* A backup has a link to it, or it is what an older generation names. */
TEST(a_new_file_leaves_the_old_one_of_its_name_alone)
{
    int dir = open_dir();

    make_file(dir, "a", slice_lit("old"));
    assert_int_equal(0, file_link(dir, "a", dir, "b"));
    make_file(dir, "a", slice_lit("newer"));
    assert_content(dir, "a", slice_lit("newer"));
    assert_content(dir, "b", slice_lit("old"));
    remove_dir(dir);
}

TEST(names_are_moved_linked_and_removed)
{
    int dir = open_dir();
    int fd = -1;

    make_file(dir, "a", slice_lit("one"));
    make_file(dir, "b", slice_lit("two"));
    assert_int_equal(EEXIST, file_link(dir, "a", dir, "b"));
    assert_int_equal(0, file_rename(dir, "a", "b"));
    assert_int_equal(ENOENT, file_open(dir, "a", &fd));
    assert_int_equal(-1, fd);
    assert_content(dir, "b", slice_lit("one"));
    assert_int_equal(ENOENT, file_rename(dir, "a", "b"));
    assert_int_equal(0, file_unlink(dir, "b"));
    assert_int_equal(ENOENT, file_unlink(dir, "b"));
    remove_dir(dir);
}

TEST(a_missing_directory_is_made_when_asked_for)
{
    int dir = open_dir();
    char path[64];
    int fd = -1;

    (void)snprintf(path, sizeof(path), "%s/sub", dir_path);
    assert_int_equal(ENOENT, file_open_dir(path, false, &fd));
    (void)snprintf(path, sizeof(path), "%s//sub//", dir_path);
    file_fail_at(FILE_CALL_SYNC, 1, EIO, false);
    assert_int_equal(EIO, file_open_dir(path, true, &fd)); /* of the parent */
    assert_true(file_fail_clear());
    assert_int_equal(0, unlinkat(dir, "sub", AT_REMOVEDIR));
    assert_int_equal(0, file_open_dir(path, true, &fd));
    make_file(fd, "a", slice_lit("x"));
    file_close(fd);
    assert_int_equal(0, file_open_dir(path, true, &fd)); /* it is there */
    file_close(fd);
    assert_content(dir, "sub/a", slice_lit("x"));
    (void)snprintf(path, sizeof(path), "%s/no/sub", dir_path);
    assert_int_equal(ENOENT, file_open_dir(path, true, &fd));
    make_file(dir, "a", slice_lit(""));
    (void)snprintf(path, sizeof(path), "%s/a", dir_path);
    assert_int_equal(ENOTDIR, file_open_dir(path, true, &fd));
    remove_dir(dir);
}

/* ---- vectors and interruptions ------------------------------------------- */

/* Pieces of 0 to 6 bytes, more than the kernel takes at once. Returns how
 * many bytes they are. */
static size_t
make_vector(struct iovec *iov, char *bytes)
{
    size_t at = 0;

    for (size_t i = 0; i < VECTORS; i++) {
        size_t len = (i * 5) % 7;

        for (size_t k = 0; k < len; k++) {
            bytes[at + k] = (char)('a' + (at + k) % 23);
        }
        iov[i] = (struct iovec){ bytes + at, len };
        at += len;
    }
    return at;
}

TEST(vectors_are_written_whole_whatever_interrupts_them)
{
    int dir = open_dir();
    struct iovec *iov = mem_alloc(VECTORS * sizeof(*iov));
    char *bytes = mem_alloc((size_t)VECTORS * 6);
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        size_t len = make_vector(iov, bytes);
        int fd = -1;

        assert_int_equal(0, file_create(dir, "a", &fd));
        file_fail_at(FILE_CALL_WRITE, nth, EINTR, false);
        assert_int_equal(0, file_writev(fd, iov, VECTORS));
        fired = file_fail_clear();
        assert_true(fired || nth >= 4); /* 1024 vectors a call */
        file_close(fd);
        assert_content(dir, "a", (struct slice){ bytes, len });
    }
    assert_int_equal(0, file_writev(-1, iov, 0));
    mem_free(iov);
    mem_free(bytes);
    remove_dir(dir);
}

TEST(interrupted_calls_are_made_again)
{
    int dir = open_dir();
    char byte = 0;
    size_t len = 0;
    int fd = -1;

    make_file(dir, "a", slice_lit("xyz"));
    file_fail_at(FILE_CALL_OPEN, 1, EINTR, false);
    assert_int_equal(0, file_open(dir, "a", &fd));
    assert_true(file_fail_clear());
    file_fail_at(FILE_CALL_READ, 1, EINTR, false);
    assert_int_equal(0, file_read_at(fd, &byte, 1, 2, &len));
    assert_true(file_fail_clear());
    assert_int_equal('z', byte);
    file_fail_at(FILE_CALL_SYNC, 1, EINTR, false);
    assert_int_equal(0, file_sync(fd));
    assert_true(file_fail_clear());
    file_fail_at(FILE_CALL_SYNC, 1, EINTR, false);
    assert_int_equal(0, file_sync_dir(dir));
    assert_true(file_fail_clear());
    file_close(fd);
    remove_dir(dir);
}

/* ---- faults -------------------------------------------------------------- */

TEST(a_write_that_fails_leaves_half)
{
    int dir = open_dir();
    struct iovec iov[] = { { (char[]){ "abc" }, 3 },
                           { (char[]){ "defgh" }, 5 } };
    int fd = -1;

    assert_int_equal(0, file_create(dir, "a", &fd));
    file_fail_at(FILE_CALL_WRITE, 2, ENOSPC, true);
    assert_int_equal(0, file_write(fd, "0123", 4));
    assert_int_equal(ENOSPC, file_writev(fd, iov, 2));
    assert_int_equal(ENOSPC, file_write(fd, "4567", 4));
    assert_true(file_fail_clear());
    assert_int_equal(0, file_write(fd, "!", 1));
    file_close(fd);
    assert_content(dir, "a", slice_lit("0123abcd45!"));
    remove_dir(dir);
}

/* One call of each kind on the names "a" and "b"; what came of it. */
static int
call(enum file_call kind, int dir)
{
    char byte;
    size_t len;
    int other = -1;
    int fd = -1;
    int error = 0;

    if (kind != FILE_CALL_OPEN) {
        assert_int_equal(0, file_open(dir, "a", &fd));
    }
    switch (kind) {
    case FILE_CALL_OPEN:
        error = file_open(dir, "a", &other);
        file_close(other);
        break;
    case FILE_CALL_WRITE:
        assert_int_equal(0, file_create(dir, "b", &other));
        error = file_write(other, "x", 1);
        file_close(other);
        break;
    case FILE_CALL_READ:
        error = file_read_at(fd, &byte, 1, 0, &len);
        break;
    case FILE_CALL_SYNC:
        error = file_sync(fd);
        break;
    case FILE_CALL_RENAME:
        error = file_rename(dir, "a", "a");
        break;
    case FILE_CALL_LINK:
        (void)unlinkat(dir, "c", 0);
        error = file_link(dir, "a", dir, "c");
        break;
    case FILE_CALL_RESERVE:
        assert_int_equal(0, file_create(dir, "b", &other));
        error = file_reserve(other, 1);
        file_close(other);
        break;
    default:
        assert_true(linkat(dir, "a", dir, "c", 0) == 0 || errno == EEXIST);
        error = file_unlink(dir, "c");
        break;
    }
    file_close(fd);
    return error;
}

TEST(the_nth_call_of_a_kind_fails_once_or_for_good)
{
    int dir = open_dir();

    make_file(dir, "a", slice_lit("x"));
    for (unsigned kind = 0; kind < FILE_CALL_COUNT; kind++) {
        for (unsigned nth = 1; nth < 4; nth++) {
            for (int for_good = 0; for_good < 2; for_good++) {
                file_fail_at(kind, nth, EDQUOT, for_good != 0);
                for (unsigned i = 1; i < 6; i++) {
                    bool fails = i == nth || (for_good != 0 && i > nth);

                    assert_int_equal(fails ? EDQUOT : 0, call(kind, dir));
                }
                assert_true(file_fail_clear());
                assert_int_equal(0, call(kind, dir));
                assert_false(file_fail_clear());
            }
        }
        file_fail_at(kind, 1, EIO, true);
        file_fail_at(kind, 0, EIO, true);
        assert_int_equal(0, call(kind, dir));
        assert_false(file_fail_clear());
    }
    remove_dir(dir);
}

TEST(creating_and_opening_directories_fail_like_opening)
{
    int dir = open_dir();
    int fd = -1;

    file_fail_at(FILE_CALL_OPEN, 1, EMFILE, true);
    assert_int_equal(EMFILE, file_create(dir, "a", &fd));
    assert_int_equal(EMFILE, file_open_dir(dir_path, true, &fd));
    assert_true(file_fail_clear());
    assert_int_equal(-1, fd);
    remove_dir(dir);
}

/* Whatever fails, there is one text or the other, and nothing beside it. */
TEST(a_file_is_replaced_whole_or_not_at_all)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC, FILE_CALL_RENAME };
    int dir = open_dir();

    assert_int_equal(0, file_replace(dir, "a", slice_lit("old")));
    assert_content(dir, "a", slice_lit("old"));
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        file_fail_at(calls[i], 1, ENOSPC, false);
        assert_int_equal(ENOSPC, file_replace(dir, "a", slice_lit("newer")));
        assert_true(file_fail_clear());
        assert_content(dir, "a", slice_lit("old"));
        assert_int_equal(-1, faccessat(dir, "a.tmp", F_OK, 0));
    }
    file_fail_at(FILE_CALL_SYNC, 2, EIO, false); /* of the directory */
    assert_int_equal(EIO, file_replace(dir, "a", slice_lit("newer")));
    assert_true(file_fail_clear());
    assert_content(dir, "a", slice_lit("newer"));
    remove_dir(dir);
}

TEST(a_replaced_file_is_for_our_user_alone)
{
    int dir = open_dir();
    char name[NAME_MAX + 1];
    struct stat info;

    assert_int_equal(0, file_replace(dir, "a", slice_lit("x")));
    assert_int_equal(0, fstatat(dir, "a", &info, 0));
    assert_int_equal(0600, info.st_mode & 07777);
    assert_int_equal(0, fchmodat(dir, "a", 0644, 0));
    assert_int_equal(0, file_replace(dir, "a", slice_lit("y")));
    assert_int_equal(0, fstatat(dir, "a", &info, 0));
    assert_int_equal(0600, info.st_mode & 07777);
    memset(name, 'n', NAME_MAX - 3);
    name[NAME_MAX - 3] = '\0';
    assert_int_equal(ENAMETOOLONG, file_replace(dir, name, slice_lit("x")));
    remove_dir(dir);
}

TEST(errors_of_the_kernel_come_back_as_they_are)
{
    struct slice mapped;
    uint64_t size;
    size_t len;
    char byte = 0;

    assert_int_equal(EBADF, file_write(-1, "x", 1));
    assert_int_equal(EBADF, file_read_at(-1, &byte, 1, 0, &len));
    assert_int_equal(EBADF, file_sync(-1));
    assert_int_equal(EBADF, file_sync_dir(-1));
    assert_int_equal(EBADF, file_size(-1, &size));
    assert_int_equal(EBADF, file_map(-1, 1, &mapped));
}

TEST(a_directory_is_told_from_what_takes_its_place)
{
    char path[64] = "/tmp/bloomery-file-XXXXXX";
    char moved[80];
    int fd = -1;

    assert_non_null(mkdtemp(path));
    (void)snprintf(moved, sizeof(moved), "%s.moved", path);
    assert_int_equal(file_open_dir(path, false, &fd), 0);
    assert_int_equal(file_is_dir_at(fd, path), 0);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(file_is_dir_at(fd, path), ENOENT);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(file_is_dir_at(fd, path), ESTALE);
    assert_int_equal(rmdir(moved), 0); /* its number stays its own */
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(file_is_dir_at(fd, path), ESTALE);
    assert_int_equal(file_is_dir_at(-1, path), EBADF);
    file_close(fd);
    assert_int_equal(rmdir(path), 0);
}

static size_t
count_names(int dir_fd)
{
    DIR *dir = file_list_dir(dir_fd);
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

TEST(a_directory_is_listed_from_its_begin_each_time)
{
    int dir = open_dir();

    make_file(dir, "a", slice_lit("x"));
    assert_int_equal(3, count_names(dir)); /* with . and .. */
    assert_int_equal(3, count_names(dir));
    assert_null(file_list_dir(-1));
    remove_dir(dir);
}
