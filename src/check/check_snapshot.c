/* SPDX-License-Identifier: BSD-3-Clause
 *
 * If the whole file is to be read, it is read even behind damage, since the
 * operator wants to know how much salvage would find.
 */
#include "check/check_snapshot.h"

#include "base/file.h"
#include "core/bloom.h"

#include <stdio.h>

struct look {
    struct check *check;
    struct check_snapshot *snapshot;
    struct check_advance advance;
};

void
check_snapshot_advance(struct check *check, struct check_advance *advance)
{
    uint64_t bytes = atomic_load(&advance->progress.bytes);

    tool_bar_add(&check->tool, bytes - advance->shown_bytes);
    advance->shown_bytes = bytes;
}

/* If the end is lost, the stamp of the beginning is better than none. */
static bool
on_header(void *ctx, const struct snapshot_stamp *begin, uint32_t databases)
{
    struct look *look = ctx;

    (void)databases;
    if (!look->snapshot->has_stamp) {
        look->snapshot->has_stamp = true;
        look->snapshot->stamp = *begin;
    }
    return true;
}

static bool
on_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct look *look = ctx;
    struct check_snapshot *snapshot = look->snapshot;
    struct bloom_info info = { .struct_size = sizeof(info) };

    bloom_get_info(bloom, &info);
    bloom_fini(bloom, NULL);
    snapshot->keys++;
    snapshot->expiring += record->expires_at_ms != 0;
    snapshot->items += info.items;
    snapshot->capacity += info.capacity;
    snapshot->keys_behind += snapshot->lost_stretches > 0;
    if (record->db >= snapshot->databases) {
        snapshot->databases = record->db + 1;
    }
    check_snapshot_advance(look->check, &look->advance);
    return true;
}

static bool
on_effects(void *ctx, const struct snapshot_effects *effects)
{
    struct look *look = ctx;

    (void)effects;
    look->snapshot->effects++;
    check_snapshot_advance(look->check, &look->advance);
    return true;
}

static void
on_passed_over(void *ctx, const struct snapshot_error *error, uint64_t from,
               uint64_t to)
{
    struct look *look = ctx;

    /* Keep the first error, but a newer version or a failing disk matters more
     * than damage. */
    if (look->snapshot->lost_stretches++ == 0 ||
        (look->snapshot->error.status == SNAPSHOT_DAMAGED &&
         error->status != SNAPSHOT_DAMAGED)) {
        look->snapshot->error = *error;
    }
    look->snapshot->lost_bytes += to - from;
    check_snapshot_advance(look->check, &look->advance);
}

enum check_state
check_snapshot_state(enum snapshot_status status)
{
    switch (status) {
    case SNAPSHOT_OK:
        return CHECK_STATE_INTACT;
    case SNAPSHOT_NEWER:
        return CHECK_STATE_NEWER;
    case SNAPSHOT_IO:
    case SNAPSHOT_SECRET:
    case SNAPSHOT_NOMEM:
        return CHECK_STATE_UNREADABLE;
    default:
        return CHECK_STATE_DAMAGED;
    }
}

bool
check_snapshot_is_walked(const struct check_snapshot *snapshot)
{
    return snapshot->effects > 0 ||
           snapshot->stamp.begins != snapshot->stamp.position;
}

void
check_snapshot_leave_out(void *ctx, const struct snapshot_error *error,
                         uint64_t from, uint64_t to)
{
    (void)ctx;
    (void)error;
    (void)from;
    (void)to;
}

void
check_snapshot_look(struct check *check, int fd, bool whole,
                    struct check_snapshot *ret_snapshot)
{
    struct look look = { .check = check, .snapshot = ret_snapshot };
    struct snapshot_visitor visitor = { .header = on_header,
                                        .filter = on_filter,
                                        .effects = on_effects,
                                        .passed_over = on_passed_over,
                                        .ctx = &look };
    struct snapshot_error error = { 0 };
    enum snapshot_status status;

