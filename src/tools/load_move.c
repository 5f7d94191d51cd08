/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/load_move.h"

#include "base/clock.h"
#include "tools/load_move_state.h"
#include "tools/load_report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

enum {
    LOOK_MS = 100,
    NEAR_BYTES = 256 << 10, /* of the source's log left */
    RETRY_MS = 1000,
    UNDO_S = 30, /* until the copy is thrown away */
    LINE_MAX_BYTES = 256
};

#define MS UINT64_C(1000000)

static volatile sig_atomic_t signals;

/* ---- waiting ------------------------------------------------------------- */

static void
on_signal(int number)
{
    (void)number;
    signals = signals + 1;
}

bool
move_is_interrupted(void)
{
    return signals > 0;
}

uint64_t
move_deadline(uint64_t seconds)
{
    return clock_mono_ns() + seconds * 1000 * MS;
}

/* After a signal it waits all the same: undoing takes time, too. */
bool
move_pause(unsigned ms, uint64_t deadline_ns)
{
    const struct timespec time = { .tv_sec = ms / 1000,
                                   .tv_nsec = (long)(ms % 1000) * (long)MS };

    (void)nanosleep(&time, NULL);
    return signals == 0 && clock_mono_ns() < deadline_ns;
}

static uint64_t
ms_since(uint64_t begun_ns)
{
    return (clock_mono_ns() - begun_ns) / MS;
}

/* Prints that a step has taken too long, unless a signal ended it. */
static bool
fail_late(struct move *move, const char *what, const char *option,
          uint64_t seconds)
{
    if (!move_is_interrupted()) {
        tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                      "%s within %s (%" PRIu64 " s)", what, option, seconds);
    }
    return false;
}

/* ---- the copy ------------------------------------------------------------ */

static void
write_ranges(struct move *move, const struct slot_set *set)
{
    buf_reset(&move->ranges, 4096);
    for (unsigned at = 0, first, last;
         slot_set_next(set, &at, &first, &last);) {
        buf_printf(&move->ranges, first == last ? "%s%u" : "%s%u-%u",
                   move->ranges.len > 0 ? "," : "", first, last);
    }
    CHECK(!move->ranges.failed);
}

/* Gives an order about the batch to the server of TO. */
static bool
order(struct move *move, const char *what, const char *id)
{
    const struct slice words[] = { slice_lit("SIDECAR"), slice_of(what),
                                   buf_slice(&move->ranges),
                                   slice_of(id != NULL ? id : "") };

    return load_place_tell(&move->server[MOVE_TO], words, id != NULL ? 4 : 3);
}

static bool
ask_status(struct move *move, struct slice *ret_text)
{
    struct slice reply;

    if (!load_place_ask(&move->server[MOVE_TO], &reply, "SIDECAR", "STATUS",
                        NULL)) {
        return false;
    }
    *ret_text = load_reply_text(reply);
    return true;
}

static bool
prepare(struct move *move, uint64_t *ret_failed)
{
    struct slice status;

    if (!ask_status(move, &status)) {
        return false;
    }
    *ret_failed = load_place_number(status, "slot_pulls_failed:");
    move->prepared = true;
    return order(move, "PREPARE", move->id[MOVE_FROM]);
}

static void
show_copy(struct move *move, struct slice pull)
{
    char text[LINE_MAX_BYTES];
    struct slice state = load_place_field(pull, "state=");
    struct slice reason = load_place_field(pull, "reason=");

    (void)snprintf(
        text, sizeof(text), "%.*s: %" PRIu64 " keys, %" PRIu64 " bytes%s%.*s",
        slice_shown(state), state.data, load_place_number(pull, "keys="),
        load_place_number(pull, "bytes="), reason.len > 2 ? " " : "",
        reason.len > 2 ? slice_shown(reason) : 0, reason.data);
    tool_bar_say(&move->load->tool, text);
}

/* Whether the copy has nearly everything, or has failed. */
enum copy { COPY_RUNS, COPY_NEAR, COPY_HELD, COPY_FAILED };

