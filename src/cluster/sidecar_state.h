/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the sidecar, which its files share. Loop 0 owns it.
 *
 *   sidecar.c        events, the role, slots that come and go
 *   sidecar_come.c   slots that wait for the claims before theirs
 *   sidecar_copy.c   a replica, which holds what its leader holds
 *   sidecar_disk.c   what a start may rely on
 *   sidecar_force.c  slots whose data an operator declares to be lost
 *   sidecar_give.c   slots that other daemons claim
 *   sidecar_peers.c  the daemons beside other nodes
 *   sidecar_wait.c   data is given up only when another server has it
 *   sidecar_show.c   what commands see
 *   claim.c          gaining slots
 *   survey.c         asking all daemons what they hold
 */
#pragma once

#include "cluster/sidecar_hooks.h"
#include "cluster/slot_phase.h"

enum { PEER_NONE = UINT16_MAX };

/* The daemon beside another node, or the entry of our own node. */
struct sidecar_peer {
    char id[TOPOLOGY_ID_LEN + 1]; /* "": the entry is free */
    uint16_t next_free;           /* PEER_NONE: none */
    uint64_t number; /* number of the open question to it in the present survey;
                        0: none */
    bool silent;     /* it did not answer the last question */
    bool same;       /* it has answered SAME in the present round */
    bool plain;      /* its version does not know SAME */
    uint64_t seen;   /* the version of its last answer; 0: none */
    uint64_t epoch;  /* epoch + 1 of its node at the last poll */
};

/* The holder of a slot, as the last survey found it. */
struct sidecar_holder {
    uint64_t epoch; /* epoch + 1; 0: nobody holds it */
    uint64_t known; /* our holdings' `known` when the round ended */
    uint16_t peer;
    bool copy;         /* the holder is a replica */
    uint64_t position; /* where the replica's log ends */
    bool ours;         /* our log includes that log up to `position` */
    bool claimed;      /* a daemon is claiming the slot, and may hold it soon */
    bool rises; /* `known` has risen since the last round: another daemon may
                   have claimed and held the slot between two answers */
};

/* A survey asks all daemons, in one round at a time:
 *
 *   waits -> runs       it is time, or a slot is wanted
 *   runs  -> waits      all have answered, or were found silent
 */
struct sidecar_survey {
    uint64_t next_ms, since_ms;
    uint64_t found_ms;     /* when the round began whose result is `found` */
    uint64_t first_number; /* number of the round's first question */
    uint16_t *asked;       /* [asked_room] the peers that were asked */
    size_t asked_count, asked_room;
    unsigned open;     /* number of open questions; 0: no round runs */
    unsigned silent;   /* silent daemons in this round */
    unsigned vain;     /* rounds in a row without news while a slot is wanted */
    bool asks_same;    /* this round asks only for changes */
    bool differs;      /* a daemon has reported a change */
    size_t same;       /* how many daemons have reported no change */
    uint64_t began_of; /* value of `topologies` when the round began */
    uint64_t full_of;  /* value of `topologies` when the last round without SAME
                          answers began */
    uint64_t rounds;   /* rounds that have ended */
    struct sidecar_holder *fresh; /* [CLUSTER_SLOTS], of the present round */
    struct sidecar_holder *found; /* [CLUSTER_SLOTS], of the last round */
    bool complete;                /* no daemon was silent in the last round */
    bool other_silent; /* a daemon has fallen silent in this round, or is no
                          longer silent */
};

