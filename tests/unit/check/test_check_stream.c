/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The archive on standard output, and what can go wrong while it is written.
 * test_check_unpack.c reads archives back.
 */
#include "check/check_stream.h"

#include "../capture.h"
#include "base/file.h"
#include "tools/tar.h"

#include <fcntl.h>

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

/* Returns the contents of the only file "x" of 3 bytes. */
static void
expect_archive(const struct capture *output)
{
    static const char sums[] = ABC "  x\n";
    struct tar_entry entry;
    const char *at = output->text;

    assert_int_equal(6 * TAR_BLOCK, output->len);
    assert_int_equal(TAR_ENTRY, tar_get(at, &entry));
    assert_string_equal("x", entry.name);
    assert_int_equal(3, entry.bytes);
    assert_memory_equal("abc", at + TAR_BLOCK, 4); /* and zeros */
    assert_int_equal(TAR_ENTRY, tar_get(at + 2 * TAR_BLOCK, &entry));
    assert_string_equal(CHECK_SUMS_NAME, entry.name);
    assert_memory_equal(sums, at + 3 * TAR_BLOCK, sizeof(sums));
    assert_int_equal(TAR_ZEROS, tar_get(at + 4 * TAR_BLOCK, &entry));
    assert_int_equal(TAR_ZEROS, tar_get(at + 5 * TAR_BLOCK, &entry));
}

TEST(a_file_is_followed_by_the_sums_and_two_blocks_of_zeros)
{
    struct check check = { .tool = { .name = "test" } };
    FILE *file = tmpfile();
    struct check_stream *stream;
    struct capture output;
    bool good;

    assert_non_null(file);
    assert_true(fputs("abcdef", file) >= 0 && fflush(file) == 0);
    capture_begin(&output, STDOUT_FILENO);
    stream = check_stream_new(&check);
    good = check_stream_dir(stream, "-") &&
           check_stream_file(stream, "-/x", fileno(file), 3, "from") &&
           check_stream_end(stream);
    (void)capture_end(&output);
    assert_true(good);
    expect_archive(&output);
    check_stream_free(stream);
    (void)fclose(file);
}

TEST(a_file_that_gets_shorter_ends_the_archive)
{
    struct check check = { .tool = { .name = "test" } };
    FILE *file = tmpfile();
    struct check_stream *stream;
    struct capture output;
    bool good = true;

    assert_non_null(file);
    capture_begin(&output, STDOUT_FILENO);
    stream = check_stream_new(&check);
    EXPECT_PRINTED(
        STDERR_FILENO,
        good = check_stream_file(stream, "-/x", fileno(file), 1, "/from"),
        "/from: cannot be read: it was cut meanwhile");
    (void)capture_end(&output);
    assert_false(good);
    assert_int_equal(CHECK_UNREADABLE, check.tool.status);
    check_stream_free(stream);
    (void)fclose(file);
}

TEST(a_full_disk_and_a_long_name_are_reported)
{
    struct check check = { .tool = { .name = "test" } };
    char name[TAR_NAME_MAX + 8] = "-/";
    struct check_stream *stream;
    struct capture output;
    bool full = true, fits = false, too_long = true;
    int device = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int file;

    assert_true(device >= 0);
    memset(name + 2, 'n', TAR_NAME_MAX - 1);
    capture_begin(&output, STDOUT_FILENO);
    stream = check_stream_new(&check);
    fits = check_stream_dir(stream, name);
    name[TAR_NAME_MAX + 1] = 'n';
    EXPECT_PRINTED(STDERR_FILENO, too_long = check_stream_dir(stream, name),
                   "the name is too long");
    file = dup(STDOUT_FILENO);
    assert_true(dup2(device, STDOUT_FILENO) >= 0);
    EXPECT_PRINTED(STDERR_FILENO,
                   full = check_stream_text(stream, "-/x", slice_lit("abc")),
                   "standard output: cannot be written: No space left");
    assert_true(dup2(file, STDOUT_FILENO) >= 0);
    (void)close(file);
    (void)capture_end(&output);
    assert_true(fits && !too_long && !full);
    assert_int_equal(CHECK_UNREADABLE, check.tool.status);
    check_stream_free(stream);
    file_close(device);
}