static enum copy
look_at_copy(struct move *move, uint64_t failed)
{
    struct slice status;
    struct slice pull;
    struct slice why;

    if (!ask_status(move, &status)) {
        return COPY_FAILED;
    }
    pull = load_place_field(status, "slot_pulls:");
    if (load_place_number(status, "slot_pulls:") > 0) {
        struct slice line = { pull.data,
                              (size_t)(status.data + status.len - pull.data) };

        show_copy(move, line);
        move->keys = load_place_number(line, "keys=");
        move->bytes = load_place_number(line, "bytes=");
        return slice_equal(load_place_field(line, "state="),
                           slice_lit("follows")) &&
                       load_place_number(line, "lag_bytes=") < NEAR_BYTES
                   ? COPY_NEAR
                   : COPY_RUNS;
    }
    if (load_place_number(status, "slot_pulls_failed:") == failed) {
        return COPY_RUNS; /* the order waits */
    }
    why = load_place_field(status, "slot_last_failure:");
    if (why.len > 5 && memmem(why.data, why.len, "still held", 10) != NULL) {
        return COPY_HELD;
    }
    tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                  "%s: gave the copy up: %.*s", move->server[MOVE_TO].address,
                  slice_shown(why), why.data);
    return COPY_FAILED;
}

/* Has the server of TO copy the batch until it follows. Slots that it gave away
 * a moment ago are asked for again. */
static bool
copy(struct move *move)
{
    uint64_t seconds = move->load->copy_timeout_s;
    uint64_t deadline_ns = move_deadline(seconds);
    uint64_t begun_ns = clock_mono_ns();
    uint64_t failed;

    if (!prepare(move, &failed) || !move_check(move, true)) {
        return false;
    }
    do {
        switch (look_at_copy(move, failed)) {
        case COPY_NEAR:
            move->copy_ms = ms_since(begun_ns);
            return true;
        case COPY_FAILED:
            return false;
        case COPY_HELD:
            (void)move_pause(RETRY_MS, deadline_ns);
            if (!prepare(move, &failed)) {
                return false;
            }
            break;
        case COPY_RUNS:
            break;
        }
    } while (move_pause(LOOK_MS, deadline_ns));
    return fail_late(move, "the slots were not copied", "--copy-timeout",
                     seconds);
}

/* Throws the copy away. What TO owns stays. */
static bool
abandon(struct move *move)
{
    uint64_t deadline_ns = move_deadline(UNDO_S);
    struct load_place *server = &move->server[MOVE_TO];
    struct topology *view = NULL;
    struct slot_set left = move->batch;
    struct slot_set owned;

    server->peer.quiet = true; /* it may just be starting again */
    while (!load_place_open(server) && clock_mono_ns() < deadline_ns) {
        (void)move_pause(RETRY_MS, deadline_ns);
    }
    server->peer.quiet = false;
    if (!load_place_view(server, &view)) {
        return false;
    }
    topology_slots_of(view, view->myself, &owned);
    topology_free(view);
    slot_set_subtract(&left, &owned);
    write_ranges(move, &left);
    return slot_set_is_empty(&left) || order(move, "ABANDON", NULL);
}

/* ---- the end of a batch -------------------------------------------------- */

/* Whether the server of TO serves the batch. */
static bool
serves(struct move *move, bool *ret_serves)
{
    struct load_place *server = &move->server[MOVE_TO];
    struct topology *view = NULL;
    struct slot_set left = move->batch;
    struct slot_set owned;
    struct slice reply;
    struct slice text;

    if (!load_place_view(server, &view)) {
        return false;
    }
    topology_slots_of(view, view->myself, &owned);
    topology_free(view);
    slot_set_subtract(&left, &owned);
    if (!load_place_ask(server, &reply, "INFO", "cluster", NULL)) {
        return false;
    }
    text = load_reply_text(reply);
    move->cutover_ms = load_place_number(text, "cluster_last_cutover_ms:");
    *ret_serves = slot_set_is_empty(&left) &&
                  load_place_number(text, "cluster_slots_held:") == 0 &&
                  load_place_number(text, "cluster_slots_pulled:") == 0;
    return true;
}

static bool
wait_served(struct move *move)
{
    uint64_t seconds = move->load->serve_timeout_s;
    uint64_t deadline_ns = move_deadline(seconds);
    bool served = false;

    do {
        if (!serves(move, &served)) {
            return false;
        }
        if (served) {
            return true;
        }
    } while (move_pause(LOOK_MS / 4, deadline_ns));
    return fail_late(move, "the server of TO does not serve the slots",
                     "--serve-timeout", seconds);
}

static bool
move_batch(struct move *move)
{
    uint64_t begun_ns;
    bool moved;

    move->prepared = move->shifts = false;
    move->marked = -1;
    write_ranges(move, &move->batch);
    if (!move_check(move, false)) {
        return false;
    }
    if (!copy(move)) {
        return false;
    }
    begun_ns = clock_mono_ns();
    moved = move_shift(move) && wait_served(move);
    move->shift_ms = ms_since(begun_ns);
    return moved;
}

