/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Formats the results of getpeername and getsockname as Redis does.
 */
#include "net/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

/* The client's end of a unix socket has no path; Redis shows the server's. */
static void
find_address(int fd, bool is_unix, bool peer, union address *ret_address)
{
    socklen_t len = sizeof(*ret_address);

    memset(ret_address, 0, sizeof(*ret_address));
    if (peer && !is_unix) {
        (void)getpeername(fd, &ret_address->any, &len);
    } else {
        (void)getsockname(fd, &ret_address->any, &len);
    }
}

static const char *
path_of(const union address *address)
{
    return address->any.sa_family == AF_UNIX ? address->un.sun_path : "";
}

static void
format_host(const union address *address, char ret_host[INET6_ADDRSTRLEN])
{
    bool is_6 = address->any.sa_family == AF_INET6;
    const void *bytes = is_6 ? (const void *)&address->in6.sin6_addr
                             : (const void *)&address->in.sin_addr;

    if (inet_ntop(is_6 ? AF_INET6 : AF_INET, bytes, ret_host,
                  INET6_ADDRSTRLEN) == NULL) {
        (void)snprintf(ret_host, INET6_ADDRSTRLEN, "?");
    }
}

static void
format(const union address *address, bool is_unix, char *ret_text)
{
    char host[INET6_ADDRSTRLEN];

    if (is_unix) {
        (void)snprintf(ret_text, ADDRESS_TEXT_MAX, "%.107s:0",
                       path_of(address));
        return;
    }
    format_host(address, host);
    if (address->any.sa_family == AF_INET6) {
        (void)snprintf(ret_text, ADDRESS_TEXT_MAX, "[%s]:%u", host,
                       ntohs(address->in6.sin6_port));
    } else {
        (void)snprintf(ret_text, ADDRESS_TEXT_MAX, "%s:%u", host,
                       ntohs(address->in.sin_port));
    }
}

void
address_peer(int fd, bool is_unix, char *ret_text)
{
    union address address;

    find_address(fd, is_unix, true, &address);
    format(&address, is_unix, ret_text);
}

void
address_local(int fd, bool is_unix, char *ret_text)
{
    union address address;

    find_address(fd, is_unix, false, &address);
    format(&address, is_unix, ret_text);
}

void
address_peer_host(int fd, bool is_unix, char *ret_text)
{
    union address address;
    char host[INET6_ADDRSTRLEN];

    find_address(fd, is_unix, true, &address);
    if (is_unix) {
        (void)snprintf(ret_text, ADDRESS_TEXT_MAX, "%.107s", path_of(&address));
        return;
    }
    format_host(&address, host);
    (void)snprintf(ret_text, ADDRESS_TEXT_MAX, "%s", host);
}

/* Usually the owner of one IPv6 address has the whole /64 network. */
void
address_source(int fd, bool is_unix, uint8_t ret_source[ADDRESS_SOURCE_BYTES])
{
    union address address;
    const struct in6_addr *in6 = &address.in6.sin6_addr;

    memset(ret_source, 0, ADDRESS_SOURCE_BYTES);
    if (is_unix) {
        return;
    }
    find_address(fd, false, true, &address);
    if (address.any.sa_family == AF_INET) {
        ret_source[10] = 0xff; /* the IPv4 address mapped into IPv6 */
        ret_source[11] = 0xff;
        memcpy(ret_source + 12, &address.in.sin_addr, 4);
    } else if (address.any.sa_family == AF_INET6) {
        memcpy(ret_source, in6->s6_addr,
               IN6_IS_ADDR_V4MAPPED(in6) ? ADDRESS_SOURCE_BYTES
                                         : ADDRESS_SOURCE_BYTES / 2);
    }
}

bool
address_is_local(const struct sockaddr *address)
{
    const struct sockaddr_in *in = (const void *)address;
    const struct sockaddr_in6 *in6 = (const void *)address;

    if (address->sa_family == AF_INET) {
        return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    }
    return address->sa_family != AF_INET6 ||
           IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

bool
address_peer_is_local(int fd)
{
    union address address = { .any.sa_family = AF_UNSPEC };
    socklen_t len = sizeof(address);

    return getpeername(fd, &address.any, &len) == 0 &&
           address_is_local(&address.any);
}
