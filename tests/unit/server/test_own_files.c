/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file with the process id.
 */
#include "server/own_files.h"

#include "../test.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long
read_number(const char *path)
{
    FILE *file = fopen(path, "re");
    long number = -1;

    if (file != NULL) {
        assert_int_equal(1, fscanf(file, "%ld\n", &number));
        assert_true(feof(file) != 0 || fgetc(file) == EOF);
        (void)fclose(file);
    }
    return number;
}

static void
write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(0, fclose(file));
}

TEST(a_link_at_its_temporary_name_is_not_followed)
{
    char dir[] = "/tmp/bloomery-XXXXXX";
    char path[64], temporary[80], other[80];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/pid", dir);
    (void)snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    (void)snprintf(other, sizeof(other), "%s/other", dir);
    write_text(other, "1\n");
    assert_int_equal(0, symlink(other, temporary));
    own_files_write_pid(path);
    assert_int_equal(1, read_number(other));
    assert_int_equal(getpid(), read_number(path));
    assert_int_equal(0, unlink(path));
    assert_int_equal(0, unlink(other));
    assert_int_equal(0, rmdir(dir));
}

TEST(it_has_our_number_while_the_server_runs)
{
    char dir[] = "/tmp/bloomery-XXXXXX";
    char path[64], temporary[80];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/pid", dir);
    (void)snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    write_text(path, "999999999999 of a crash\n");
    own_files_write_pid(path);
    assert_int_equal(getpid(), read_number(path));
    assert_int_equal(-1, access(temporary, F_OK));
    own_files_remove_pid(path);
    assert_int_equal(-1, access(path, F_OK));
    own_files_remove_pid(path);
    write_text(path, "1\n"); /* of another process */
    own_files_remove_pid(path);
    assert_int_equal(1, read_number(path));
    (void)unlink(path);
    assert_int_equal(0, rmdir(dir));
}

TEST(nothing_is_left_of_a_failed_write)
{
    char dir[] = "/tmp/bloomery-XXXXXX";
    char path[64];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/pid", dir);
    file_fail_at(FILE_CALL_WRITE, 1, ENOSPC, false);
    own_files_write_pid(path);
    assert_true(file_fail_clear());
    assert_int_equal(0, rmdir(dir)); /* so it is empty */
}

TEST(without_a_path_or_a_place_nothing_happens)
{
    own_files_write_pid("");
    own_files_remove_pid("");
    own_files_write_pid("/nonexistent/bloomery/pid");
    assert_int_equal(-1, access("/nonexistent/bloomery/pid", F_OK));
}
