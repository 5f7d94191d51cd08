/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hooks count; the tap keeps the stream.
 */
#include "persist_rig.h"

#include "persist/ending.h"
#include "snapshot/completion.h"

#include <fcntl.h>

static void
prig_poke(void *ctx)
{
    atomic_fetch_add(&((struct prig *)ctx)->pokes, 1);
}

static void
prig_moved(void *ctx)
{
    atomic_fetch_add(&((struct prig *)ctx)->moves, 1);
}

static void
prig_journaling(void *ctx, struct journal *journal)
{
    ((struct prig *)ctx)->journal = journal;
}

static void
prig_refusal(void *ctx, enum err writes, enum err ping)
{
    struct prig *rig = ctx;

    rig->writes = writes;
    rig->ping = ping;
    rig->outcome = persist_outcome(rig->persist, PERSIST_SAVE, rig->watched);
}

static void
prig_reloaded(void *ctx)
{
    ((struct prig *)ctx)->reloads++;
}

static void
prig_tapped(void *ctx)
{
    atomic_fetch_add(&((struct prig *)ctx)->taps, 1);
}

static void
prig_sync_began(void *ctx, int fd, int error, uint64_t position,
                uint64_t sequence)
{
    struct prig *rig = ctx;

    assert_int_equal(rig->syncs_begun, rig->syncs_ended);
    rig->sync_fd = fd;
    rig->sync_error = error;
    rig->sync_position = position;
    rig->sync_sequence = sequence;
    rig->syncs_begun += fd >= 0;
}

static void
prig_parks(void *ctx, enum persist_parks parks)
{
    struct prig *rig = ctx;

    assert_true(gate_is_mine(keyspace_gate(rig->ks), 0));
    assert_int_not_equal(rig->parks, parks);
    rig->parks = parks;
}

static void
prig_sync_reached(void *ctx, uint64_t position, uint64_t sequence)
{
    struct prig *rig = ctx;

    assert_true(position >= rig->sync_position);
    rig->sync_position = position;
    rig->sync_sequence = sequence;
}

static void
prig_sync_ended(void *ctx, int error)
{
    struct prig *rig = ctx;

    rig->syncs_ended++;
    assert_int_equal(rig->syncs_begun, rig->syncs_ended);
    gate_enter(keyspace_gate(rig->ks), 0); /* as the server does: it is down */
    gate_leave(keyspace_gate(rig->ks), 0);
    rig->sync_error = error;
    if (error != 0) { /* the walk may wait for the pipe */
        close(rig->sync_fd);
        rig->sync_fd = -1;
    }
}

/* ---- the tap ------------------------------------------------------------- */

static void
prig_tape_begin(void *ctx, uint64_t position, uint64_t sequence)
{
    struct prig *rig = ctx;

    rig->taped.len = 0;
    rig->tape_begin = position;
    rig->tape_begin_sequence = rig->tape_sequence = sequence;
}

static void
prig_tape_text(void *ctx, struct slice bytes)
{
    buf_append_slice(&((struct prig *)ctx)->taped, bytes);
}

static void
prig_tape_close(void *ctx, uint64_t sequence, const char *seal)
{
    static const char none[GROUP_SEAL_BYTES];
    struct prig *rig = ctx;

    assert_int_equal(sequence, rig->tape_sequence + 1);
    rig->tape_sequence = sequence;
    buf_append(&rig->taped, seal != NULL ? seal : none, GROUP_SEAL_BYTES);
}

void
prig_tap(struct prig *rig, bool on)
{
    struct journal_tap tap = { prig_tape_begin, prig_tape_text, prig_tape_close,
                               rig };

    persist_set_tap(rig->persist, on ? &tap : NULL);
    assert_int_equal(persist_is_tapped(rig->persist), on);
}

bool
prig_taped(const struct prig *rig, const char *text)
{
    return rig->taped.len > 0 &&
           memmem(rig->taped.data, rig->taped.len, text, strlen(text)) != NULL;
}

