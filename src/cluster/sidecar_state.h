/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the sidecar, which its files share. Loop 0 owns it.
 *
 *   sidecar.c        events, the role, slots that come and go
 *   sidecar_come.c   slots whose turn to be claimed has not come
 *   sidecar_copy.c   a replica: what it holds is what its leader holds
 *   sidecar_disk.c   what a start may rely on
 *   sidecar_force.c  slots whose data an operator declares to be lost
 *   sidecar_give.c   slots that other daemons claim
 *   sidecar_peers.c  the daemons beside other nodes
 *   sidecar_wait.c   what is here goes only when others have it
 *   sidecar_show.c   what commands see
 *   claim.c          gaining slots
 *   survey.c         asking all daemons what they hold
 */
#pragma once

#include "cluster/sidecar_hooks.h"
#include "cluster/slot_phase.h"

enum { PEER_NONE = UINT16_MAX };

/* The daemon beside another node, or our own's place in the table. */
struct sidecar_peer {
    char id[TOPOLOGY_ID_LEN + 1]; /* "": the place is free */
    uint16_t next_free;           /* PEER_NONE: none */
    uint64_t number; /* of the question of the present survey; 0: none, or it
                        was answered */
    bool silent;     /* at the last question */
    bool same;       /* it has answered so in the round that runs */
    bool plain;      /* it is of a version without SAME */
    uint64_t seen;   /* the version of its last answer; 0: none */
    uint64_t epoch;  /* + 1, of its node at the last poll */
};

/* Who holds a slot, as the last survey found. */
struct sidecar_holder {
    uint64_t epoch; /* + 1; 0: nobody does */
    uint64_t known; /* holdings.known when the round ended */
    uint16_t peer;
    bool copy;         /* the holder is a replica, */
    uint64_t position; /* whose log ends here, */
    bool ours;         /* and is ours up to there: we have all of it */
    bool claimed;      /* a daemon is claiming it, and may hold it soon */
    bool rises; /* known has risen since the round before: another daemon may
                   have claimed it and held it between two answers */
};

/* Asks all daemons. One round at a time:
 *
 *   waits -> runs       it is time, or a slot is wanted
 *   runs  -> waits      all have answered, or were found silent
 */
struct sidecar_survey {
    uint64_t next_ms, since_ms;
    uint64_t found_ms;     /* when the round began that `found` is of */
    uint64_t first_number; /* of the round's questions, and */
    uint16_t *asked;       /* [room] the peers that they went to */
    size_t asked_count, asked_room;
    unsigned open;     /* questions without an answer; 0: no round runs */
    unsigned silent;   /* daemons of this round */
    unsigned vain;     /* rounds without news while a slot is wanted */
    bool asks_same;    /* the round that runs asks what has changed, */
    bool differs;      /* and a daemon has said what; */
    size_t same;       /* so many have said: nothing */
    uint64_t began_of; /* `topologies` when it began */
    uint64_t full_of;  /* likewise, of the last one that heard all */
    uint64_t rounds;   /* that have ended */
    struct sidecar_holder *fresh; /* [CLUSTER_SLOTS], of the round that runs */
    struct sidecar_holder *found; /* likewise, of the last one */
    bool complete;                /* nobody was silent in it */
    bool other_silent; /* in the round that runs: others than before are */
};

/* Slots on their way to us, those of the phase CLAIMED, from one source:
 *
 *   NONE   -> FENCES  we were promoted: the daemon that we followed is fenced
 *          -> ASKS    another daemon holds slots that we want
 *          -> PULLS   likewise, and they are copied already
 *          -> KEEPS   what we hold is the newest
 *   ASKS   -> KEEPS   there were no keys, and it is fenced
 *          -> DRAINS  likewise, but there are old keys here, which a pull
 *                     replaces by nothing
 *          -> PULLS   there are keys, which are fetched meanwhile
 *   PULLS  -> FENCES  nearly all has arrived, and our disk knows of the claim
 *          -> DRAINS  its link broke, and the source has no keys any more
 *   FENCES -> DRAINS  the source has stopped; its last changes arrive
 *          -> WAITS   it is silent: its lease runs out
 *   DRAINS -> KEEPS
 *   WAITS  -> FENCES  it answers again
 *          -> KEEPS   it does not
 *   KEEPS  -> NONE    our disk has them and says that we hold them, or we have
 *                     no journal: they are served
 *   any    -> NONE    it failed, or the slots are not ours any more
 */
enum claim_state {
    CLAIM_NONE,
    CLAIM_ASKS,
    CLAIM_PULLS,
    CLAIM_FENCES,
    CLAIM_DRAINS,
    CLAIM_WAITS,
    CLAIM_KEEPS
};

