/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The nodes' own ways to move slots. Valkey 9 does it by itself (CLUSTER
 * MIGRATESLOTS); what its jobs say is only asked about once a second, since a
 * node keeps a thousand of them. Earlier nodes get marks, their keys are moved
 * by MIGRATE, and then all primaries are told the new owner. Whether slots have
 * moved is read from their owners alone.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "tools/load_move_state.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    LOOK_MS = 50,
    JOBS_MS = 1000,
    AGREE_S = 10, /* until both nodes say the same */
    KEYS_MAX = 100,
    RANGES_MAX = 4096 /* of a batch */
};

/* ---- owners -------------------------------------------------------------- */

static bool
owned_by_to(struct move *move, int end, struct slot_set *ret_owned)
{
    struct topology *view = NULL;
    int to;

    if (!load_place_view(&move->node[end], &view)) {
        return false;
    }
    memset(ret_owned, 0, sizeof(*ret_owned));
    to = topology_find(view, slice_of(move->id[MOVE_TO]));
    if (to >= 0) {
        topology_slots_of(view, to, ret_owned);
    }
    slot_set_intersect(ret_owned, &move->batch);
    topology_free(view);
    return true;
}

bool
move_owned(struct move *move, struct slot_set *ret_owned)
{
    uint64_t deadline_ns = move_deadline(AGREE_S);
    struct slot_set other;

    do {
        if (!owned_by_to(move, MOVE_FROM, &other) ||
            !owned_by_to(move, MOVE_TO, ret_owned)) {
            return false;
        }
        if (slot_set_equal(ret_owned, &other)) {
            return true;
        }
    } while (move_pause(LOOK_MS, deadline_ns) || clock_mono_ns() < deadline_ns);
    tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                  "the nodes do not agree on who owns the slots");
    return false;
}

/* ---- jobs ---------------------------------------------------------------- */

static struct slice
number(unsigned value, char text[12])
{
    (void)snprintf(text, 12, "%u", value);
    return slice_of(text);
}

static bool
begin_job(struct move *move)
{
    struct slice *words = mem_zalloc(sizeof(*words) * (2 * RANGES_MAX + 8));
    char(*texts)[12] = mem_zalloc(sizeof(*texts) * 2 * RANGES_MAX);
    size_t count = 0;
    size_t used = 0;
    bool good;

    words[count++] = slice_lit("CLUSTER");
    words[count++] = slice_lit("MIGRATESLOTS");
    words[count++] = slice_lit("SLOTSRANGE");
    for (unsigned at = 0, first, last;
         slot_set_next(&move->batch, &at, &first, &last);) {
        CHECK(used + 2 <= (size_t)2 * RANGES_MAX);
        words[count++] = number(first, texts[used++]);
        words[count++] = number(last, texts[used++]);
    }
    words[count++] = slice_lit("NODE");
    words[count++] = slice_of(move->id[MOVE_TO]);
    good = load_place_tell(&move->node[MOVE_FROM], words, count);
    mem_free(texts);
    mem_free(words);
    return good;
}

/* Whether an end has a job that has not ended. False: it cannot be asked. */
static bool
has_job(struct move *move, int end, bool *ret_open)
{
    struct slice reply;

    if (!load_place_ask(&move->node[end], &reply, "CLUSTER",
                        "GETSLOTMIGRATIONS", NULL)) {
        return false;
    }
    *ret_open = move_has_open_job(reply);
    return true;
}

/* Whether neither end has one. */
static bool
has_no_job(struct move *move, bool *ret_none)
{
    bool open[MOVE_ENDS] = { false, false };

    if (!has_job(move, MOVE_FROM, &open[MOVE_FROM]) ||
        !has_job(move, MOVE_TO, &open[MOVE_TO])) {
        return false;
    }
    *ret_none = !open[MOVE_FROM] && !open[MOVE_TO];
    return true;
}

/* Prints why the last job of FROM has ended. */
static void
complain_job(struct move *move)
{
    struct slice reply;
    struct slice jobs;
    struct slice job;
    struct slice name;
    struct slice value;

    if (!load_place_ask(&move->node[MOVE_FROM], &reply, "CLUSTER",
                        "GETSLOTMIGRATIONS", NULL) ||
        !load_reply_array(reply, &jobs) || !load_reply_element(&jobs, &job) ||
        !load_reply_array(job, &jobs)) {
        return;
    }
    while (load_reply_element(&jobs, &name) &&
           load_reply_element(&jobs, &value)) {
        struct slice text = load_reply_text(value);

        if (slice_equal(load_reply_text(name), slice_lit("state")) ||
            (slice_equal(load_reply_text(name), slice_lit("message")) &&
             text.len > 0)) {
            tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                          "%s: the slot migration: %.*s",
                          move->node[MOVE_FROM].address, slice_shown(text),
                          text.data);
        }
    }
}