/* ---- options ------------------------------------------------------------- */

void
prig_set(struct prig *rig, const char *name, const char *value)
{
    struct conf_error error;
    const struct conf_row *row = conf_find(slice_of(name));

    assert_non_null(row);
    if (!conf_set(&rig->conf, row, slice_of(value), &error)) {
        fail_msg("%s: %s", name, error.text);
    }
    if (rig->persist != NULL) {
        persist_apply_conf(rig->persist);
    }
}

void
prig_create(struct prig *rig, struct slice name)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .capacity = 100,
                                   .error_rate = 0.01,
                                   .tightening = 0.5,
                                   .expansion = 2 };
    struct key key = key_named(name, 0);
    struct bloom *bloom;
    struct entry *entry;

    if (keyspace_find(rig->ks, &key, 0) == NULL) {
        assert_int_equal(bloom_new(&params, &rig->env, &bloom), BLOOM_OK);
        assert_int_equal(keyspace_insert(rig->ks, &key, bloom, 1, &entry), OK);
    }
}

bool
prig_has(const struct prig *rig, unsigned number)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "w%u", number);
    struct slice name = { text, (size_t)len };
    struct key key = key_named(name, 0);

    return keyspace_find(rig->ks, &key, 0) != NULL;
}

/* A walk may be under way. */
static void
enter(const struct prig *rig, struct slice name, unsigned *ret_stripe)
{
    *ret_stripe = keyspace_stripe_of(hash_name(name));
    gate_enter(keyspace_gate(rig->ks), 0);
    keyspace_lock(rig->ks, 0, *ret_stripe, true);
}

static void
leave(const struct prig *rig, unsigned stripe)
{
    keyspace_unlock(rig->ks, 0, stripe);
    gate_leave(keyspace_gate(rig->ks), 0);
}

uint64_t
prig_write(struct prig *rig)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "w%u", rig->written++);
    struct slice argv[2] = { slice_lit("NEW"), { text, (size_t)len } };
    uint64_t position = 0;
    unsigned stripe;

    if (rig->journal != NULL &&
        !stage_open(&rig->stage, stage_effect_bytes(argv, 2))) {
        rig->written--; /* refused without memory, nothing happened */
        return 0;
    }
    enter(rig, argv[1], &stripe);
    prig_create(rig, argv[1]);
    metric_add(METRIC_CHANGES, 1);
    if (rig->journal != NULL) {
        stage_add(&rig->stage, 0, argv, 2);
        position =
            journal_append(rig->journal, stage_close(&rig->stage, false));
        keyspace_set_position(rig->ks, stripe, position);
        journal_kick(rig->journal);
    }
    leave(rig, stripe);
    return position;
}

static bool
prig_replay(void *ctx, struct slice commands, char *ret_reason, size_t size)
{
    static const struct parse_limits limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                false };
    struct prig *rig = ctx;
    struct batch batch = { 0 };
    size_t at = 0;

    (void)ret_reason;
    (void)size;
    while (at < commands.len) {
        batch_clear(&batch);
        assert_int_equal(scan_commands(commands, &limits, &batch, &at), OK);
        for (uint32_t i = 0; i < batch.count; i++) {
            const struct slice *argv = &batch.argv[batch.command[i].first];

            if (slice_equal(argv[0], slice_lit("NEW"))) {
                prig_create(rig, argv[1]);
            } else if (slice_equal(argv[0], slice_lit("REPLCONF"))) {
                persist_note_history(rig->persist, argv[2]);
            }
        }
    }
    batch_fini(&batch);
    return true;
}

/* Effects of a full state are the same commands. There is no other rig. */
static struct prig *completing;

static void *
prig_complete_open(const struct walk_part *part)
{
    (void)part;
    return completing;
}

static bool
prig_complete(void *state, struct keyspace *ks,
              const struct snapshot_effects *effects, char *ret_reason,
              size_t size)
{
    struct prig *rig = state;
    struct keyspace *present = rig->ks;
    bool good;

    rig->ks = ks;
    good = prig_replay(rig, effects->commands, ret_reason, size);
    rig->ks = present;
    return good;
}

