/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mappings for large arrays.
 */
#include "base/huge.h"

#include "../test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(a_mapping_is_zero_and_aligned_to_a_huge_page)
{
    size_t bytes = 3 * (size_t)HUGE_PAGE_BYTES + 64;
    char *map = huge_map(bytes);

    assert_non_null(map);
    assert_int_equal((uintptr_t)map % HUGE_PAGE_BYTES, 0);
    for (size_t i = 0; i < bytes; i += 4096) {
        assert_int_equal(map[i], 0);
    }
    map[bytes - 1] = 1;
    huge_unmap(map, bytes);
}

TEST(sizes_round_up_to_whole_huge_pages)
{
    assert_int_equal(huge_round(0), 0);
    assert_int_equal(huge_round(1), HUGE_PAGE_BYTES);
    assert_int_equal(huge_round(HUGE_PAGE_BYTES), HUGE_PAGE_BYTES);
    assert_int_equal(huge_round(HUGE_PAGE_BYTES + 1), 2 * HUGE_PAGE_BYTES);
}

TEST(absurd_sizes_are_refused)
{
    assert_null(huge_map(SIZE_MAX));
    assert_null(huge_map(PTRDIFF_MAX));
}

/* Pages that this process has mapped, touched or not. */
static unsigned long
mapped_pages(void)
{
    char line[256] = "";
    unsigned long pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_true(read(fd, line, sizeof(line) - 1) > 0);
    (void)close(fd);
    assert_int_equal(1, sscanf(line, "%lu", &pages));
    return pages;
}

/* More is mapped to find an aligned place; neither end of it may stay,
 * wherever the kernel begins. A page in between shifts where it does. */
static void
check_account(size_t bytes)
{
    enum { TIMES = 20 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned long pages = huge_round(bytes) / page;
    void *shift[TIMES];
    char *map[TIMES];

    for (size_t i = 0; i < TIMES; i++) {
        unsigned long before = mapped_pages();

        map[i] = huge_map(bytes);
        assert_non_null(map[i]);
        assert_int_equal(before + pages, mapped_pages());
        shift[i] = mmap(NULL, (i % 7 + 1) * page, PROT_READ,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(shift[i] != MAP_FAILED);
    }
    for (size_t i = 0; i < TIMES; i++) {
        unsigned long before = mapped_pages();

        huge_unmap(map[i], bytes);
        assert_int_equal(before - pages, mapped_pages());
        assert_int_equal(0, munmap(shift[i], (i % 7 + 1) * page));
    }
}

TEST(a_mapping_takes_what_it_says_and_gives_all_of_it_back)
{
    check_account(HUGE_PAGE_BYTES);
    check_account(HUGE_PAGE_BYTES + 1);
    check_account((size_t)100 << 20); /* in more than one step */
}

static void
fill(uint64_t *words, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(*words); i += 512) {
        words[i] = i + 1;
    }
}

static void
check_filled(const uint64_t *words, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(*words); i += 512) {
        assert_int_equal(i + 1, words[i]);
    }
}

/* A mapping behind it leaves no room, so it has to move. */
TEST(a_mapping_grows_and_shrinks_with_its_bytes)
{
    enum { STEP = HUGE_PAGE_BYTES };
    unsigned long before = mapped_pages();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = STEP;
    char *map = huge_map(bytes);
    unsigned moved = 0;

    assert_non_null(map);
    fill((uint64_t *)(void *)map, bytes);
    for (size_t i = 2; i < 10; i++) {
        size_t grown = i * (size_t)STEP;
        void *wall =
            mmap(map + bytes, page, PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        char *to = huge_resize(map, bytes, grown);

        assert_non_null(to);
        assert_int_equal(0, (uintptr_t)to % HUGE_PAGE_BYTES);
        check_filled((const uint64_t *)(const void *)to, bytes);
        assert_int_equal(0, to[grown - 1]);
        if (wall != MAP_FAILED) {
            assert_int_equal(0, munmap(wall, page));
        }
        moved += to != map;
        map = to;
        bytes = grown;
        fill((uint64_t *)(void *)map, bytes);
    }
    assert_true(moved > 0);
    map = huge_resize(map, bytes, STEP);
    check_filled((const uint64_t *)(const void *)map, STEP);
    assert_null(huge_resize(map, STEP, SIZE_MAX));
    huge_unmap(map, STEP);
    assert_in_range(mapped_pages(), 0, before);
}
