/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a daemon holds of the cluster's data: for each slot whose data it has
 * completely, the epoch that the owner node had when the data belonged to it. A
 * daemon answers for a slot only while it holds it, so it never reports an item
 * as absent when the slot's data is elsewhere. If two daemons hold a slot, the
 * one with the higher epoch has the newer data, since the epoch of a slot's
 * owner only grows.
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
    /* The node beside which the daemon runs; "": none yet. */
    char node[TOPOLOGY_ID_LEN + 1];
    /* "": the daemon leads, and the data is its own. Otherwise it has copied
     * the data from the daemon beside this node. */
    char follows[TOPOLOGY_ID_LEN + 1];
    /* For a copy: the history of its log. Data with another history is no
     * longer this copy. */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t held[CLUSTER_SLOTS]; /* epoch + 1; 0: not held */
    /* position + 1: the data is a copy of what a former leader held at the
     * epoch in `held`, up to that position of its log. Other copies may have
     * more of the log. 1: the leader has another log by now, so every other
     * copy is newer. 0: no such copy. A follower takes its leader's values. */
    uint64_t copied[CLUSTER_SLOTS];
    /* The highest epoch + 1 at which any daemon has held the slot, as far as
     * this one knows. If it is not 0 and there is no holder, the data is lost.
     */
    uint64_t known[CLUSTER_SLOTS];
    /* Slots on their way to this daemon. For other daemons, also the slots that
     * it serves but that are not on its disk yet. */
    struct slot_set claimed;
    /* Only in the file: the data in dir holds these slots if it is of one of
     * these histories and reaches this position. No history: the file is of
     * version 1, which does not say that. */
    char data[HOLDINGS_DATA_MAX][HISTORY_ID_CHARS + 1];
    uint64_t from;
};

/* Sets the epoch + 1 at which these slots are held (0: no longer held), and
 * that they are no copies. */
void holdings_set(struct holdings *holdings, const struct slot_set *set,
                  uint64_t epoch_plus_1);

/* Sets that no slot is held, and that the data is no copy. */
void holdings_clear(struct holdings *holdings);

/* Raises the epochs `known` to those at which `other` holds the slots, or knows
 * them as held. Returns whether anything has changed. */
bool holdings_learn(struct holdings *holdings, const struct holdings *other);

/* Returns whether both have the same text in replies to other servers. */
bool holdings_equal(const struct holdings *one, const struct holdings *other);

/* Returns whether any slot is held. */
bool holdings_has_slots(const struct holdings *holdings);

/* Collects the slots that are held. */
void holdings_slots(const struct holdings *holdings, struct slot_set *ret_set);

/* Append the text of the reply, which servers of 1.0.0 can read, or of the
 * file, which also says to which data it belongs. Its last line is a checksum.
 */
void holdings_write(const struct holdings *holdings, struct buf *out);
void holdings_write_file(const struct holdings *holdings, struct buf *out);

/* Reads either text. Line feeds may follow the text of a file
 * (persist/file_room.h). False: it is damaged, or of a newer version;
 * *ret_holdings is not touched, and ret_reason says what is wrong. */
enum { HOLDINGS_REASON_MAX = 128 };
bool holdings_parse(struct slice text, struct holdings *ret_holdings,
                    char ret_reason[HOLDINGS_REASON_MAX]);

/* Returns a number that differs if the texts differ; it is 0 only for "". */
uint64_t holdings_version(struct slice text);

enum {
    HOLDINGS_TEXT_MAX = 2 << 20,    /* readers refuse more */
    HOLDINGS_FILE_MAX = 1800 * 1000 /* no text is longer, even if each slot has
                                       another epoch, with many digits */
};