static uint64_t
prig_left_out(const void *state)
{
    (void)state;
    return 0;
}

static void
prig_complete_close(void *state)
{
    (void)state;
}

static const struct completion prig_completion = {
    .open = prig_complete_open,
    .group = prig_complete,
    .left_out = prig_left_out,
    .close = prig_complete_close,
};

bool
prig_open(struct prig *rig)
{
    completing = rig;
    rig->ks = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = 16 });
    rig->journal = NULL;
    rig->taped.len = 0;
    rig->syncs_begun = rig->syncs_ended = 0;
    rig->sync_fd = -1;
    rig->writes = rig->ping = OK;
    rig->parks = PARKS_NOTHING;
    rig->persist = persist_new(&(struct persist_options){
        .conf = &rig->conf,
        .keyspace = rig->ks,
        .run_id = "0123456789012345678901234567890123456789",
        .completion = &prig_completion,
        .hooks = { .poke = prig_poke,
                   .moved = prig_moved,
                   .journaling = prig_journaling,
                   .refusal = prig_refusal,
                   .parks = prig_parks,
                   .reloaded = prig_reloaded,
                   .tapped = prig_tapped,
                   .ctx = rig },
        .sync = { .began = prig_sync_began,
                  .reached = prig_sync_reached,
                  .ended = prig_sync_ended,
                  .ctx = rig } });
    persist_apply_conf(rig->persist);
    return persist_open(rig->persist);
}

bool
prig_load(struct prig *rig)
{
    struct recover_replay replay = { prig_replay, rig };

    return persist_load(rig->persist, &replay) && persist_begin(rig->persist);
}

void
prig_close(struct prig *rig)
{
    persist_free(rig->persist);
    keyspace_free(rig->ks);
    stage_fini(&rig->stage);
    rig->stage = (struct stage){ 0 };
    rig->persist = NULL;
    rig->journal = NULL;
}

struct prig *
prig_new(const char *appendonly, const char *appendfsync)
{
    struct prig *rig = mem_zalloc(sizeof(*rig));

    strcpy(rig->dir, "/tmp/bloomery-persist-XXXXXX");
    home_make(rig->dir);
    log_set_level((enum log_level)CONF_LOG_NOTHING);
    conf_init(&rig->conf);
    rig->env = keyspace_env(&rig->memory, UINT64_MAX);
    prig_set(rig, "dir", rig->dir);
    prig_set(rig, "save", "");
    prig_set(rig, "appendonly", appendonly);
    prig_set(rig, "appendfsync", appendfsync);
    return rig;
}

struct prig *
prig_start(const char *appendonly, const char *appendfsync)
{
    struct prig *rig = prig_new(appendonly, appendfsync);

    assert_true(prig_open(rig));
    assert_true(prig_load(rig));
    return rig;
}

void
prig_free(struct prig *rig)
{
    if (rig->persist != NULL) {
        prig_close(rig);
    }
    conf_fini(&rig->conf);
    buf_free(&rig->taped);
    buf_free(&rig->coming);
    home_remove(rig->dir);
    mem_free(rig);
}

bool
prig_stop(struct prig *rig, const struct persist_end *end)
{
    bool ended = false;

    persist_end(rig->persist, end);
    PRIG_WAIT(rig, persist_ending(rig->persist) != PERSIST_ENDS);
    if (persist_ending(rig->persist) == PERSIST_ENDED) {
        gate_raise(keyspace_gate(rig->ks), 0);
        ended = persist_end_settle(rig->persist);
        gate_lower(keyspace_gate(rig->ks), 0);
        assert_true(ended);
    } else {
        persist_end_abort(rig->persist);
    }
    return ended;
}

void
prig_restart(struct prig *rig)
{
    prig_close(rig);
    assert_true(prig_open(rig));
    assert_true(prig_load(rig));
}

