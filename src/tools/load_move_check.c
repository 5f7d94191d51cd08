/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two moves at once can stop the nodes for seconds, so a move begins only if
 * nothing moves in the whole cluster: no node has a job or a mark, and no
 * server copies slots.
 */
#include "tools/load_move_state.h"

static bool
refuse(struct move *move, const char *who, const char *what)
{
    tool_complain(&move->load->tool, LOAD_USAGE, "%s: %s", who, what);
    return false;
}

/* ---- jobs ---------------------------------------------------------------- */

/* Whether one job, a flat array of names and values, has not ended. */
static bool
is_open(struct slice job)
{
    struct slice rest;
    struct slice name;
    struct slice value;

    if (!load_reply_array(job, &rest)) {
        return false;
    }
    while (load_reply_element(&rest, &name) &&
           load_reply_element(&rest, &value)) {
        struct slice state = load_reply_text(value);

        if (slice_equal(load_reply_text(name), slice_lit("state"))) {
            return !slice_equal(state, slice_lit("success")) &&
                   !slice_equal(state, slice_lit("failed")) &&
                   !slice_equal(state, slice_lit("cancelled"));
        }
    }
    return false;
}

bool
move_has_open_job(struct slice reply)
{
    struct slice rest;
    struct slice job;

    if (!load_reply_array(reply, &rest)) {
        return false;
    }
    while (load_reply_element(&rest, &job)) {
        if (is_open(job)) {
            return true;
        }
    }
    return false;
}

/* Looks at the jobs of a node. One that knows none moves slots by marks. */
static bool
check_jobs(struct move *move, struct load_place *node, bool *ret_atomic)
{
    struct slice reply;

    if (!load_place_ask(node, &reply, "CLUSTER", "GETSLOTMIGRATIONS", NULL)) {
        return false;
    }
    *ret_atomic = !load_reply_is_error(reply);
    if (!*ret_atomic &&
        slice_equal((struct slice){ reply.data, reply.len < 7 ? reply.len : 7 },
                    slice_lit("-NOPERM"))) {
        return refuse(move, node->address,
                      "the user may not ask CLUSTER GETSLOTMIGRATIONS");
    }
    if (move_has_open_job(reply)) {
        return refuse(move, node->address,
                      "a slot migration is under way at this node (CLUSTER "
                      "GETSLOTMIGRATIONS); one move at a time");
    }
    return true;
}

/* ---- one member ---------------------------------------------------------- */

static bool
check_node(struct move *move, const char *id, bool *ret_atomic)
{
    struct load_place place = { 0 };
    struct topology *view = NULL;
    bool good = move_place(move, &place, false, id) &&
                load_place_view(&place, &view) &&
                check_jobs(move, &place, ret_atomic);

    if (good && !view->ok) {
        good = refuse(move, place.address, "this node says cluster_state:fail");
    }
    if (good && view->mark_count > 0) {
        good = refuse(move, place.address,
                      "slots are marked as moving at this node ([slot->-id] "
                      "in CLUSTER NODES); one move at a time");
    }
    topology_free(view);
    load_place_close(&place);
    return good;
}

/* own: one copy is ours. */
static bool
check_server(struct move *move, const char *id, bool own)
{
    struct load_place place = { 0 };
    struct slice reply;
    bool good = move_place(move, &place, true, id) &&
                load_place_ask(&place, &reply, "SIDECAR", "STATUS", NULL);

    if (good && load_reply_is_error(reply)) {
        struct slice text = load_reply_text(reply);

        tool_complain(&move->load->tool, LOAD_UNREADABLE,
                      "%s: SIDECAR STATUS: %.*s", place.address,
                      slice_shown(text), text.data);
        good = false;
    }
    if (good &&
        load_place_number(load_reply_text(reply), "slot_pulls:") > own) {
        struct slice slots = load_place_field(load_reply_text(reply), "slots=");

        tool_complain(&move->load->tool, LOAD_USAGE,
                      "%s: this server copies slots (%.*s) already: another "
                      "move is under way, or one was killed; then SIDECAR "
                      "ABANDON them there",
                      place.address, slice_shown(slots), slots.data);
        good = false;
    }
    load_place_close(&place);
    return good;
}

/* ---- the ends ------------------------------------------------------------ */

static bool
check_ends(struct move *move, const struct topology *view)
{
    int from = topology_find(view, slice_of(move->id[MOVE_FROM]));
    int to = topology_find(view, slice_of(move->id[MOVE_TO]));

    if (from < 0 || to < 0) {
        return refuse(move, move->node[MOVE_FROM].address,
                      "this node does not know FROM or TO any more");
    }
    if ((view->nodes[from].flags & NODE_PRIMARY) == 0) {
        return refuse(move, move->id[MOVE_FROM], "FROM is not a primary");
    }
    if ((view->nodes[to].flags & NODE_PRIMARY) == 0) {
        return refuse(move, move->id[MOVE_TO], "TO is not a primary");
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (slot_set_has(&move->batch, slot) && view->owner[slot] != from) {
            tool_complain(&move->load->tool, LOAD_USAGE,
                          "%s: FROM does not own slot %u", move->id[MOVE_FROM],
                          slot);
            return false;
        }
    }
    return true;
}

/* Whether a node has slots or may get some. */
static bool
takes_part(const struct move *move, const struct topology *view, size_t at)
{
    struct slot_set owned;

    topology_slots_of(view, (int)at, &owned);
    return (view->nodes[at].flags & NODE_PRIMARY) != 0 &&
           (!slot_set_is_empty(&owned) ||
            strcmp(view->nodes[at].id, move->id[MOVE_TO]) == 0);
}

bool
move_check(struct move *move, bool own)
{
    struct topology *view = NULL;
    bool good = load_place_view(&move->node[MOVE_FROM], &view) &&
                check_ends(move, view);

    for (size_t i = 0; good && i < view->count; i++) {
        const char *id = view->nodes[i].id;
        bool is_to = strcmp(id, move->id[MOVE_TO]) == 0;
        bool atomic = false;

        if (takes_part(move, view, i)) {
            good = check_node(move, id, &atomic) &&
                   check_server(move, id, own && is_to);
            move->atomic =
                strcmp(id, move->id[MOVE_FROM]) == 0 ? atomic : move->atomic;
        }
    }
    topology_free(view);
    return good;
}
