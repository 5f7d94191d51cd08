/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Most groups have one part, which is not copied.
 */
#include "snapshot/parts.h"

#include "base/err.h"
#include "base/mem.h"
#include "journal/group.h"
#include "snapshot/snapshot_format.h"

/* Returns whether a group may begin here. */
static bool
follows(const struct parts *parts, uint64_t position, uint64_t sequence)
{
    if (position >= GROUP_POSITION_LIMIT || sequence >= GROUP_NUMBER_LIMIT) {
        return false;
    }
    return parts->gaps
               ? position >= parts->position && sequence > parts->sequence
               : position == parts->position && sequence == parts->sequence + 1;
}

static bool
fits(const struct parts *parts, const uint8_t *head, size_t len)
{
    uint64_t position = get_u64(head + EFFECTS_AT_POSITION);
    uint64_t sequence = get_u64(head + EFFECTS_AT_SEQUENCE);
    uint64_t bytes = get_u64(head + EFFECTS_AT_BYTES);
    uint64_t offset = get_u64(head + EFFECTS_AT_OFFSET);

    if (offset > bytes || len > bytes - offset) {
        return false;
    }
    if (parts->bytes > 0) {
        return position == parts->group.position &&
               sequence == parts->group.sequence && bytes == parts->bytes &&
               offset == parts->len;
    }
    return offset == 0 && follows(parts, position, sequence) &&
           bytes < GROUP_POSITION_LIMIT - position;
}

/* Adds a part to the text. False: no memory. */
static bool
gather(struct parts *parts, const uint8_t *part, size_t len)
{
    size_t room = parts->room;
    char *text;

    if (parts->len + len > room) {
        room = parts->len + len > 2 * room ? parts->len + len : 2 * room;
        text = mem_try_realloc(parts->text, room);
        if (text == NULL) {
            return false;
        }
        parts->text = text;
        parts->room = room;
    }
    memcpy(parts->text + parts->len, part, len);
    parts->len += len;
    return true;
}

static enum parts_status
end_group(struct parts *parts, struct slice commands,
          struct snapshot_effects *ret_group)
{
    *ret_group = parts->group;
    ret_group->commands = commands;
    ret_group->behind_gap = parts->group.position != parts->position;
    parts->position = parts->group.position + parts->bytes + GROUP_SEAL_BYTES;
    parts->sequence = parts->group.sequence;
    parts_drop(parts);
    return PARTS_WHOLE;
}

enum parts_status
parts_put(struct parts *parts, const uint8_t *payload, size_t len,
          struct snapshot_effects *ret_group)
{
    const uint8_t *part = payload + EFFECTS_HEAD_BYTES;

    CHECK(len > EFFECTS_HEAD_BYTES);
    len -= EFFECTS_HEAD_BYTES;
    if (!fits(parts, payload, len)) {
        return PARTS_WRONG;
    }
    parts->group.position = get_u64(payload + EFFECTS_AT_POSITION);
    parts->group.sequence = get_u64(payload + EFFECTS_AT_SEQUENCE);
    parts->bytes = get_u64(payload + EFFECTS_AT_BYTES);
    if (len == parts->bytes) {
        return end_group(parts, (struct slice){ (const char *)part, len },
                         ret_group);
    }
    if (!gather(parts, part, len)) {
        return PARTS_NOMEM;
    }
    return parts->len < parts->bytes
               ? PARTS_MORE
               : end_group(parts, (struct slice){ parts->text, parts->len },
                           ret_group);
}

void
parts_drop(struct parts *parts)
{
    parts->bytes = 0;
    parts->len = 0;
}

bool
parts_end_at(const struct parts *parts, uint64_t position, uint64_t sequence)
{
    return parts->bytes == 0 && parts->position == position &&
           parts->sequence == sequence;
}

void
parts_fini(struct parts *parts)
{
    mem_free(parts->text);
}