struct journal_status
prig_status(const struct prig *rig)
{
    struct journal_status status;

    journal_get_status(rig->persist->journal, &status);
    return status;
}

struct persist_info
prig_info(const struct prig *rig)
{
    struct persist_info info;

    persist_get_info(rig->persist, &info);
    return info;
}

uint64_t
prig_write_released(struct prig *rig)
{
    uint64_t position = prig_write(rig);

    PRIG_WAIT(rig, prig_released(rig) >= position);
    return position;
}

uint64_t
prig_released(const struct prig *rig)
{
    return atomic_load(journal_released(rig->persist->journal));
}

bool
prig_exists(const struct prig *rig, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    return access(path, F_OK) == 0;
}

void
prig_check_all(const struct prig *rig)
{
    for (unsigned i = 0; i < rig->written; i++) {
        if (!prig_has(rig, i)) {
            fail_msg("w%u is lost", i);
        }
    }
}

void
prig_restart_all(struct prig *rig)
{
    prig_restart(rig);
    prig_check_all(rig);
}

void
prig_save(struct prig *rig)
{
    uint64_t ticket = persist_ask(rig->persist, PERSIST_SAVE);

    PRIG_WAIT(rig, persist_outcome(rig->persist, PERSIST_SAVE, ticket) ==
                       PERSIST_DONE);
}

/* ---- replication --------------------------------------------------------- */

void
prig_place(struct prig *rig, uint64_t *ret_position, uint64_t *ret_sequence)
{
    gate_raise(keyspace_gate(rig->ks), 0);
    persist_place(rig->persist, ret_position, ret_sequence);
    gate_lower(keyspace_gate(rig->ks), 0);
}

uint64_t
prig_position(struct prig *rig)
{
    uint64_t position;
    uint64_t sequence;

    prig_place(rig, &position, &sequence);
    return position;
}

void
prig_renew(struct prig *rig)
{
    gate_raise(keyspace_gate(rig->ks), 0);
    persist_renew_history(rig->persist);
    gate_lower(keyspace_gate(rig->ks), 0);
}

struct history
prig_history(const struct prig *rig)
{
    return *persist_history(rig->persist);
}

bool
prig_has_stored(const struct prig *rig, struct slice id, uint64_t position)
{
    uint64_t stored;

    return history_covers(&rig->persist->log.history, id, position) &&
           persist_stored(rig->persist, &stored) && stored >= position;
}

static const char prig_seal[GROUP_SEAL_BYTES + 1] =
    "a seal that nobody looks at ......................................"
    ".....................................\n";

uint64_t
prig_relay_history(struct prig *rig, const char *id)
{
    char text[128];
    uint64_t position;
    uint64_t sequence;
    struct slice commands = { text, 0 };

    commands.len = (size_t)snprintf(
        text, sizeof(text),
        "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$8\r\nREPLCONF\r\n"
        "$7\r\nHISTORY\r\n$40\r\n%s\r\n",
        id);
    prig_place(rig, &position, &sequence);
    gate_raise(keyspace_gate(rig->ks), 0);
    persist_note_history(rig->persist, slice_of(id));
    gate_lower(keyspace_gate(rig->ks), 0);
    return journal_relay(rig->persist->journal, commands, sequence + 1,
                         prig_seal);
}

uint64_t
prig_relay(struct prig *rig)
{
    char name[24];
    char text[128];
    uint64_t position;
    uint64_t sequence;
    int len = snprintf(name, sizeof(name), "w%u", rig->written++);
    struct slice commands = { text, 0 };

    commands.len = (size_t)snprintf(
        text, sizeof(text),
        "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*2\r\n$3\r\nNEW\r\n$%d\r\n%s\r\n",
        len, name);
    prig_create(rig, (struct slice){ name, (size_t)len });
    metric_add(METRIC_CHANGES, 1);
    prig_place(rig, &position, &sequence);
    return journal_relay(rig->persist->journal, commands, sequence + 1,
                         prig_seal);
}

