/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keys of a slice are first collected and then deleted, since nothing may
 * change a stripe while it is scanned.
 */
#include "slots/sweep.h"

#include "keyspace/slot_keys.h"
#include "proto/compose.h"
#include "replay/inject.h"

#include <stdio.h>

enum { KEPT_BYTES = 64 << 10 };

void
sweep_note(struct buf *list, const struct key *key)
{
    buf_append_item(list,
                    (struct slice){ (const char *)&key->db, sizeof(key->db) });
    buf_append_item(list, key->name);
}

bool
sweep_next(const struct buf *list, size_t *at, struct key *ret_key)
{
    struct slice number;
    struct slice name;
    uint32_t db;

    if (!buf_next_item(list, at, &number) || !buf_next_item(list, at, &name)) {
        return false;
    }
    memcpy(&db, number.data, sizeof(db));
    *ret_key = key_named(name, db);
    return true;
}

static void
note_key(void *ctx, const struct key *key, uint64_t expires_at_ms)
{
    struct sweep *sweep = ctx;

    (void)expires_at_ms;
    if ((!sweep->one_db || key->db == sweep->db) &&
        (sweep->keep == NULL || keyspace_find(sweep->keep, key, 0) == NULL)) {
        sweep_note(&sweep->found, key);
    }
}

static bool delete (struct sweep *sweep, const struct key *key,
                    char *ret_reason, size_t reason_size)
{
    const struct slice argv[] = { slice_lit("DEL"), key->name };

    buf_reset(&sweep->commands, KEPT_BYTES);
    compose_command(&sweep->commands, argv, 2);
    if (sweep->commands.failed) {
        (void)snprintf(ret_reason, reason_size, "there is no memory");
        return false;
    }
    inject_select(sweep->inject, key->db);
    if (!inject_run(sweep->inject, buf_slice(&sweep->commands), ret_reason,
                    reason_size)) {
        return false;
    }
    sweep->deleted++;
    return true;
}

bool
sweep_step(struct sweep *sweep, char *ret_reason, size_t reason_size)
{
    struct key key;
    size_t at = 0;

    buf_reset(&sweep->found, KEPT_BYTES);
    sweep->cursor = slot_keys_scan(sweep->ks, 0, sweep->slots, sweep->cursor,
                                   note_key, sweep);
    if (sweep->found.failed) {
        (void)snprintf(ret_reason, reason_size, "there is no memory");
        return false;
    }
    while (sweep_next(&sweep->found, &at, &key)) {
        if (!delete (sweep, &key, ret_reason, reason_size)) {
            return false;
        }
    }
    sweep->done = sweep->cursor == 0;
    return true;
}

void
sweep_fini(struct sweep *sweep)
{
    buf_free(&sweep->found);
    buf_free(&sweep->commands);
}