static bool
wait_for_job(struct move *move)
{
    uint64_t deadline_ns = move_deadline(move->load->move_timeout_s);
    uint64_t asked_ns = clock_mono_ns();
    struct slot_set owned;

    do {
        bool none = false;

        if (!owned_by_to(move, MOVE_TO, &owned)) {
            return false;
        }
        if (slot_set_equal(&owned, &move->batch)) {
            return true;
        }
        if (clock_mono_ns() - asked_ns >= (uint64_t)JOBS_MS * 1000000) {
            if (!has_no_job(move, &none)) {
                return false;
            }
            asked_ns = clock_mono_ns();
        }
        if (none) { /* a job that succeeded may have ended in between */
            if (!move_owned(move, &owned)) {
                return false;
            }
            if (!slot_set_equal(&owned, &move->batch)) {
                complain_job(move);
                return false;
            }
            return true;
        }
    } while (move_pause(LOOK_MS, deadline_ns));
    if (!move_is_interrupted()) {
        tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                      "the nodes did not move the slots within "
                      "--move-timeout (%" PRIu64 " s)",
                      move->load->move_timeout_s);
    }
    return false;
}

/* ---- marks --------------------------------------------------------------- */

static bool
set_slot(struct load_place *node, unsigned slot, const char *what,
         const char *id)
{
    char text[12];
    const struct slice words[] = { slice_lit("CLUSTER"), slice_lit("SETSLOT"),
                                   number(slot, text), slice_of(what),
                                   slice_of(id != NULL ? id : "") };

    return load_place_tell(node, words, id != NULL ? 5 : 4);
}

/* Moves the keys of a list from one node to the other. */
static bool
migrate(struct move *move, int from, struct slice keys, size_t count)
{
    const struct topology *view = move->nodes;
    int at = topology_find(view, slice_of(move->id[!from]));
    struct slice words[16 + KEYS_MAX];
    char password[LOAD_PASSWORD_MAX + 1];
    char port[12];
    char timeout[24];
    size_t used = 0;
    struct slice secret;
    bool good;

    if (!load_link_password(move->load, &move->load->node, password, &secret)) {
        return false;
    }
    (void)snprintf(timeout, sizeof(timeout), "%" PRIu64,
                   move->load->timeout_s * 1000);
    words[used++] = slice_lit("MIGRATE");
    words[used++] = slice_of(view->nodes[at].host);
    words[used++] = number(view->nodes[at].port, port);
    words[used++] = slice_lit("");
    words[used++] = slice_lit("0");
    words[used++] = slice_of(timeout);
    words[used++] = slice_lit("REPLACE");
    if (secret.len > 0 && move->load->node.user != NULL) {
        words[used++] = slice_lit("AUTH2");
        words[used++] = slice_of(move->load->node.user);
        words[used++] = secret;
    } else if (secret.len > 0) {
        words[used++] = slice_lit("AUTH");
        words[used++] = secret;
    }
    words[used++] = slice_lit("KEYS");
    for (size_t i = 0; i < count; i++) {
        struct slice element;

        (void)load_reply_element(&keys, &element);
        words[used++] = load_reply_text(element);
    }
    good = load_place_tell(&move->node[from], words, used);
    explicit_bzero(password, sizeof(password));
    return good;
}

/* Moves all keys of a slot that a node has of its own. */
static bool
move_keys(struct move *move, int from, unsigned slot, uint64_t deadline_ns)
{
    char text[12];
    char most[12];

    (void)number(slot, text);
    (void)number(KEYS_MAX, most);
    while (clock_mono_ns() < deadline_ns) {
        struct slice reply;
        struct slice rest;
        struct slice element;
        struct buf keys = { 0 };
        size_t count = 0;
        bool good;

        if (!load_place_ask(&move->node[from], &reply, "CLUSTER",
                            "GETKEYSINSLOT", text, most, NULL)) {
            return false;
        }
        if (!load_reply_array(reply, &rest)) {
            struct slice why = load_reply_text(reply);

            tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                          "%s: CLUSTER GETKEYSINSLOT: %.*s",
                          move->node[from].address, slice_shown(why), why.data);
            return false;
        }
        buf_append_slice(&keys, rest); /* the reply goes with the next one */
        while (load_reply_element(&rest, &element)) {
            count++;
        }
        good = count == 0 || migrate(move, from, buf_slice(&keys), count);
        buf_free(&keys);
        if (!good || count == 0) {
            return good;
        }
    }
    tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                  "the keys of slot %u were not moved within --move-timeout "
                  "(%" PRIu64 " s)",
                  slot, move->load->move_timeout_s);
    return false;
}

