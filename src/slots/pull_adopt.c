/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each key is removed from the snapshot's keyspace when it is adopted, so that
 * the data is not in memory twice.
 */
#include "slots/pull_adopt.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/codec.h"
#include "core/payload.h"
#include "core/stream.h"
#include "keyspace/exchange.h"
#include "keyspace/gate.h"
#include "keyspace/slot_keys.h"
#include "proto/compose.h"
#include "replay/inject.h"
#include "slots/sweep.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    WHOLE_BYTES = 1 << 20, /* larger filters come in pieces */
    PIECE_BYTES = 256 << 10,
    KEPT_BYTES = 2 << 20
};

struct adoption {
    struct keyspace *fresh, *ks;
    struct inject *inject;
    const struct slot_set *slots;
    struct sweep sweep;
    uint64_t cursor;  /* in fresh */
    bool scanned;     /* all of `fresh` was scanned */
    struct buf found; /* keys of a slice */
    size_t at;        /* in found */
    /* The filter that is sent in pieces now. Its name is in `found`. */
    bool in_pieces;
    struct key large;
    uint64_t offset;              /* in the filter's stream */
    struct buf payload, commands; /* scratch */
    uint64_t keys, bytes;
    char *reason; /* where to say why a step failed */
    size_t reason_size;
};

struct adoption *
adoption_new(struct keyspace *fresh, struct keyspace *ks, struct inject *inject,
             const struct slot_set *slots)
{
    struct adoption *adoption = mem_zalloc(sizeof(*adoption));

    adoption->fresh = fresh;
    adoption->ks = ks;
    adoption->inject = inject;
    adoption->slots = slots;
    adoption->sweep = (struct sweep){
        .inject = inject, .ks = ks, .slots = slots, .keep = fresh
    };
    return adoption;
}

void
adoption_free(struct adoption *adoption)
{
    if (adoption == NULL) {
        return;
    }
    sweep_fini(&adoption->sweep);
    buf_free(&adoption->found);
    buf_free(&adoption->payload);
    buf_free(&adoption->commands);
    keyspace_discard(adoption->ks, adoption->fresh);
    mem_free(adoption);
}

uint64_t
adoption_keys(const struct adoption *adoption)
{
    return adoption->keys;
}

uint64_t
adoption_bytes(const struct adoption *adoption)
{
    return adoption->bytes;
}

/* ---- commands ------------------------------------------------------------ */

static bool
no_memory(struct adoption *adoption, const char *what)
{
    (void)snprintf(adoption->reason, adoption->reason_size,
                   "there is no memory for %s", what);
    return false;
}

static bool
run_command(struct adoption *adoption, const struct key *key,
            const struct slice *argv, size_t argc)
{
    buf_reset(&adoption->commands, KEPT_BYTES);
    compose_command(&adoption->commands, argv, argc);
    if (adoption->commands.failed) {
        return no_memory(adoption, "a filter on its way into the log");
    }
    inject_select(adoption->inject, key->db);
    return inject_run(adoption->inject, buf_slice(&adoption->commands),
                      adoption->reason, adoption->reason_size);
}

static struct slice
number(uint64_t value, char *text, size_t size)
{
    (void)snprintf(text, size, "%" PRIu64, value);
    return slice_of(text);
}

static bool
restore(struct adoption *adoption, const struct key *key,
        const struct entry *entry)
{
    size_t bytes = (size_t)codec_dump_bytes(&entry->bloom);
    char expiry[24];
    char incarnation[24];
    char *to;
    struct slice argv[] = { slice_lit("RESTORE"), key->name,
                            { NULL, 0 },          { NULL, 0 },
                            slice_lit("ABSTTL"),  slice_lit("INCARNATION"),
                            { NULL, 0 } };

    buf_reset(&adoption->payload, KEPT_BYTES);
    to = buf_reserve(&adoption->payload, bytes);
    if (to == NULL) {
        return no_memory(adoption, "a filter on its way into the log");
    }
    codec_dump(&entry->bloom, entry->incarnation, to);
    argv[2] = number(keyspace_expiry(adoption->fresh, key, entry), expiry,
                     sizeof(expiry));
    argv[3] = (struct slice){ to, bytes };
    argv[6] = number(entry->incarnation, incarnation, sizeof(incarnation));
    adoption->bytes += bytes;
    return run_command(adoption, key, argv, 7);
}

/* ---- in pieces ----------------------------------------------------------- */

static bool
goes_in_pieces(const struct bloom *bloom)
{
    return codec_dump_bytes(bloom) > WHOLE_BYTES &&
           !bloom_is_incomplete(bloom) && bloom_kind(bloom) != BLOOM_AGEING;
}

