/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replica's side of replication: connects to the primary, introduces
 * itself, resumes or loads a snapshot, and passes on one group after the other.
 * A state machine of loop 0 without I/O or a clock of its own, like primary.h;
 * the simulator links it as well. It has one link at a time, and ignores
 * reports about an older link (number).
 *
 * It resumes and acknowledges only at the ends of groups. It treats a wrong
 * seal as a fault of the link: it connects again and resumes after the last
 * good group. A second wrong seal at the same position, a gap in the sequence,
 * or a group that cannot be applied lead to a full synchronization, never to
 * data that differs from the primary's.
 *
 * It connects again at once after a link that had been good. Otherwise it waits
 * for 100 ms, and then twice as long each time, up to 5 s; after snapshots that
 * could not be loaded, up to 60 s.
 */
#pragma once

#include "repl/replica_hooks.h"
#include "repl/status.h"

struct replica;

struct replica *replica_new(const char *run_id,
                            const struct replica_hooks *hooks);
void replica_free(struct replica *replica);
void replica_set_options(struct replica *replica,
                         const struct replica_options *options);

/* Makes the replica's side take over these slots ("0-5460 9000", REPLCONF
 * slots) instead of following; "": it follows. When it takes over slots, each
 * link begins with a snapshot of the slots. Only the link after REPLICA_RENEW
 * resumes where the hook `where` says. Call this before replica_follow. */
void replica_set_slots(struct replica *replica, const char *slots);

/* Follows this primary from now on, over a new link, even if it is the present
 * primary. */
void replica_follow(struct replica *replica,
                    const struct replica_target *target, uint64_t now_ms);
void replica_stop(struct replica *replica); /* follows no primary */

/* ---- events; number: the link's ------------------------------------------ */
void replica_opened(struct replica *replica, uint64_t number, uint64_t now_ms);
void replica_bytes(struct replica *replica, uint64_t number, struct slice bytes,
                   size_t *ret_used, uint64_t now_ms);
void replica_closed(struct replica *replica, uint64_t number,
                    const char *reason, uint64_t now_ms);
/* Acknowledges again if the primary has sent GETACK and our disk had not
 * reached that position yet, so that a client in WAITAOF does not wait for the
 * next regular acknowledgement. Call it when the disk may have advanced. */
void replica_disk_moved(struct replica *replica, uint64_t now_ms);
/* Continues after REPLICA_LATER, or when load_bytes has room again. */
void replica_go_on(struct replica *replica, uint64_t now_ms);
/* Ends the load of a snapshot. good: the data is in use, and the hook `where`
 * returns its position. A load may fail before the snapshot is complete. It
 * must fail if the snapshot is of another state than announced. */
void replica_loaded(struct replica *replica, bool good, const char *reason,
                    uint64_t now_ms);
/* Connects again, acknowledges, and checks time-outs. Call it about every 100
 * ms. */
void replica_tick(struct replica *replica, uint64_t now_ms);

/* Connects again soon. Call it when there is a new hash secret. */
void replica_hasten(struct replica *replica, uint64_t now_ms);

/* Makes the next attempt ask for a snapshot, because our data has changed in
 * another way (a promotion, a reload). */
void replica_distrust(struct replica *replica);

/* ---- queries ------------------------------------------------------------- */
bool replica_is_connected(const struct replica *replica);
/* Returns whether the link has ended after a complete snapshot, which is still
 * being loaded. */
bool replica_is_cut(const struct replica *replica);
enum replica_failover replica_failover(const struct replica *replica);
/* Returns how many bytes of the log have arrived and are not executed yet. */
size_t replica_unread(const struct replica *replica);
/* Fills the run ids of the servers above us, from our primary upwards, for
 * wire_hello.chain. They come from the last primary that answered. */
size_t replica_chain(const struct replica *replica,
                     char ret_chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1]);
/* Fills the figures of the link, except ids and addresses. */
void replica_describe(const struct replica *replica,
                      struct status_figures *ret_figures);