/* A claim: the slots of the phase CLAIMED, on their way to us from one source:
 *
 *   NONE   -> FENCES  our node was promoted: the daemon that we followed is
 *                     fenced
 *          -> ASKS    another daemon holds slots that we want
 *          -> KEEPS   what we hold is the newest
 *          -> CHECKS  the same, of what is left: nobody holds the newest data
 *   CHECKS -> KEEPS   a survey, begun when others could see the claim, found no
 *                     other one
 *   ASKS   -> KEEPS   the source is fenced, and had no keys
 *          -> DRAINS  the same, but old keys are here, which an empty pull
 *                     removes
 *          -> PULLS   the source has keys, which we copy
 *   PULLS  -> FENCES  nearly all keys are here, and our disk knows of the claim
 *          -> DRAINS  the link broke, and the source has no keys any more
 *   FENCES -> DRAINS  the source has stopped; its last changes arrive
 *          -> WAITS   in a hand-off the source is silent or refuses: wait until
 *                     its lease has ended
 *   DRAINS -> KEEPS   all changes are here
 *   WAITS  -> FENCES  the source is not silent any more
 *          -> KEEPS   it was silent for long enough
 *   KEEPS  -> NONE    our disk has the data and says that we hold it, or
 *                     there is no journal: the slots are served
 *   any    -> NONE    the claim failed, or the slots are not ours any more
 */
enum claim_state {
    CLAIM_NONE,
    CLAIM_CHECKS,
    CLAIM_ASKS,
    CLAIM_PULLS,
    CLAIM_FENCES,
    CLAIM_DRAINS,
    CLAIM_WAITS,
    CLAIM_KEEPS
};

struct claim {
    enum claim_state state;
    bool hand_off;  /* our node was promoted: the source is the daemon that we
                       followed */
    bool behind;    /* hand_off: our copy was not up to date when it began */
    bool surveyed;  /* as in struct sidecar_ask */
    bool chosen;    /* an operator has chosen the source */
    uint64_t known; /* as in struct sidecar_ask */
    uint64_t least; /* if surveyed: the lowest epoch + 1 at which the source
                       holds one of the slots */
    bool copy; /* the data of the source is a copy, which it does not serve */
    bool old;  /* data newer than the source's may exist; if it is found, it
                  replaces the source's */
    bool refused; /* hand_off: the source has refused */
    bool passed;  /* hand_off: a slot was owned by a third node in between */
    bool near;    /* PULLS has nearly all data; the fence waits for our disk */
    bool broke;   /* PULLS: the link broke, so the source may have restarted */
    bool risen; /* KEEPS: our node's epoch has risen although it gained no slots
                 */
    char source[TOPOLOGY_ID_LEN + 1];
    uint64_t number;    /* number of the question; 0: it is answered */
    uint64_t silent_ms; /* FENCES: when the source was last silent */
    uint64_t intention; /* the ticket of the text that names the claim */
    uint64_t ticket; /* KEEPS: the ticket of the text that says that we hold the
                        slots; 0: none yet */
    uint64_t epoch;  /* epoch + 1 at which we will hold the slots */
    uint64_t raised; /* the epoch + 1 for the slots if our node's is too low;
                        else 0 */
    uint64_t since_ms;  /* since when it is in this state */
    uint64_t held_ms;   /* when commands on the slots began to wait */
    uint64_t round;     /* CHECKS, WAITS, and DRAINS if `passed`: a survey after
                           this one must end */
    uint64_t not_until; /* when the next claim may begin, after a failed one */
    char history[HISTORY_ID_CHARS + 1]; /* where the source stopped */
    uint64_t position;
    uint64_t here;                  /* KEEPS: our log has all data up to here */
    char was[HISTORY_ID_CHARS + 1]; /* hand_off: the history of our copy */
};

/* A leader's holdings, and the place of its log that our copy must reach. */
struct sidecar_offer {
    struct holdings *holdings; /* NULL: none */
    bool told;  /* it came over the link; holdings->node says from whom */
    bool taken; /* we hold these slots now */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
};