/* Undoes what is possible, and says what the state is. */
static void
undo(struct move *move)
{
    struct tool *tool = &move->load->tool;
    struct slot_set owned;
    struct slot_set left = move->batch;
    bool clean;

    if (!move->prepared) {
        tool_complain(tool, LOAD_INCOMPLETE, "nothing was moved");
        return;
    }
    signals = 0; /* a second one ends the waiting here */
    clean = move_unshift(move);
    clean = abandon(move) && clean;
    if (!move_owned(move, &owned)) {
        tool_complain(tool, LOAD_INCOMPLETE,
                      "it is not known who owns the slots now: see CLUSTER "
                      "NODES at both nodes");
        return;
    }
    slot_set_subtract(&left, &owned);
    tool_complain(tool, LOAD_INCOMPLETE,
                  "of the last %u slots FROM still owns %u, and TO owns %u%s",
                  slot_set_count(&move->batch), slot_set_count(&left),
                  slot_set_count(&owned),
                  clean ? "; the copy of the others is thrown away"
                        : "; not everything could be undone: see CLUSTER NODES "
                          "at both nodes, and SIDECAR STATUS at TO's server");
}

/* ---- all batches --------------------------------------------------------- */

/* Takes the next slots out of `left`. */
static void
take_batch(struct move *move, struct slot_set *left)
{
    uint64_t count = 0;

    memset(&move->batch, 0, sizeof(move->batch));
    for (unsigned slot = 0;
         slot < CLUSTER_SLOTS && count < move->load->batch_slots; slot++) {
        if (slot_set_has(left, slot)) {
            slot_set_add(&move->batch, slot);
            count++;
        }
    }
    slot_set_subtract(left, &move->batch);
}

static void
report(const struct move *move)
{
    printf("slots %.*s: %" PRIu64 " keys and %" PRIu64
           " bytes copied in %" PRIu64 " ms, moved in %" PRIu64
           " ms, clients waited %" PRIu64 " ms\n",
           (int)move->ranges.len, move->ranges.data, move->keys, move->bytes,
           move->copy_ms, move->shift_ms, move->cutover_ms);
    (void)fflush(stdout);
}

static void
move_all(struct move *move)
{
    struct slot_set left = move->slots;
    unsigned done = 0;

    while (!slot_set_is_empty(&left)) {
        take_batch(move, &left);
        if (move_is_interrupted() || !move_batch(move)) {
            if (move_is_interrupted()) {
                tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                              "stopped by a signal");
            }
            undo(move);
            break;
        }
        tool_bar_hide(&move->load->tool);
        report(move);
        done += slot_set_count(&move->batch);
    }
    if (move->load->tool.status != 0) {
        tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                      "%u of %u slots were moved before", done,
                      slot_set_count(&move->slots));
    }
}

static void
tell_plan(const struct move *move)
{
    unsigned count = slot_set_count(&move->slots);

    printf("%u slots would move from %s (%s) to %s (%s), %u at a time, by %s\n",
           count, move->node[MOVE_FROM].address,
           move->server[MOVE_FROM].address, move->node[MOVE_TO].address,
           move->server[MOVE_TO].address, (unsigned)move->load->batch_slots,
           move->atomic ? "CLUSTER MIGRATESLOTS"
                        : "CLUSTER SETSLOT and MIGRATE");
}

static void
close_all(struct move *move)
{
    for (int end = 0; end < MOVE_ENDS; end++) {
        load_place_close(&move->node[end]);
        load_place_close(&move->server[end]);
    }
    topology_free(move->nodes);
    topology_free(move->servers);
    buf_free(&move->ranges);
}

void
load_move(struct load *load, const char *slots, const char *from,
          const char *to)
{
    const struct sigaction action = { .sa_handler = on_signal };
    struct move move = { .load = load, .marked = -1 };

    if (!slot_set_parse(slice_of(slots), &move.slots) ||
        slot_set_is_empty(&move.slots)) {
        tool_complain(&load->tool, LOAD_USAGE,
                      "'%s': slots are numbers below 16384 and ranges of them, "
                      "such as 0-5460,9000",
                      slots);
        return;
    }
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    move.batch = move.slots;
    if (!move_find(&move, from, to)) {
        close_all(&move);
        return;
    }
    if (load->dry_run) {
        if (move_check(&move, false)) {
            tell_plan(&move);
        }
    } else {
        move_all(&move);
    }
    close_all(&move);
}
