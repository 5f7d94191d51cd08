/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica that has had its primary's data stays ready without a link: it
 * serves that data, and a Sentinel may promote it. Until then it shows the
 * offset 0 (info/info_replication.c).
 */
#include "server/readiness.h"

#include <stdbool.h>
#include <string.h>

/* Whether a line of the text is name:value. */
static bool
says(struct slice text, const char *name, const char *value)
{
    size_t name_len = strlen(name);
    size_t len = name_len + 1 + strlen(value);

    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t line = end != NULL ? (size_t)(end - text.data) : text.len;
        size_t left = end != NULL ? text.len - line - 1 : 0;

        if (line > 0 && text.data[line - 1] == '\r') {
            line--;
        }
        if (line == len && memcmp(text.data, name, name_len) == 0 &&
            text.data[name_len] == ':' &&
            memcmp(text.data + name_len + 1, value, len - name_len - 1) == 0) {
            return true;
        }
        text = (struct slice){ text.data + text.len - left, left };
    }
    return false;
}

const char *
readiness_refusal(struct slice info)
{
    if (says(info, "cluster_enabled", "1")) {
        if (says(info, "cluster_lease_left_ms", "0")) {
            return "it has no lease of its cluster, because it does not see "
                   "its node (sidecar-of), or the node does not see the others";
        }
        if (says(info, "cluster_state", "fail")) {
            return "its cluster is down";
        }
    }
    if (says(info, "role", "slave") &&
        says(info, "master_link_status", "down") &&
        says(info, "slave_repl_offset", "0")) {
        return "it is a replica that has not had its primary's data yet";
    }
    return NULL;
}