struct claim {
    enum claim_state state;
    bool hand_off;  /* from the daemon that we followed */
    bool surveyed;  /* as in struct sidecar_ask, */
    bool chosen;    /* the source was, by an operator's word */
    uint64_t known; /* as in struct sidecar_ask */
    uint64_t least; /* surveyed: the lowest epoch + 1 at which it holds any */
    bool copy;    /* of a source that follows another daemon: it serves none */
    bool old;     /* of a source that has an older state than there was, or may
                     have been: the newer one may come back, and takes over */
    bool refused; /* the daemon that we followed has refused */
    bool passed;  /* another node than the one of that daemon has owned slots
                     since */
    bool near;    /* PULLS has nearly all; its fence waits for our disk */
    bool copied;  /* it had nearly all once, so keys of the slots are here */
    bool broke;   /* the link of PULLS broke: the source may have restarted */
    char source[TOPOLOGY_ID_LEN + 1];
    uint64_t number;    /* of the question; 0: it is answered */
    uint64_t silent_ms; /* since when FENCES has no answer */
    uint64_t intention; /* the ticket of the text that names the claim */
    uint64_t ticket;    /* of the text on its way to the disk; 0: none yet */
    uint64_t epoch;     /* + 1, at which we hold the slots then */
    uint64_t raised;    /* likewise, if it is above our node's; 0: it is not */
    uint64_t since_ms;  /* in this state */
    uint64_t held_ms;   /* when commands on the slots began to wait */
    uint64_t round;     /* of WAITS, and of DRAINS if passed: a later survey
                           has to end */
    uint64_t not_until; /* the next claim, after one that failed */
    char history[HISTORY_ID_CHARS + 1]; /* where the source has stopped */
    uint64_t position;
    uint64_t here; /* of KEEPS: up to there, our log has all of the slots */
    char was[HISTORY_ID_CHARS + 1]; /* of the copy that a hand-off turns */
};

/* A leader's holdings, and the place of its log that our copy has to reach. */
struct sidecar_offer {
    struct holdings *holdings; /* NULL: none */
    bool told;                 /* over the link: its `node` says of whom */
    bool taken;                /* we hold that */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
};

/* A slot. Peers are indices; PEER_NONE: there is none. */
struct sidecar_slot {
    uint8_t phase; /* enum slot_phase; sidecar_enter() alone writes it */
    bool newest;   /* our data is what was served last, as far as we know; the
                      phases say so: sidecar_enter() */
    bool surveyed; /* a survey has found its source */
    bool forced;   /* it is served with what there is if it is missing */
    bool fenced;   /* rule 3; a fence at the epoch at which it is held does not
                      show in `known` */
    bool source_serves; /* of FOUND: clients that we send there with ASK */
    bool given; /* of CLAIMED: fenced here since, so it will not be served */
    uint16_t owner_before; /* at the last poll */
    uint16_t source;       /* of a wanted slot: whom to ask; PEER_NONE: find
                              one */
    uint16_t comer;        /* the daemon that has come for it */
    uint16_t forced_from;  /* of a forced one: the peer whose data was chosen;
                              PEER_NONE: the data of the highest epoch */
    uint64_t source_epoch; /* the last owner's epoch + 1 */
    uint64_t wanted_round; /* survey.rounds when the slot became wanted: a later
                              round has to end */
    uint64_t wanted_ms;    /* when it did */
    uint64_t lost_ms;      /* since when it awaits its owner's daemon */
    uint64_t fenced_ms;    /* when; 0: our node has lost it since */
    uint64_t given_ms; /* when it was fenced; 0: never, or it is here again */
    uint64_t given_epoch; /* + 1, of the fence; 0 likewise */
    uint64_t judged;      /* own->known, when it was served */
    uint64_t since; /* from there on in our log, our data is what we hold */
};

/* Tells sources that we will come for their slots (sidecar_come.h). */
struct sidecar_come {
    uint64_t number;       /* of the question; 0: it is answered */
    uint16_t source;       /* to whom it went, */
    struct slot_set set;   /* and of what */
    struct slot_set asked; /* in this round, */
    uint64_t round_ms;     /* which began then */
};

enum sidecar_role { SIDECAR_UNDECIDED, SIDECAR_LEADS, SIDECAR_FOLLOWS };