static void
make_arrival(struct prig *rig, unsigned first, unsigned count)
{
    struct keyspace *present = rig->ks;

    rig->arrival.fresh = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = 16 });
    rig->ks = rig->arrival.fresh;
    for (unsigned i = first; i < first + count; i++) {
        char text[24];
        int len = snprintf(text, sizeof(text), "w%u", i);

        prig_create(rig, (struct slice){ text, (size_t)len });
    }
    rig->ks = present;
    rig->written = first + count;
}

void
prig_take(struct prig *rig)
{
    gate_raise(keyspace_gate(rig->ks), 0);
    persist_adopt(rig->persist, &rig->arrival);
    gate_lower(keyspace_gate(rig->ks), 0);
    keyspace_free(rig->arrival.fresh);
    rig->arrival.fresh = NULL;
}

void
prig_adopt(struct prig *rig, unsigned first, unsigned count, const char *id,
           uint64_t position)
{
    rig->arrival = (struct persist_arrival){ .history = id,
                                             .position = position,
                                             .sequence = 7 };
    make_arrival(rig, first, count);
    prig_take(rig);
}

/* Writes the snapshot of the data that comes, and reads it into memory. */
static void
read_coming(struct prig *rig)
{
    struct walker *walker =
        walker_new(rig->arrival.fresh, NULL, prig_poke, rig);
    struct walker_job job = { .still = true };
    struct snapshot_stamp *begin = &job.begin;
    uint64_t bytes;
    size_t got;
    int fd = -1;

    job.dir_fd = open("/tmp", O_RDONLY | O_DIRECTORY);
    *begin = (struct snapshot_stamp){
        .position = rig->arrival.position,
        .sequence = rig->arrival.sequence,
        .keys = keyspace_count_keys(rig->arrival.fresh),
    };
    (void)snprintf(begin->history, sizeof(begin->history), "%s",
                   rig->arrival.history);
    (void)snprintf(rig->coming_name, sizeof(rig->coming_name), "%s.coming",
                   rig->dir + strlen("/tmp/"));
    job.name = rig->coming_name;
    gate_raise(keyspace_gate(rig->arrival.fresh), 0);
    assert_int_equal(walker_write_here(walker, &job), 0);
    gate_lower(keyspace_gate(rig->arrival.fresh), 0);
    assert_int_equal(file_open(job.dir_fd, job.name, &fd), 0);
    assert_int_equal(file_size(fd, &bytes), 0);
    rig->coming.len = 0;
    assert_non_null(buf_reserve(&rig->coming, bytes));
    assert_int_equal(file_read_at(fd, rig->coming.data, bytes, 0, &got), 0);
    rig->coming.len = bytes;
    file_close(fd);
    assert_int_equal(file_unlink(job.dir_fd, job.name), 0);
    file_close(job.dir_fd);
    walker_free(walker);
}

void
prig_send(struct prig *rig, unsigned first, unsigned count, const char *id,
          uint64_t position)
{
    rig->arrival = (struct persist_arrival){
        .history = id, .position = position, .sequence = 7, .received = true
    };
    make_arrival(rig, first, count);
    read_coming(rig);
}

/* In pieces, as from a link. */
void
prig_receive(struct prig *rig)
{
    struct transfer_copy copy = persist_receive(rig->persist);

    if (copy.take == NULL) {
        return;
    }
    for (size_t at = 0; at < rig->coming.len; at += 1000) {
        size_t len = rig->coming.len - at < 1000 ? rig->coming.len - at : 1000;
        char *memory = mem_alloc(len);

        memcpy(memory, rig->coming.data + at, len);
        copy.take(copy.ctx, memory, (struct slice){ memory, len });
    }
    copy.end(copy.ctx, true);
    PRIG_WAIT(rig, persist_has_received(rig->persist));
}

bool
prig_has_exactly(const struct prig *rig, unsigned first, unsigned end)
{
    for (unsigned i = 0; i < rig->written; i++) {
        if (prig_has(rig, i) != (i >= first && i < end)) {
            return false;
        }
    }
    return true;
}
