/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica shows the offset 0 until it has had its primary's data
 * (info/info_replication.c). From then on it is ready, even without a link: it
 * serves that data, and a Sentinel may promote it. It is complete only with a
 * link.
 */
#include "info/readiness.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A replica that lacks at most this much of the log counts as up to date. */
enum { LAG_BYTES = 64 << 10 };

/* Finds the line name:value. False: there is none. */
static bool
find_line(struct slice text, const char *name, struct slice *ret_value)
{
    size_t name_len = strlen(name);

    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t line = end != NULL ? (size_t)(end - text.data) : text.len;
        size_t left = end != NULL ? text.len - line - 1 : 0;

        if (line > 0 && text.data[line - 1] == '\r') {
            line--;
        }
        if (line > name_len && memcmp(text.data, name, name_len) == 0 &&
            text.data[name_len] == ':') {
            *ret_value =
                (struct slice){ text.data + name_len + 1, line - name_len - 1 };
            return true;
        }
        text = (struct slice){ text.data + text.len - left, left };
    }
    return false;
}

/* Returns whether a line of the text is name:value. */
static bool
says(struct slice text, const char *name, const char *value)
{
    struct slice got;

    return find_line(text, name, &got) && slice_equal(got, slice_of(value));
}

static bool
number_of(struct slice text, const char *name, uint64_t *ret_number)
{
    struct slice got;

    return find_line(text, name, &got) && slice_to_u64(got, ret_number);
}

const char *
readiness_refusal(struct slice info)
{
    uint64_t owned;

    if (says(info, "cluster_enabled", "1")) {
        if (says(info, "cluster_lease_left_ms", "0")) {
            return "it has no lease of its cluster, because it does not see "
                   "its node (sidecar-of), or the node does not see the others";
        }
        if (says(info, "cluster_state", "fail")) {
            return "its cluster is down";
        }
        if (says(info, "cluster_role", "master") &&
            says(info, "cluster_slots_served", "0") &&
            number_of(info, "cluster_slots_owned", &owned) && owned > 0) {
            return "it serves none of its node's slots: see "
                   "cluster_slots_missing and cluster_silent_addresses in INFO "
                   "cluster";
        }
    }
    if (says(info, "role", "slave") &&
        says(info, "master_link_status", "down") &&
        says(info, "slave_repl_offset", "0")) {
        return "it is a replica that has not had its primary's data yet";
    }
    return NULL;
}

/* ---- complete ------------------------------------------------------------ */

/* Reads the number behind ",name=" in the line of a replica. */
static bool
field_of(struct slice line, const char *name, uint64_t *ret_number)
{
    char key[32];
    int len = snprintf(key, sizeof(key), ",%s=", name);
    const char *at = memmem(line.data, line.len, key, (size_t)len);
    const char *end = line.data + line.len;
    struct slice digits;

    if (at == NULL) {
        return false;
    }
    at += len;
    digits = (struct slice){ at, 0 };
    while (at + digits.len < end && at[digits.len] >= '0' &&
           at[digits.len] <= '9') {
        digits.len++;
    }
    return slice_to_u64(digits, ret_number);
}

/* Counts the replicas that are online and have nearly all of the log. */
static uint64_t
count_even(struct slice info)
{
    static const char online[] = ",state=online,";
    uint64_t position = 0;
    uint64_t even = 0;
    struct slice line;
    char name[32];

    (void)number_of(info, "master_repl_offset", &position);
    for (unsigned i = 0;; i++) {
        uint64_t offset;

        (void)snprintf(name, sizeof(name), "slave%u", i);
        if (!find_line(info, name, &line)) {
            return even;
        }
        even +=
            memmem(line.data, line.len, online, sizeof(online) - 1) != NULL &&
            field_of(line, "offset", &offset) && offset + LAG_BYTES >= position;
    }
}

static const char *
incomplete_cluster(struct slice info)
{
    struct slice owned;
    struct slice served;
    uint64_t replicas;

    if (find_line(info, "cluster_slots_owned", &owned) &&
        find_line(info, "cluster_slots_served", &served) &&
        !slice_equal(owned, served)) {
        return says(info, "cluster_role", "slave")
                   ? "it does not have all slots of its primary yet"
                   : "it does not serve all slots of its node";
    }
    if (find_line(info, "cluster_silent_servers", &served) &&
        !slice_equal(served, slice_lit("0"))) {
        return "other servers of its cluster are silent: see "
               "cluster_silent_addresses in INFO cluster";
    }
    if (says(info, "cluster_role", "master") &&
        number_of(info, "cluster_replicas", &replicas) &&
        count_even(info) < replicas) {
        return "a replica is not connected, or not up to date";
    }
    return NULL;
}

const char *
readiness_incomplete(struct slice info)
{
    const char *why = readiness_refusal(info);

    if (why == NULL && says(info, "role", "slave") &&
        !says(info, "master_link_status", "up")) {
        return "it is a replica without a link to its primary";
    }
    if (why == NULL && says(info, "cluster_enabled", "1")) {
        why = incomplete_cluster(info);
    }
    return why;
}
