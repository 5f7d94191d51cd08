/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated cluster: up to eight nodes with a daemon beside each, whose state
 * machine is the real one. One world at a time, from a seed; its time moves by
 * milliseconds. The files:
 *
 *   sim.c         the world, and who reaches whom
 *   sim_nodes.c   the nodes: their own cluster, and what each knows of it
 *   sim_data.c    what daemons store: logs, replicas, slots that are fetched
 *   sim_disk.c    what is left of that when a daemon is killed
 *   sim_phases.c  the phases of their slots
 *   sim_daemon.c  daemons: the hooks of their sidecars, polls, questions
 *   sim_client.c  clients, and the oracle: which answers are right
 */
#pragma once

#include "cluster/lease.h"
#include "cluster/sidecar.h"
#include "cluster/view.h"

enum {
    SIM_NODES = 8,
    SIM_SLOTS = 8,
    SIM_POLL_MS = 100,
    SIM_LEASE_MS = 500,
    SIM_NODE_TIMEOUT_MS = 2000,
    SIM_CALM_MS = 2500,  /* what could be reached for so long is known */
    SIM_SILENT_MS = 400, /* an answer that does not come */
    SIM_KNOWS_MS = 3500, /* what a survey may be old when a daemon goes by it */
    SIM_EVENTS_MAX = 4096,
    SIM_VERSIONS_MAX = 512,
    SIM_LOG_MAX = 100000,
    SIM_HISTORIES_MAX = 4096,
    SIM_NOBODY = -1
};

/* ---- the nodes ----------------------------------------------------------- */

struct sim_member {
    bool known;
    unsigned life; /* nodes that are added after others were removed */
    int primary;   /* SIM_NOBODY: it is one */
    uint64_t epoch;
};

/* What all nodes know in the end. */
struct sim_version {
    uint64_t at_ms;
    struct sim_member member[SIM_NODES];
    int owner[SIM_SLOTS];
    uint64_t lag_ms[SIM_NODES]; /* until the node knows */
};

struct sim_node {
    bool up, refuses;
    uint64_t back_ms;            /* when it is up again */
    uint64_t deaf_ms;            /* since when it does not hear the others; 0 */
    uint64_t alone_ms;           /* since when it has no majority; 0 */
    uint64_t fails_until_ms;     /* it says so until then */
    uint64_t given_up_ms;        /* when the others elect another one; 0 */
    uint64_t learns_ms;          /* it learns nothing before that */
    uint64_t demoted_ms;         /* when it learned that it is a replica, */
    uint64_t lost_ms[SIM_SLOTS]; /* and that a slot is not its own */
    size_t seen;                 /* versions */
};

/* ---- daemons ------------------------------------------------------------- */

/* A change of the data of a slot: what it has from then on. */
struct sim_change {
    uint8_t slot;
    uint64_t items;
    uint64_t hash; /* of all changes up to this one */
};

/* Holdings of the slots that are used, and a set of these. */
struct sim_holdings {
    char node[TOPOLOGY_ID_LEN + 1], follows[TOPOLOGY_ID_LEN + 1];
    char history[HISTORY_ID_CHARS + 1];
    uint64_t held[SIM_SLOTS], known[SIM_SLOTS], copied[SIM_SLOTS];
    uint8_t claimed;
    char data[HOLDINGS_DATA_MAX][HISTORY_ID_CHARS + 1];
    uint64_t from;
};

/* A place of a daemon's log, and what it had there. */
struct sim_place {
    uint64_t history;
    size_t length;
    uint64_t items[SIM_SLOTS];
};

struct sim_disk {
    bool journals;
    uint64_t built_ms; /* until then it has `place`; 0: all that was written */
    uint64_t sync_ms;  /* when it will have been synced; 0: nobody has asked */
    size_t synced;
    uint64_t save_ms; /* when `saving` is `place`; 0: nothing is saved */
    struct sim_place saving, place;
    struct sim_change *log; /* of place */
};

struct sim_pull {
    bool runs, near, until;
    int source;
    uint8_t slots;
    uint64_t ready_ms, broken_ms;
    uint64_t position;
};

