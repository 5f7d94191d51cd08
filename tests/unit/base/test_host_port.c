/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/host_port.h"

#include "../test.h"

static void
assert_split(const char *text, const char *host, const char *port,
             bool bracketed)
{
    struct host_port parts;

    assert_true(host_port_split(slice_of(text), &parts));
    assert_true(slice_equal(parts.host, slice_of(host)));
    assert_true(slice_equal(parts.port, slice_of(port)));
    assert_int_equal(parts.bracketed, bracketed);
}

TEST(the_last_colon_separates_the_port)
{
    assert_split("h:1", "h", "1", false);
    assert_split("::1:7379", "::1", "7379", false);
    assert_split("h:http", "h", "http", false);
    assert_split("[]:1", "[]", "1", false);
}

TEST(brackets_are_dropped)
{
    assert_split("[::1]:7379", "::1", "7379", true);
    assert_split("[h]:7379", "h", "7379", true);
}

TEST(both_parts_must_be_there)
{
    static const char *const bad[] = { "", "h", ":", "h:", ":1", "[::1]" };
    struct host_port parts = { .bracketed = true };

    for (size_t i = 0; i < 5; i++) {
        assert_false(host_port_split(slice_of(bad[i]), &parts));
    }
    assert_true(parts.bracketed); /* untouched */
    /* An IPv6 address without a port is taken for one. */
    assert_split(bad[5], "[:", "1]", false);
}

TEST(a_number_of_a_port_is_between_1_and_65535)
{
    static const char *const bad[] = { "h:0", "h:65536", "h:x", "h:1x" };
    struct host_port parts;
    unsigned port = 7;

    for (size_t i = 0; i < 4; i++) {
        assert_true(host_port_split(slice_of(bad[i]), &parts));
        assert_false(host_port_number(&parts, &port));
        assert_int_equal(port, 7);
    }
    assert_true(host_port_split(slice_lit("h:65535"), &parts));
    assert_true(host_port_number(&parts, &port));
    assert_int_equal(port, 65535);
}
