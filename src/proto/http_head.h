/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The head of an HTTP/1.0 or HTTP/1.1 request (RFC 9112): the request line and
 * the header fields up to the empty line. The parser is strict: lines end in CR
 * LF, no field is folded, and TAB is the only control character in a line. A
 * body is not read: a connection serves one request. Pure functions; the slices
 * point into the bytes.
 *
 * It does not matter how the bytes arrive: if the result for a part of a
 * request is final, more bytes do not change it.
 */
#pragma once

#include "base/slice.h"

enum { HTTP_HEAD_MAX = 8192 /* bytes, with the empty line */ };

enum http_result {
    HTTP_MORE, /* the head has not ended yet */
    HTTP_DONE,
    HTTP_BAD /* ret_head->status tells why */
};

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_OTHER };

struct http_head {
    unsigned status; /* of HTTP_BAD: 400, 431 or 505 */
    enum http_method method;
    struct slice path; /* without the query */
    struct slice host; /* with the port; empty if there is no Host field */
    /* The client accepts OpenMetrics text at least as readily as plain text. */
    bool open_metrics;
};

/* Parses a head. On HTTP_MORE, *ret_head is undefined; on HTTP_BAD, only its
 * status is defined. */
enum http_result http_head_parse(struct slice bytes,
                                 struct http_head *ret_head);

/* Returns whether a Host field names an address or this machine: an IPv4
 * address, an IPv6 address in brackets, or localhost, with or without a port.
 * Any other name may be chosen by an attacker, who leads a browser here (DNS
 * rebinding). */
bool http_host_is_plain(struct slice host);
