/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a daemon holds of the cluster's data: by slot, the epoch of the node
 * whose ownership its complete data belongs to. A daemon answers for a slot
 * only while it holds it, so an absent item is never told of a slot whose data
 * is elsewhere. Of two daemons the one with the higher epoch has the newer
 * data: for one slot the owner's epoch only grows.
 *
 * The file in dir and the reply of SIDECAR HOLDINGS have the same text;
 * holdings.c draws it. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/slot_set.h"
#include "cluster/topology.h"
#include "journal/history.h"

enum { HOLDINGS_DATA_MAX = 8 };

struct holdings {
    char node[TOPOLOGY_ID_LEN + 1]; /* beside which the daemon stands; "": none
                                       yet */
    /* "": the daemon leads, and its data is its own. Else it is a copy of the
     * data of the daemon beside this node. */
    char follows[TOPOLOGY_ID_LEN + 1];
    /* Of a copy: the history of its log. Data with another history is not this
     * copy any more. */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t held[CLUSTER_SLOTS]; /* epoch + 1; 0: not held */
    /* Not 0: the daemon leads, but what it has of the slot is a copy of what
     * the server that it followed held at this epoch, up to this position + 1
     * of that log. Other copies of that log may be longer. 1 also if the daemon
     * follows, and its leader has another log by now. */
    uint64_t copied[CLUSTER_SLOTS];
    /* The highest epoch + 1 at which any daemon has held the slot, as far as
     * this one has heard. Not 0 and no holder: the data is lost. */
    uint64_t known[CLUSTER_SLOTS];
    /* On their way to this daemon, now. To others also what it serves and its
     * disk does not have yet. */
    struct slot_set claimed;
    /* Of the file: data of one of these histories holds what is held here if it
     * reaches this position. No history: a file of version 1, which does not
     * say. */
    char data[HOLDINGS_DATA_MAX][HISTORY_ID_CHARS + 1];
    uint64_t from;
};

/* Holds these slots at this epoch + 1, or no more (0). They are no copies. */
void holdings_set(struct holdings *holdings, const struct slot_set *set,
                  uint64_t epoch_plus_1);

/* Holds nothing any more, and is no copy. */
void holdings_clear(struct holdings *holdings);

/* Raises known to what is held here and known there. Returns whether anything
 * has changed. */
bool holdings_learn(struct holdings *holdings, const struct holdings *other);

/* Whether both are the same to other servers: the text of a reply is. */
bool holdings_equal(const struct holdings *one, const struct holdings *other);

/* Collects the slots that are held. */
void holdings_slots(const struct holdings *holdings, struct slot_set *ret_set);

/* Appends the text, whose last line is its checksum: of the reply, which
 * servers of 1.0.0 read, or of the file, which also says of what data it is. */
void holdings_write(const struct holdings *holdings, struct buf *out);
void holdings_write_file(const struct holdings *holdings, struct buf *out);

/* Reads either text. Line feeds may follow the text of a file
 * (persist/file_room.h). False: it is damaged, or of a newer version;
 * *ret_holdings is not touched, and ret_reason says what is wrong. */
enum { HOLDINGS_REASON_MAX = 128 };
bool holdings_parse(struct slice text, struct holdings *ret_holdings,
                    char ret_reason[HOLDINGS_REASON_MAX]);

/* Returns a number that differs when the text does; not 0 but of "". */
uint64_t holdings_version(struct slice text);

enum {
    HOLDINGS_TEXT_MAX = 2 << 20,    /* more is refused by readers */
    HOLDINGS_FILE_MAX = 1800 * 1000 /* no text is longer: each slot of its own
                                       epoch, and none of few digits */
};
