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