/* Tells a node that TO owns a slot. It would learn it by itself, too; and a
 * node that has lost its last slot may be a replica already, which refuses. */
static void
tell_owner(struct move *move, struct load_place *node, unsigned slot)
{
    char text[12];
    struct slice reply;

    (void)number(slot, text);
    (void)load_place_ask(node, &reply, "CLUSTER", "SETSLOT", text, "NODE",
                         move->id[MOVE_TO], NULL);
}

static void
tell_others(struct move *move, unsigned slot)
{
    for (size_t i = 0; i < move->nodes->count; i++) {
        const struct topology_node *node = &move->nodes->nodes[i];
        struct load_place place;

        if ((node->flags & NODE_PRIMARY) != 0 && node->host[0] != '\0' &&
            strcmp(node->id, move->id[MOVE_FROM]) != 0 &&
            strcmp(node->id, move->id[MOVE_TO]) != 0) {
            load_place_init(&place, move->load, &move->load->node, node->host,
                            node->port);
            tell_owner(move, &place, slot);
            load_place_close(&place);
        }
    }
}

static bool
shift_slot(struct move *move, unsigned slot, uint64_t deadline_ns)
{
    struct load_place *from = &move->node[MOVE_FROM];
    struct load_place *to = &move->node[MOVE_TO];

    move->marked = (int)slot;
    if (!set_slot(to, slot, "IMPORTING", move->id[MOVE_FROM]) ||
        !set_slot(from, slot, "MIGRATING", move->id[MOVE_TO]) ||
        !move_keys(move, MOVE_FROM, slot, deadline_ns) ||
        !set_slot(to, slot, "NODE", move->id[MOVE_TO])) {
        return false;
    }
    move->marked = -1; /* TO owns it */
    tell_owner(move, from, slot);
    tell_others(move, slot);
    return true;
}

static bool
shift_by_marks(struct move *move)
{
    uint64_t deadline_ns = move_deadline(move->load->move_timeout_s);
    struct slot_set owned;

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (slot_set_has(&move->batch, slot) &&
            (move_is_interrupted() || !shift_slot(move, slot, deadline_ns))) {
            return false;
        }
    }
    return move_owned(move, &owned) && slot_set_equal(&owned, &move->batch);
}

/* Takes the marks of a slot away, after its keys have gone back. */
static bool
unmark(struct move *move)
{
    unsigned slot = (unsigned)move->marked;

    if (move->marked < 0) {
        return true;
    }
    move->marked = -1;
    return move_keys(move, MOVE_TO, slot, move_deadline(AGREE_S)) &&
           set_slot(&move->node[MOVE_TO], slot, "STABLE", NULL) &&
           set_slot(&move->node[MOVE_FROM], slot, "STABLE", NULL);
}

/* ---- both ---------------------------------------------------------------- */

bool
move_shift(struct move *move)
{
    move->shifts = true;
    return move->atomic ? begin_job(move) && wait_for_job(move)
                        : shift_by_marks(move);
}

/* Cancels the job, and waits until both ends have seen it end. */
static bool
cancel_job(struct move *move)
{
    uint64_t deadline_ns = move_deadline(AGREE_S);
    struct slice reply;
    bool none = false;

    do {
        bool open = false;

        if (!has_job(move, MOVE_FROM, &open) ||
            (open && !load_place_ask(&move->node[MOVE_FROM], &reply, "CLUSTER",
                                     "CANCELSLOTMIGRATIONS", NULL)) ||
            !has_no_job(move, &none)) {
            return false;
        }
        if (none) {
            return true;
        }
    } while (move_pause(JOBS_MS / 4, deadline_ns) ||
             clock_mono_ns() < deadline_ns);
    tool_complain(&move->load->tool, LOAD_INCOMPLETE,
                  "a slot migration is still under way (CLUSTER "
                  "GETSLOTMIGRATIONS)");
    return false;
}

bool
move_unshift(struct move *move)
{
    bool atomic = move->atomic;

    if (!move->shifts) {
        return true;
    }
    move->shifts = false;
    return atomic ? cancel_job(move) : unmark(move);
}