struct sim_daemon {
    bool up, frozen;
    uint64_t up_at_ms; /* when it comes back, UINT64_MAX: never; or goes on */
    struct sidecar *sidecar;
    struct topology *topology;
    size_t version; /* that the topology shows, + 1 */
    struct lease lease;
    uint64_t leaving_until_ms; /* of LEAVING slots */
    bool leased; /* the sidecar was not told that the lease has ended */
    uint64_t poll_ms, tick_ms;
    uint8_t state[SIM_SLOTS];
    bool checked[SIM_SLOTS]; /* since it began to serve the slot */
    uint16_t source[SIM_SLOTS];
    int leader; /* SIM_NOBODY: it leads */
    uint64_t history;
    struct sim_change *log;
    size_t length;
    uint64_t items[SIM_SLOTS];
    struct sim_disk disk;
    uint64_t unsaved[SIM_SLOTS]; /* of items: acknowledged without a journal */
    uint64_t
        old[SIM_SLOTS]; /* of items: lost, and acknowledged again elsewhere */
    uint64_t pulled[SIM_SLOTS]; /* of items: fetched by a pull */
    uint64_t sync_ms;    /* when a full synchronization ends; 0: none runs */
    uint64_t emptied_ms; /* when its directory was removed; 0: never */
    uint64_t emptied[SIM_SLOTS]; /* items that it had then */
    struct sim_pull pull;
    struct sim_holdings kept, keeping;
    struct sim_holdings tells; /* to its replicas, when they have its log */
    size_t tells_at;           /* up to here; */
    uint64_t tellings;         /* so often, of all its lives */
    bool linked;               /* with its leader, and following its log */
    uint64_t told; /* `tellings` of its leader, by the present link; 0: none */
    uint64_t ticket, kept_ticket, kept_ms;
    uint64_t fell_from[SIM_SLOTS]; /* kept.held before it last fell */
    uint64_t fell_ms[SIM_SLOTS];   /* when; 0: never */
    unsigned boot;
};

struct sim_event {
    uint64_t at_ms, ends_ms; /* when it has to be answered */
    int from, to;
    unsigned boot;           /* of `from` */
    bool is_answer, unheard; /* nobody waits for the answer any more */
    uint64_t number;
    enum sidecar_question question;
    uint64_t epoch, known, seen;
    bool surveyed, chosen;
    uint8_t slots, granted;
    unsigned to_boot; /* of `to`, when it answered; its disk has the fence when
                         answer.ticket is kept */
    struct sidecar_answer answer;
    struct sim_holdings holdings;
};

struct sim_world {
    uint64_t now_ms, seed;
    bool safe;      /* sidecar-mode safe */
    unsigned plain; /* daemons, by index, of 1.0.0: they do not know SAME, and
                       tell their replicas nothing */
    uint64_t same;  /* answers */
    struct sim_version version[SIM_VERSIONS_MAX];
    size_t versions;
    struct sim_node node[SIM_NODES];
    bool cut[SIM_NODES][SIM_NODES]; /* from, to */
    /* Until when daemons do not hear each other, though their nodes do. */
    uint64_t side_cut_ms[SIM_NODES][SIM_NODES];
    bool disowns;        /* slots may have no owner for a while */
    bool side_cut_comes; /* with a failover, when the next pull runs */
    uint64_t disturbed_ms[SIM_NODES]; /* when its links changed, or it did */
    struct sim_daemon daemon[SIM_NODES];
    struct sim_event event[SIM_EVENTS_MAX];
    size_t events;
    uint64_t truth[SIM_SLOTS], lost[SIM_SLOTS];
    uint64_t taken[SIM_SLOTS]; /* the highest epoch + 1 at which it was held */
    uint64_t histories;
    uint64_t before[SIM_HISTORIES_MAX]; /* the history that each continues, */
    size_t began[SIM_HISTORIES_MAX];    /* from this position */
    uint64_t writes, refused, split, moves, failovers, faults, forced;
    uint64_t side_cuts, tellings, emptied, chosen;
    bool told;
};

extern struct sim_world sim;

/* Prints what happens, in the one world that BLOOMERY_SIM names. */
__attribute__((format(printf, 1, 2))) void sim_tell(const char *format, ...);

/* Fails the test. */
__attribute__((format(printf, 1, 2))) void sim_fail(const char *format, ...);

void sim_begin(uint64_t seed, bool told);
void sim_end(void);
void sim_run_ms(void);
uint64_t sim_below(uint64_t n);