/* A slot. Peers are given by index; PEER_NONE: there is none. */
struct sidecar_slot {
    uint8_t phase; /* enum slot_phase; only sidecar_enter() writes it */
    bool newest;   /* our data is the newest as far as we know; sidecar_enter()
                      sets it by the phase */
    bool surveyed; /* a survey has found the source */
    bool forced; /* an operator has ordered: if missing, serve the data that can
                    be found */
    bool forced_found; /* the last survey had found this data then: if its
                          server falls silent, the slot is missing again */
    bool fenced; /* it was fenced (rule 3); `known` may not show it, if the
                    fence had the epoch at which we hold the slot */
    bool source_serves; /* in FOUND: the source serves clients that we redirect
                           with ASK */
    bool given; /* in CLAIMED: another daemon has fenced it here since, so it
                   will not be served */
    uint16_t owner_before; /* its owner at the last poll */
    uint16_t source;       /* for a wanted slot; PEER_NONE: find one */
    uint16_t comer;        /* the daemon that has come for it */
    uint16_t forced_from;  /* of a forced slot: the peer whose data was chosen;
                              PEER_NONE: take the data of the highest epoch */
    uint64_t source_epoch; /* the last owner's epoch + 1 */
    uint64_t wanted_round; /* survey.rounds when the slot became wanted: a later
                              round must end */
    uint64_t wanted_ms;    /* when it became wanted */
    uint64_t lost_ms;      /* since when it waits for its owner's daemon */
    uint64_t fenced_ms; /* when it was fenced; 0: our node has lost it since */
    uint64_t given_ms;  /* when we gave it away by a fence; 0: never, or it is
                           here again */
    uint64_t given_epoch; /* epoch + 1 of that fence; 0: as given_ms */
    uint64_t judged;      /* own->known of it when we began to serve it */
    uint64_t since;       /* our log has its data up to this position */
};

/* Tells sources that we will come for their slots (sidecar_come.h). */
struct sidecar_come {
    uint64_t number;       /* number of the question; 0: it is answered */
    uint16_t source;       /* the peer that was asked */
    struct slot_set set;   /* the slots of the question */
    struct slot_set asked; /* slots that were asked for in this round */
    uint64_t round_ms;     /* when the round began */
};

enum sidecar_role { SIDECAR_UNDECIDED, SIDECAR_LEADS, SIDECAR_FOLLOWS };

/* NOLINTNEXTLINE(*Padding): the fields are in the order of use; one is made */
struct sidecar {
    struct sidecar_hooks hooks;
    struct sidecar_options options;
    const struct topology *topology; /* NULL before the first poll */
    uint64_t topologies;             /* number of topologies seen so far */
    uint64_t numbers;                /* number of questions so far */
    struct holdings *own;
    struct sidecar_slot *slots; /* [CLUSTER_SLOTS] */
    struct slot_set kept;       /* held, and their data is on the disk */
    struct slot_set loose;   /* held, but their data is not on the disk yet */
    struct slot_set writing; /* slots in `kept` that the file may lack */
    uint64_t writing_ticket; /* ticket of the file that has them; 0: not
                                written */
    uint64_t stored;         /* the position + 1 that is on the disk */
    uint64_t store_ms;       /* when storing was last requested */
    char live[HISTORY_ID_CHARS + 1]; /* our log's history at the last look */
    char snapshot[HISTORY_ID_CHARS + 1]; /* as the file names it */
    bool dirty;                          /* own has changed since it was kept */
    bool checked;                        /* `own` was compared with the data */
    bool behind;       /* a replica has newer data than this server */
    bool copy_is_good; /* a replica's holdings are its leader's */
    uint64_t copy_at;  /* our log must reach this in own->history */
    bool waits_empty;  /* what is held of `waiting` has no keys */
    enum sidecar_role role;
    char leader[TOPOLOGY_ID_LEN + 1]; /* for the role FOLLOWS */
    /* We should follow another daemon, and do not yet: */
    uint64_t waits_ms;          /* since when; 0: we need not */
    struct slot_set waiting;    /* the slots for which we wait */
    struct slot_set left_alone; /* slots that nobody holds */
    uint64_t waits_round;       /* a later survey must say that we may follow */
    uint64_t keys_round;        /* survey of left_alone and waits_empty */
    uint64_t said_ms;           /* when the wait was last logged */
    /* The history of a full synchronization that wanted to replace the data
     * here; a later survey must say that the leader has that data. */
    char offered[HISTORY_ID_CHARS + 1];
    uint64_t offered_round;
    uint64_t offered_ms; /* when the leader was last asked */
    uint64_t offer_number;
    struct sidecar_offer offer;