    memset(ret_snapshot, 0, sizeof(*ret_snapshot));
    (void)!file_size(fd, &ret_snapshot->file_bytes);
    status =
        snapshot_read_stamp(fd, &ret_snapshot->stamp, &ret_snapshot->error);
    ret_snapshot->has_stamp = status == SNAPSHOT_OK;
    if (whole && (status == SNAPSHOT_OK || status == SNAPSHOT_DAMAGED)) {
        status =
            snapshot_read(fd, NULL, &visitor, &look.advance.progress, &error);
        ret_snapshot->whole = status == SNAPSHOT_OK;
        if (status != SNAPSHOT_OK) {
            ret_snapshot->error = error;
        } else if (ret_snapshot->lost_stretches > 0) {
            status = ret_snapshot->error.status;
        }
    }
    ret_snapshot->state = check_snapshot_state(status);
}

/* Writes what is wrong and where: "at offset 4711, behind 3 keys: ...". */
static void
describe_fault(const struct check_snapshot *snapshot, char *ret_text,
               size_t size)
{
    const struct snapshot_error *error = &snapshot->error;

    if (snapshot->state == CHECK_STATE_UNREADABLE) {
        (void)snprintf(ret_text, size, "not readable at offset %llu: %s",
                       (unsigned long long)error->offset,
                       error->error != 0 ? strerror(error->error)
                                         : error->text);
        return;
    }
    (void)snprintf(ret_text, size, "at offset %llu, behind %llu keys: %s",
                   (unsigned long long)error->offset,
                   (unsigned long long)error->record, error->text);
}

void
check_snapshot_show(struct check *check, const char *path,
                    const struct check_snapshot *snapshot)
{
    const struct snapshot_stamp *stamp = &snapshot->stamp;
    char text[512];

    check_card_begin(check, path, "snapshot", snapshot->state);
    check_card_number(check, "bytes", snapshot->file_bytes);
    if (snapshot->has_stamp) {
        check_card_number(check, "version", stamp->version);
        check_card_text(check, "history", stamp->history);
        check_card_number(check, "position", stamp->position);
        check_card_number(check, "sequence", stamp->sequence);
        check_card_time(check, "created", stamp->created_ms);
        check_card_number(check, "keys", stamp->keys);
    }
    if (snapshot->whole) {
        check_card_number(check, "intact_keys", snapshot->keys);
        check_card_number(check, "expiring_keys", snapshot->expiring);
        check_card_number(check, "items", snapshot->items);
        check_card_number(check, "capacity", snapshot->capacity);
        if (snapshot->effects > 0) {
            check_card_number(check, "effect_groups", snapshot->effects);
        }
    }
    if (snapshot->state != CHECK_STATE_INTACT) {
        describe_fault(snapshot, text, sizeof(text));
        check_card_text(check, "problem", text);
        check_card_number(check, "offset", snapshot->error.offset);
        check_card_number(check, "record", snapshot->error.record);
    }
    if (snapshot->lost_stretches > 0) {
        check_card_number(check, "damaged_places", snapshot->lost_stretches);
        check_card_number(check, "damaged_bytes", snapshot->lost_bytes);
        check_card_number(check, "intact_keys_after", snapshot->keys_behind);
        check_card_format(check, "remedy", "bloomery-check salvage %s OUT",
                          path);
    }
    check_card_end(check);
}

void
check_snapshot_complain(struct check *check, const char *path,
                        const struct check_snapshot *snapshot)
{
    char text[512];

    if (snapshot->state == CHECK_STATE_INTACT) {
        return;
    }
    describe_fault(snapshot, text, sizeof(text));
    tool_complain(
        &check->tool, check_card_status(snapshot->state), "%s: %s%s", path,
        snapshot->state == CHECK_STATE_DAMAGED ? "damaged " : "", text);
}
