/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measures the least cost of loading a snapshot. It reads a file once into
 * fresh memory of the kind that large filters use, and hashes it with XXH3
 * while it is in the cache. It prints one logfmt line on stdout.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/huge.h"
#include "load_stats.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PIECE_BYTES = 256 * 1024 };

/* Returns false if the file is short or cannot be read. */
static bool
read_piece(int fd, char *to, size_t len)
{
    while (len > 0) {
        ssize_t got = read(fd, to, len);

        if (got <= 0) {
            return false;
        }
        to += got;
        len -= (size_t)got;
    }
    return true;
}

int
main(int argc, char **argv)
{
    uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    struct stat st;
    XXH3_state_t hash;
    char *memory;

    if (fd < 0 || fstat(fd, &st) < 0) {
        fputs("usage: readhash FILE, which can be read\n", stderr);
        return 2;
    }
    memory = huge_map((size_t)st.st_size);
    if (memory == NULL) {
        fputs("readhash: out of memory\n", stderr);
        return 1;
    }
    XXH3_INITSTATE(&hash);
    (void)XXH3_64bits_reset(&hash);
    for (size_t at = 0; at < (size_t)st.st_size; at += PIECE_BYTES) {
        size_t left = (size_t)st.st_size - at;
        size_t step = left < PIECE_BYTES ? left : PIECE_BYTES;

        if (!read_piece(fd, memory + at, step)) {
            fputs("readhash: the file cannot be read\n", stderr);
            return 1;
        }
        (void)XXH3_64bits_update(&hash, memory + at, step);
    }
    printf("bytes=%ju hash=%016jx ms=%.1f\n", (uintmax_t)st.st_size,
           (uintmax_t)XXH3_64bits_digest(&hash),
           (double)(clock_ns(CLOCK_MONOTONIC) - began_ns) / 1e6);
    return 0;
}