    /* The slots of each phase, the slots that our node owns, and those that
     * are served. Like slots[].phase, only sidecar_enter() writes them. */
    struct slot_set in[SLOT_PHASES], owned, served;
    struct slot_set fallen; /* the missing slots whose holder's epoch is higher
                               than our node's */
    uint64_t leaving_until_ms; /* when the first LEAVING slot ends; 0: none */
    uint64_t await_round;      /* a later survey shows which owner is silent */
    uint64_t forget_round;     /* survey.rounds that rule 4 has seen */
    struct slot_set forgets;   /* rule 4: not held, keys still here */
    struct slot_set strays;    /* not held, but keys may be here: a pull has
                                  begun, or our node owned them again while they
                                  were in `forgets` */
    uint64_t forgets_ticket;   /* ticket of the text without them */
    uint64_t forgets_at_ms;    /* when the keys may be deleted; 0: none may */
    bool changed;              /* what commands should see has changed */
    uint32_t entered[SLOT_PHASES][SLOT_PHASES]; /* from, to: how often */

    struct sidecar_peer *peers;
    size_t peer_count, peer_room; /* with the free entries */
    size_t peer_used;
    uint16_t peer_free;     /* the first free entry; PEER_NONE: none */
    struct map peers_by_id; /* the entries that are not free */
    struct sidecar_survey survey;
    struct claim claim;
    struct sidecar_come come;
    uint64_t cutover_ms; /* see sidecar_cutover_ms(); of the last claim */

    uint8_t *state;       /* [CLUSTER_SLOTS], as last published */
    uint16_t *ask_source; /* [CLUSTER_SLOTS], as last published */
    bool *silent;         /* by node, as last published */
    size_t silent_room;
};

/* Return our own node, and its epoch + 1. */
const struct topology_node *sidecar_node(const struct sidecar *sidecar);
uint64_t sidecar_epoch(const struct sidecar *sidecar);

/* Sends a question, whose number and epoch it sets. Returns the number. */
uint64_t sidecar_ask(struct sidecar *sidecar, struct sidecar_ask ask);

/* Allocates the slots, which are AWAY at first. */
void sidecar_slots_init(struct sidecar *sidecar);

/* Lets the slot enter a phase, which may be its present one. Our data of a slot
 * is the newest in all phases in which commands run here; AWAITED and PASSED
 * leave that as it was. */
void sidecar_enter(struct sidecar *sidecar, unsigned slot,
                   enum slot_phase phase);

/* Lets a slot of ours that is not served enter WANTED, or FOUND if it has a
 * source. */
void sidecar_enter_open(struct sidecar *sidecar, unsigned slot);

/* Returns the slots of the claim. */
const struct slot_set *sidecar_claimed(const struct sidecar *sidecar);

/* Returns the peer whose data of the slot was chosen, which may be our own;
 * PEER_NONE: none was, so the data of the highest epoch is taken. */
uint16_t sidecar_forced_from(const struct sidecar *sidecar, unsigned slot);

/* Notes that a slot needs a source from now on. source: a peer to ask, or
 * PEER_NONE. */
void sidecar_want(struct sidecar *sidecar, unsigned slot, uint16_t source,
                  uint64_t now_ms);

/* Serves slots from now on: they are held, at our node's epoch. */
void sidecar_serve(struct sidecar *sidecar, const struct slot_set *set);

/* Returns those of the slots that are held at a lower epoch than our node's. */
struct slot_set sidecar_risen(const struct sidecar *sidecar,
                              const struct slot_set *set);

/* Stops serving slots, to claim them anew from the daemon that a survey finds.
 */
void sidecar_stop_serving(struct sidecar *sidecar, const struct slot_set *set,
                          uint64_t now_ms);
