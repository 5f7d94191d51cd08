/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main of a fuzz target without libFuzzer. It runs the target on every file,
 * and on every file below a directory, of its arguments, and prints their
 * number. With -g N it also runs N inputs that fuzz_generate makes from the
 * seeds SEED, SEED + 1, ... A failed check prints the name of its input and
 * aborts.
 *
 *   fuzz_stream [-g N] [-s SEED] [file or directory]...
 */
#include "base/mem.h"
#include "target.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Weak, because a target need not define it. */
__attribute__((weak)) size_t fuzz_generate(uint64_t seed, uint8_t *to,
                                           size_t max);

enum {
    GENERATED_MAX = 512 * 1024,
    FILE_MAX = 64 * 1024 * 1024,
    PATH_BYTES = 4096
};

static char current[PATH_BYTES + 64];

static void
on_abort(int number)
{
    (void)number;
    if (write(STDERR_FILENO, "replay: failed on ", 18) < 0 ||
        write(STDERR_FILENO, current, strlen(current)) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0) {
        _exit(3);
    }
}

static void
fail(const char *what, const char *path)
{
    (void)fprintf(stderr, "replay: %s: %s\n", path, what);
    exit(2);
}

/* Runs the target on a copy of the exact size, so that a sanitizer detects a
 * read beyond its end. */
static void
play(const uint8_t *data, size_t len)
{
    uint8_t *copy = mem_alloc(len);

    if (len > 0) {
        memcpy(copy, data, len);
    }
    (void)LLVMFuzzerTestOneInput(copy, len);
    mem_free(copy);
}

static void
play_file(const char *path, const struct stat *info)
{
    FILE *file = fopen(path, "rbe");
    size_t len = (size_t)info->st_size;
    uint8_t *data;

    if (file == NULL || len > FILE_MAX) {
        fail("cannot be read, or is too large", path);
    }
    data = mem_alloc(len);
    if (fread(data, 1, len, file) != len) {
        fail("cannot be read", path);
    }
    (void)fclose(file);
    (void)snprintf(current, sizeof(current), "%s", path);
    play(data, len);
    mem_free(data);
}

static size_t play_path(const char *path);

static size_t
play_directory(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    size_t count = 0;

    if (directory == NULL) {
        fail("cannot be read", path);
    }
    while ((entry = readdir(directory)) != NULL) {
        char name[PATH_BYTES];

        if (entry->d_name[0] == '.') {
            continue;
        }
        if (snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >=
            (int)sizeof(name)) {
            fail("name too long", path);
        }
        count += play_path(name);
    }
    (void)closedir(directory);
    return count;
}

static size_t
play_path(const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        fail("not found", path);
    }
    if (S_ISDIR(info.st_mode)) {
        return play_directory(path);
    }
    play_file(path, &info);
    return 1;
}

static void
play_generated(uint64_t seed, size_t count)
{
    uint8_t *data = mem_alloc(GENERATED_MAX);

    if (fuzz_generate == NULL) {
        fail("this target generates nothing", "-g");
    }
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(current, sizeof(current), "-g 1 -s %#llx",
                       (unsigned long long)(seed + i));
        play(data, fuzz_generate(seed + i, data, GENERATED_MAX));
    }
    mem_free(data);
}

int
main(int argc, char **argv)
{
    uint64_t seed = 0;
    size_t generated = 0;
    size_t files = 0;
    int option;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        seed = 1;
    }
    while ((option = getopt(argc, argv, "g:s:")) != -1) {
        if (option == 'g') {
            generated = strtoull(optarg, NULL, 10);
        } else if (option == 's') {
            seed = strtoull(optarg, NULL, 0);
        } else {
            return 2;
        }
    }
    if (optind == argc && generated == 0) {
        fail("nothing to do", argv[0]);
    }
    (void)signal(SIGABRT, on_abort);
    for (int i = optind; i < argc; i++) {
        files += play_path(argv[i]);
    }
    if (generated > 0) {
        (void)printf("%s: generating %zu inputs, seed %#llx\n", argv[0],
                     generated, (unsigned long long)seed);
        (void)fflush(stdout);
        play_generated(seed, generated);
    }
    (void)printf("%s: %zu files and %zu generated inputs passed\n", argv[0],
                 files, generated);
    return 0;
}