/* ---- slots --------------------------------------------------------------- */

static inline unsigned
sim_slot(unsigned i)
{
    return i * (CLUSTER_SLOTS / SIM_SLOTS);
}

uint8_t sim_pack(const struct slot_set *set);
void sim_unpack(uint8_t slots, struct slot_set *ret_set);

/* ---- who reaches whom ---------------------------------------------------- */

/* Links change, or a daemon does. */
void sim_disturb(int node);

/* Whether packets of one daemon do not arrive at another one. */
bool sim_is_cut(int from, int to);

/* Both daemons run, and packets arrive both ways; for long enough. */
bool sim_reaches(int a, int b);
bool sim_is_calm(int a, int b);

/* ---- the nodes ----------------------------------------------------------- */

struct sim_version *sim_newest(void);
struct sim_version *sim_change_cluster(void);
uint64_t sim_next_epoch(void);
void sim_id_of(int node, char ret_id[TOPOLOGY_ID_LEN + 1]);
int sim_node_of(const char *id);
void sim_nodes_begin(void);
void sim_nodes_run(void);

/* Packets between nodes have begun, or ceased, to arrive. */
void sim_nodes_look(void);

/* Whether the node has known for a while that another one owns the slot. */
bool sim_knows_lost(int node, unsigned slot);

/* Another node takes over from a primary, if there is one that may. */
bool sim_fail_over(int old);

/* What a node tells its daemon. NULL: the same as the version that was seen. */
struct topology *sim_show(int node, size_t *version);

/* ---- data ---------------------------------------------------------------- */

void sim_put(struct sim_daemon *d, unsigned slot, uint64_t items);
void sim_replicate(int index);
void sim_run_pull(struct sim_daemon *d);

/* What all daemons that this one reaches have of a slot. */
struct candidate *sim_candidates(int index, unsigned slot);

/* ---- disks --------------------------------------------------------------- */

/* A new daemon, with an empty disk. */
void sim_disk_begin(struct sim_daemon *d);

/* All its data is about to be replaced by its leader's. */
void sim_disk_replaced(struct sim_daemon *d);

void sim_disk_store(struct sim_daemon *d);
void sim_disk_run(struct sim_daemon *d);

/* Notes which items a restart would find, and hold: after each save, and after
 * each change of what the daemon has kept. */
void sim_disk_note_saved(struct sim_daemon *d);
void sim_disk_kill(struct sim_daemon *d);
bool sim_disk_has(const struct sim_daemon *d, uint64_t history,
                  uint64_t position);
uint64_t sim_disk_stored(const struct sim_daemon *d); /* + 1 */

/* ---- daemons ------------------------------------------------------------- */

int sim_index(const struct sim_daemon *d);
bool sim_has_lease(const struct sim_daemon *d);
void sim_start(int index);
void sim_stop(int index);
void sim_run_events(void);
void sim_run_daemon(int index);

/* Its leader's link is there, and its log is where that one's was when it
 * told what it holds. */
void sim_hear(struct sim_daemon *d, const struct sim_daemon *leader);

/* Whether it serves the slot to everybody, with a lease. */
bool sim_serves(int index, unsigned slot);

/* It is about to lose all that it has of a slot. Fails if nobody else has an
 * item that was acknowledged; follows: it will follow another daemon, so the
 * slot's owner, or one with a higher epoch, must have it on its disk. */
void sim_check_last(const struct sim_daemon *d, unsigned slot, bool follows);

/* Whether it serves a slot that has moved to those whom its owner sends. */
bool sim_gives(int index, unsigned slot);

/* ---- phases -------------------------------------------------------------- */

/* An event of its sidecar has ended: fails if a slot is in the sets of another
 * phase than its own, or has not what its phase needs. */
void sim_phases_look(const struct sim_daemon *d);

/* Counts how often slots of a daemon went from which phase to which, when it
 * ends; prints the sums of all worlds. */
void sim_phases_count(const struct sim_daemon *d);
void sim_phases_print(void);

/* ---- clients ------------------------------------------------------------- */

/* The first look at a slot since its daemon began to serve it. */
void sim_check_served(int index, unsigned slot);
void sim_run_client(void);

/* Whether a daemon executes a command on the slot now. */
bool sim_answers(unsigned slot);
