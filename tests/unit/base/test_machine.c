/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups are made of files in a directory of the test's own.
 */
#include "base/machine.h"

#include "../test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, TREE_FILES_MAX = 4, PATH_BYTES = 512 };

struct tree_file {
    const char *path, *text;
};

static void
make_file(const char *root, const struct tree_file *file)
{
    char path[PATH_BYTES];
    FILE *out;

    (void)snprintf(path, sizeof(path), "%s/%s", root, file->path);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL;
         at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(file->text, out) >= 0);
    assert_int_equal(0, fclose(out));
}

/* The file, then the folders above it, as far as they are empty. */
static void
remove_file(const char *root, const struct tree_file *file)
{
    char path[PATH_BYTES];
    char *slash;

    (void)snprintf(path, sizeof(path), "%s/%s", root, file->path);
    (void)unlink(path);
    while ((slash = strrchr(path, '/')) != NULL &&
           slash >= path + strlen(root)) {
        *slash = '\0';
        (void)rmdir(path);
    }
}

/* The limit of a process with these lines in its /proc/self/cgroup. */
static uint64_t
limit_of(const char *membership, const struct tree_file *files)
{
    char root[] = "/tmp/bloomery-test-machine-XXXXXX";
    const struct tree_file lines = { "cgroup", membership };
    char path[PATH_BYTES];
    uint64_t limit;

    assert_non_null(mkdtemp(root));
    make_file(root, &lines);
    for (unsigned i = 0; i < TREE_FILES_MAX && files[i].path != NULL; i++) {
        make_file(root, &files[i]);
    }
    (void)snprintf(path, sizeof(path), "%s/cgroup", root);
    limit = machine_group_limit(path, root);
    for (unsigned i = 0; i < TREE_FILES_MAX && files[i].path != NULL; i++) {
        remove_file(root, &files[i]);
    }
    remove_file(root, &lines);
    assert_int_equal(-1, access(root, F_OK));
    return limit;
}

TEST(version_2_limits_by_the_lowest_group_above)
{
    static const struct tree_file files[TREE_FILES_MAX] = {
        { "a/b/memory.max", "max\n" },
        { "a/memory.max", "100000000\n" },
        { "memory.max", "200000000\n" },
    };

    assert_int_equal(limit_of("0::/a/b\n", files), 100000000);
    assert_int_equal(limit_of("0::/a\n", files), 100000000);
    assert_int_equal(limit_of("0::/other\n", files), 200000000);
    assert_int_equal(limit_of("0::/\n", files), 200000000);
}

TEST(version_1_limits_by_the_group_of_its_memory_controller)
{
    static const struct tree_file files[TREE_FILES_MAX] = {
        { "memory/a/b/memory.limit_in_bytes", "300000000\n" },
        { "memory/memory.limit_in_bytes", "9223372036854771712\n" },
        { "cpu/a/b/memory.limit_in_bytes", "1000\n" },
    };

    assert_int_equal(limit_of("9:name=systemd:/\n4:memory:/a/b\n0::/\n", files),
                     300000000);
    assert_int_equal(limit_of("2:cpu,memory:/a/b\n", files), 300000000);
    assert_int_equal(limit_of("2:memory,cpu:/a/b\n", files), 300000000);
    assert_true(limit_of("2:cpu,memoryless:/a/b\n", files) == 0);
    assert_true(limit_of("4:memory:/\n", files) == 9223372036854771712U);
}

/* A container sees its own group as the folder, whatever the path says. */
TEST(a_path_from_outside_a_container_ends_at_the_folder)
{
    static const struct tree_file files[TREE_FILES_MAX] = {
        { "memory/memory.limit_in_bytes", "400000000\n" },
    };

    assert_int_equal(limit_of("4:memory:/docker/0123abcd\n", files), 400000000);
}

TEST(of_both_versions_the_lower_limit_counts)
{
    static const struct tree_file files[TREE_FILES_MAX] = {
        { "memory/a/memory.limit_in_bytes", "400000000\n" },
        { "unified/b/memory.max", "300000000\n" },
    };

    assert_int_equal(limit_of("4:memory:/a\n0::/b\n", files), 300000000);
    assert_int_equal(limit_of("4:memory:/a\n0::/\n", files), 400000000);
}

TEST(nonsense_is_no_limit)
{
    static const struct tree_file files[TREE_FILES_MAX] = {
        { "memory.max", "many\n" },
        { "memory/memory.limit_in_bytes", "" },
    };

    assert_int_equal(limit_of("", files), 0);
    assert_int_equal(limit_of("0\n::\n4:memory\n4:memory:a\n\n", files), 0);
    assert_int_equal(limit_of("0::/a\n4:memory:/a\n", files), 0);
    assert_int_equal(machine_group_limit("/nowhere/at/all", "/tmp"), 0);
}

TEST(the_machine_has_more_than_we_use)
{
    uint64_t bytes = machine_memory_bytes();

    assert_true(bytes >= 64 * (uint64_t)MIB);
    assert_int_equal(machine_memory_bytes(), bytes);
    assert_true(bytes > machine_resident_bytes());
    assert_true(machine_resident_bytes() > 0);
    assert_true(machine_share_bytes(bytes) < bytes);
    assert_true(machine_share_bytes(bytes) > bytes / 2);
}
