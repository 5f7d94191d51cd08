/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is not taken is closed.
 */
#include "net/link_take.h"

#include "link_help.h"

static bool
is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

TEST(a_descriptor_of_no_stream_is_refused_and_closed)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    int fds[] = { open("/dev/null", O_RDONLY | O_CLOEXEC),
                  open("/tmp", O_RDONLY | O_CLOEXEC) };

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        assert_true(fds[i] >= 0);
        assert_null(link_take(&rig->loop, fds[i], &owner_hooks, &owner));
        assert_false(is_open(fds[i]));
    }
    assert_null(link_take(&rig->loop, -1, &owner_hooks, &owner));
    assert_null(rig->loop.links);
    rig_settle(rig);
    assert_int_equal(0, owner.closed);
    rig_free(rig);
}

TEST(a_loop_that_stops_takes_none)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    int ends[2];

    ends_of(BY_UNIX, ends);
    loop_stop_here(&rig->loop);
    assert_null(link_take(&rig->loop, ends[0], &owner_hooks, &owner));
    assert_false(is_open(ends[0]));
    (void)close(ends[1]);
    loop_run(&rig->loop);
    loop_fini(&rig->loop);
    loop_init(&rig->loop, 0, &rig->env, rig); /* for rig_free */
    rig_free(rig);
}

TEST(without_memory_a_link_is_not_taken)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    int ends[2];

    ends_of(BY_UNIX, ends);
    mem_fail_at(1);
    assert_null(link_take(&rig->loop, ends[0], &owner_hooks, &owner));
    assert_true(mem_fail_clear());
    assert_false(is_open(ends[0]));
    (void)close(ends[1]);
    rig_free(rig);
}
