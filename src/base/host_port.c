/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/host_port.h"

#include <stdint.h>

bool
host_port_split(struct slice text, struct host_port *ret_parts)
{
    const char *colon = text.len > 0 ? memrchr(text.data, ':', text.len) : NULL;
    struct host_port parts = { .bracketed = false };

    if (colon == NULL) {
        return false;
    }
    parts.host = (struct slice){ text.data, (size_t)(colon - text.data) };
    parts.port = (struct slice){ colon + 1, text.len - parts.host.len - 1 };
    if (parts.host.len > 2 && parts.host.data[0] == '[' && colon[-1] == ']') {
        parts.host.data++;
        parts.host.len -= 2;
        parts.bracketed = true;
    }
    if (parts.host.len == 0 || parts.port.len == 0) {
        return false;
    }
    *ret_parts = parts;
    return true;
}

bool
host_port_number(const struct host_port *parts, unsigned *ret_port)
{
    uint64_t port;

    if (!slice_to_u64(parts->port, &port) || port == 0 || port > UINT16_MAX) {
        return false;
    }
    *ret_port = (unsigned)port;
    return true;
}
