/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of bloomery-load move, which its files share:
 *
 *   load_move.c        the steps of a move, and undoing them
 *   load_move_find.c   who FROM and TO are, and where
 *   load_move_check.c  whether slots may be moved now
 *   load_shift.c       the nodes' own protocols
 */
#pragma once

#include "tools/load_place.h"

enum { MOVE_FROM, MOVE_TO, MOVE_ENDS };

struct move {
    struct load *load;
    struct slot_set slots; /* all that are to move */
    struct slot_set batch; /* that move at present */
    struct buf ranges;     /* their text, "0-99 200" */
    /* As the node of FROM, and its server, saw the cluster at the beginning. */
    struct topology *nodes, *servers;
    char id[MOVE_ENDS][TOPOLOGY_ID_LEN + 1];
    struct load_place node[MOVE_ENDS], server[MOVE_ENDS];
    bool atomic;   /* the nodes have CLUSTER MIGRATESLOTS */
    bool prepared; /* the server of TO was told to copy */
    bool shifts;   /* the nodes were told to move */
    int marked;    /* the slot that has marks; -1: none */
    uint64_t keys, bytes, copy_ms, shift_ms, cutover_ms; /* of the batch */
};

/* Finds both ends. False: printed. */
bool move_find(struct move *move, const char *from, const char *to);

/* Checks that both ends can take part, and that nothing else moves in the
 * cluster. own: our copy is under way. False: printed. */
bool move_check(struct move *move, bool own);

/* Has the nodes move the batch. False: printed; part of it may have moved. */
bool move_shift(struct move *move);

/* Stops what the nodes may still be doing. False: printed. */
bool move_unshift(struct move *move);

/* Collects which slots of the batch TO owns, as both nodes say. False: printed;
 * they cannot be asked, or do not agree within a few seconds. */
bool move_owned(struct move *move, struct slot_set *ret_owned);

/* Waits. False: a signal came, or the deadline is over. */
bool move_pause(unsigned ms, uint64_t deadline_ns);
bool move_is_interrupted(void);

/* Returns when a limit of seconds from now is over. */
uint64_t move_deadline(uint64_t seconds);

/* Whether a reply of CLUSTER GETSLOTMIGRATIONS has a job that has not ended. */
bool move_has_open_job(struct slice reply);

/* Finds where a node is, or the server beside it. False: its address is not
 * known, which was printed. */
bool move_place(struct move *move, struct load_place *ret_place, bool server,
                const char *id);
