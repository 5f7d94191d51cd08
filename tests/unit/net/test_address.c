/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/address.h"

#include "link_help.h"

#include <sys/un.h>

TEST(the_ends_of_a_tcp_socket_are_hosts_and_ports)
{
    char far[ADDRESS_TEXT_MAX];
    char near[ADDRESS_TEXT_MAX];
    int ends[2];

    ends_of(BY_TCP, ends);
    address_peer(ends[0], false, far);
    address_local(ends[1], false, near);
    assert_string_equal(far, near);
    assert_true(strncmp(far, "127.0.0.1:", 10) == 0 && strlen(far) > 10);
    address_local(ends[0], false, near);
    assert_string_not_equal(far, near);
    address_peer_host(ends[0], false, far);
    assert_string_equal("127.0.0.1", far);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

TEST(ip6_stands_in_brackets_when_a_port_follows)
{
    struct sockaddr_in6 in = { .sin6_family = AF_INET6,
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    char text[ADDRESS_TEXT_MAX];

    if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)) != 0) {
        (void)close(fd);
        skip(); /* there is no IPv6 here */
    }
    address_local(fd, false, text);
    assert_true(strncmp(text, "[::1]:", 6) == 0);
    (void)close(fd);
}

TEST(both_ends_of_a_unix_socket_are_the_path_that_was_bound)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    char dir[] = "/tmp/bloomery-address-XXXXXX";
    char text[ADDRESS_TEXT_MAX];
    char want[ADDRESS_TEXT_MAX];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_non_null(mkdtemp(dir));
    (void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/%080d", dir, 7);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&un, sizeof(un)));
    (void)snprintf(want, sizeof(want), "%s:0", un.sun_path);
    address_peer(fd, true, text);
    assert_string_equal(want, text);
    address_local(fd, true, text);
    assert_string_equal(want, text);
    address_peer_host(fd, true, text);
    assert_string_equal(un.sun_path, text);
    (void)close(fd);
    (void)unlink(un.sun_path);
    (void)rmdir(dir);
}

TEST(a_client_that_has_gone_has_no_address)
{
    char text[ADDRESS_TEXT_MAX];

    address_peer(-1, false, text);
    assert_string_equal("0.0.0.0:0", text);
    address_peer(-1, true, text);
    assert_string_equal(":0", text);
}

static void
expect_source(int fd, bool is_unix, const uint8_t *expected)
{
    uint8_t source[ADDRESS_SOURCE_BYTES];

    memset(source, 7, sizeof(source));
    address_source(fd, is_unix, source);
    assert_memory_equal(expected, source, sizeof(source));
}

TEST(a_source_is_an_ip4_address_half_of_an_ip6_one_or_the_unix_socket)
{
    static const uint8_t none[ADDRESS_SOURCE_BYTES] = { 0 };
    static const uint8_t ip4[ADDRESS_SOURCE_BYTES] = {
        [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1
    };
    struct sockaddr_in6 in = { .sin6_family = AF_INET6,
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    socklen_t len = sizeof(in);
    int ends[2];
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    int near = socket(AF_INET6, SOCK_STREAM, 0);

    ends_of(BY_TCP, ends);
    expect_source(ends[0], false, ip4);
    expect_source(ends[0], true, none);
    expect_source(-1, false, none);
    (void)close(ends[0]);
    (void)close(ends[1]);
    if (fd >= 0 && near >= 0 &&
        bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0 &&
        listen(fd, 1) == 0 &&
        getsockname(fd, (struct sockaddr *)&in, &len) == 0 &&
        connect(near, (struct sockaddr *)&in, sizeof(in)) == 0) {
        expect_source(near, false, none); /* ::1 ends with its only bit */
    }
    (void)close(fd);
    (void)close(near);
}