/* Creates the filter, without the bytes of its layers. */
static bool
begin_pieces(struct adoption *adoption, const struct key *key,
             const struct entry *entry)
{
    const struct slice delete[] = { slice_lit("DEL"), key->name };
    char incarnation[24];
    char *to;
    struct slice argv[] = {
        slice_lit("BF.LOADCHUNK"), key->name,  slice_lit("1"), { NULL, 0 },
        slice_lit("INCARNATION"),  { NULL, 0 }
    };

    buf_reset(&adoption->payload, KEPT_BYTES);
    to = buf_reserve(&adoption->payload, payload_header_bytes(&entry->bloom));
    if (to == NULL) {
        return no_memory(adoption, "the header of a filter");
    }
    argv[3] = (struct slice){ to, payload_put_header(&entry->bloom, to) };
    argv[5] = number(entry->incarnation, incarnation, sizeof(incarnation));
    adoption->large = *key;
    adoption->in_pieces = true;
    adoption->offset = 0;
    return run_command(adoption, key, delete, 2) &&
           run_command(adoption, key, argv, 6);
}

static bool
put_piece(struct adoption *adoption, const struct entry *entry)
{
    uint64_t left = stream_left(&entry->bloom, adoption->offset);
    size_t bytes = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    char iterator[24];
    struct slice argv[] = { slice_lit("BF.LOADCHUNK"),
                            adoption->large.name,
                            { NULL, 0 },
                            { NULL, 0 } };
    char *to;

    buf_reset(&adoption->payload, KEPT_BYTES);
    to = buf_reserve(&adoption->payload, bytes);
    if (to == NULL) {
        return no_memory(adoption, "a piece of a filter");
    }
    stream_read(&entry->bloom, adoption->offset, bytes, to);
    adoption->offset += bytes;
    adoption->bytes += bytes;
    argv[2] = number(adoption->offset + 1, iterator, sizeof(iterator));
    argv[3] = (struct slice){ to, bytes };
    return run_command(adoption, &adoption->large, argv, 4);
}

static bool
end_pieces(struct adoption *adoption, const struct entry *entry)
{
    const struct key *key = &adoption->large;
    uint64_t expires_at_ms = keyspace_expiry(adoption->fresh, key, entry);
    char expiry[24];
    struct slice argv[] = { slice_lit("PEXPIREAT"), key->name, { NULL, 0 } };

    adoption->in_pieces = false;
    argv[2] = number(expires_at_ms, expiry, sizeof(expiry));
    return expires_at_ms == 0 || run_command(adoption, key, argv, 3);
}

/* ---- keys ---------------------------------------------------------------- */

static void
leave(struct adoption *adoption, const struct key *key)
{
    (void)keyspace_delete(adoption->fresh, key, 0);
    adoption->keys++;
}

static bool
go_on_large(struct adoption *adoption)
{
    const struct key *key = &adoption->large;
    const struct entry *entry = keyspace_find(adoption->fresh, key, 0);

    CHECK(entry != NULL);
    if (stream_left(&entry->bloom, adoption->offset) > 0) {
        return put_piece(adoption, entry);
    }
    if (!end_pieces(adoption, entry)) {
        return false;
    }
    leave(adoption, key);
    return true;
}

static bool
adopt(struct adoption *adoption, const struct key *key)
{
    const struct entry *entry = keyspace_find(adoption->fresh, key, 0);

    if (entry == NULL) {
        return true; /* the scan named the key twice */
    }
    if (goes_in_pieces(&entry->bloom)) {
        return begin_pieces(adoption, key, entry);
    }
    if (!restore(adoption, key, entry)) {
        return false;
    }
    leave(adoption, key);
    return true;
}

static void
note_key(void *ctx, const struct key *key, uint64_t expires_at_ms)
{
    struct adoption *adoption = ctx;

    (void)expires_at_ms;
    sweep_note(&adoption->found, key);
}

/* Fills the list with the keys of the next slice. */
static bool
scan(struct adoption *adoption)
{
    struct gate *gate = keyspace_gate(adoption->fresh);

    buf_reset(&adoption->found, KEPT_BYTES);
    adoption->at = 0;
    gate_enter(gate, 0);
    adoption->cursor = slot_keys_scan(adoption->fresh, 0, adoption->slots,
                                      adoption->cursor, note_key, adoption);
    gate_leave(gate, 0);
    adoption->scanned = adoption->cursor == 0;
    return !adoption->found.failed ||
           no_memory(adoption, "the names of the keys that have come");
}

/* Takes the next step; *ret_done: there is no further one. False: it failed. */
static bool
step(struct adoption *adoption, bool *ret_done)
{
    struct key key;

    if (!adoption->sweep.done) {
        return sweep_step(&adoption->sweep, adoption->reason,
                          adoption->reason_size);
    }
    if (adoption->in_pieces) {
        return go_on_large(adoption);
    }
    if (sweep_next(&adoption->found, &adoption->at, &key)) {
        return adopt(adoption, &key);
    }
    *ret_done = adoption->scanned;
    return adoption->scanned || scan(adoption);
}

enum adoption_state
adoption_step(struct adoption *adoption, uint64_t budget_ns, char *ret_reason,
              size_t reason_size)
{
    uint64_t begun_ns = clock_mono_ns();
    bool done = false;

    adoption->reason = ret_reason;
    adoption->reason_size = reason_size;
    do {
        if (!step(adoption, &done)) {
            return ADOPTION_FAILED;
        }
    } while (!done && clock_mono_ns() - begun_ns < budget_ns);
    return done ? ADOPTION_DONE : ADOPTION_RUNS;
}