/* NOLINTNEXTLINE(*Padding): in the order of its uses, and there is one. */
struct sidecar {
    struct sidecar_hooks hooks;
    struct sidecar_options options;
    const struct topology *topology; /* NULL before the first poll */
    uint64_t topologies;             /* seen so far */
    uint64_t numbers;                /* of questions */
    struct holdings *own;
    struct sidecar_slot *slots;      /* [CLUSTER_SLOTS] */
    struct slot_set kept;            /* held, and the disk has that data */
    struct slot_set loose;           /* held, and it does not yet */
    struct slot_set writing;         /* of kept: the file may not say so yet, */
    uint64_t writing_ticket;         /* but when this is kept; 0: not written */
    uint64_t stored;                 /* the position that it has, + 1 */
    uint64_t store_ms;               /* when it was asked for more */
    char live[HISTORY_ID_CHARS + 1]; /* our log's history at the last look */
    char snapshot[HISTORY_ID_CHARS + 1]; /* as the file names it */
    bool dirty;                          /* own has changed since it was kept */
    bool checked;                        /* own is what the data is */
    bool behind;                         /* a replica has newer data than we */
    bool copy_is_good; /* a replica's holdings are its leader's */
    uint64_t copy_at;  /* where own->history was when we took these over */
    bool waits_empty;  /* `waiting` has no keys */
    enum sidecar_role role;
    char leader[TOPOLOGY_ID_LEN + 1]; /* of the role FOLLOWS */
    /* We should follow another daemon, and do not yet: */
    uint64_t waits_ms;       /* since when; 0: we need not */
    struct slot_set waiting; /* for what */
    uint64_t waits_round;    /* a later survey has to say that they may go */
    uint64_t keys_round;     /* as waits_empty says, at this survey */
    uint64_t said_ms;        /* when the log said so */
    /* The history that was to replace what is here by a full synchronization;
     * a later survey has to say that the leader has that. */
    char offered[HISTORY_ID_CHARS + 1];
    uint64_t offered_round;
    uint64_t offered_ms; /* when the leader was asked last */
    uint64_t offer_number;
    struct sidecar_offer offer;

    /* The slots of each phase; those that our node owns, and those of them that
     * are served. sidecar_enter() alone writes these, as slots[].phase. */
    struct slot_set in[SLOT_PHASES], owned, served;
    struct slot_set fallen; /* of MISSING: their holder's epoch is higher than
                               our node's, which owns them all the same */
    uint64_t leaving_until_ms; /* the first of them; 0: none */
    uint64_t await_round;      /* the survey that tells whether to go on */
    uint64_t forget_round;     /* survey.rounds that rule 4 has seen */
    struct slot_set forgets;   /* rule 4: not held any more, keys still here */
    uint64_t forgets_ticket;   /* of the text that does not hold them */
    uint64_t forgets_at_ms;    /* when the keys may go; 0: none do */
    bool changed;              /* what commands should see */
    uint32_t entered[SLOT_PHASES][SLOT_PHASES]; /* from, to: how often */

    struct sidecar_peer *peers;
    size_t peer_count, peer_room; /* with those that are free */
    size_t peer_used;
    uint16_t peer_free;     /* the first free one; PEER_NONE: none */
    struct map peers_by_id; /* those that are not free */
    struct sidecar_survey survey;
    struct claim claim;
    struct sidecar_come come;
    uint64_t cutover_ms; /* of the last claim from another daemon */

    uint8_t *state;       /* [CLUSTER_SLOTS] as it was published */
    uint16_t *ask_source; /* [CLUSTER_SLOTS] likewise */
    bool *silent;         /* by node, likewise */
    size_t silent_room;
};

/* Our own node, and its epoch + 1. */
const struct topology_node *sidecar_node(const struct sidecar *sidecar);
uint64_t sidecar_epoch(const struct sidecar *sidecar);

/* Sends a question, whose number and epoch it sets. Returns the number. */
uint64_t sidecar_ask(struct sidecar *sidecar, struct sidecar_ask ask);

/* Makes the slots, which are AWAY. */
void sidecar_slots_init(struct sidecar *sidecar);

/* Has the slot enter a phase, which may be its own. What is here of a slot is
 * the newest from when it is served, or its owner's daemon has come, until it
 * is ours, or nothing to do with us. */
void sidecar_enter(struct sidecar *sidecar, unsigned slot,
                   enum slot_phase phase);

/* A slot of ours is not served: it is WANTED, or FOUND if it has a source. */
void sidecar_enter_open(struct sidecar *sidecar, unsigned slot);

/* The slots of the claim. */
const struct slot_set *sidecar_claimed(const struct sidecar *sidecar);

/* Returns the peer whose data of the slot was chosen, perhaps our own; else
 * PEER_NONE: the data of the highest epoch is taken, as ever. */
uint16_t sidecar_forced_from(const struct sidecar *sidecar, unsigned slot);

/* A slot needs a source, from now on. source: a peer to ask, or PEER_NONE. */
void sidecar_want(struct sidecar *sidecar, unsigned slot, uint16_t source,
                  uint64_t now_ms);

/* Serves slots from now on: they are held, at our node's epoch. */
void sidecar_serve(struct sidecar *sidecar, const struct slot_set *set);

/* Claims served slots anew, from the daemon that a survey finds. */
void sidecar_stop_serving(struct sidecar *sidecar, const struct slot_set *set,
                          uint64_t now_ms);
