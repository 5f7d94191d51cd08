/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of replication for other threads: INFO, ROLE, WAIT, CLIENT LIST and
 * the admission of writes. Loop 0 publishes it, and any thread reads copies,
 * under one mutex, a leaf. The figures that each write needs are atomic.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct status;

enum { STATUS_TEXT_MAX = 384, STATUS_NAME_MAX = STATUS_TEXT_MAX + 16 };

enum status_replica_state {
    STATUS_WAITS,  /* for a full synchronization to begin */
    STATUS_SYNCS,  /* gets or loads a snapshot */
    STATUS_ONLINE, /* follows the log */
    STATUS_PULLS,  /* takes slots over; is not counted as an online replica */
};

struct status_replica {
    uint64_t id; /* the id of its client */
    char address[STATUS_TEXT_MAX], local_address[STATUS_TEXT_MAX];
    char ip[STATUS_TEXT_MAX];   /* as announced; if not, from its socket */
    char user[STATUS_TEXT_MAX]; /* the user as which it logged in; a long name
                                   is cut */
    unsigned port; /* announced, or its listening port; 0: unknown */
    enum status_replica_state state;
    unsigned slots;         /* number of slots that it takes over */
    uint64_t acked, synced; /* positions; 0 while it loads its snapshot */
    uint64_t acked_mono_ms, since_mono_ms;
    uint64_t unsent_bytes;
};

/* The link to the primary. */
enum status_link {
    STATUS_NO_LINK,
    STATUS_CONNECT, /* waits for the next attempt */
    STATUS_CONNECTING,
    STATUS_HANDSHAKE,
    STATUS_SYNC, /* a snapshot arrives, or was asked for */
    STATUS_CONNECTED,
};

enum status_failover {
    STATUS_NO_FAILOVER,
    STATUS_FAILOVER_WAITS,
    STATUS_FAILOVER_RUNS
};

struct status_figures {
    /* as a primary */
    uint64_t full_syncs, partial_syncs, refused_partial_syncs;
    uint64_t backlog_first, backlog_end, backlog_bytes, backlog_size;
    bool backlog_active;
    enum status_failover failover;
    char failover_error[STATUS_TEXT_MAX];
    /* as a replica; epoch: of the struct role to which these figures belong */
    uint64_t epoch;
    enum status_link link;
    uint64_t link_id; /* for CLIENT LIST; 0: none */
    char link_address[STATUS_TEXT_MAX], link_local_address[STATUS_TEXT_MAX];
    char reason[STATUS_TEXT_MAX]; /* why the link is down; "": not known */
    uint64_t heard_mono_ms, down_mono_ms, synced_mono_ms; /* 0: never */
    uint64_t sync_total_bytes, sync_read_bytes, sync_heard_mono_ms;
    bool synced_once; /* the server has had data from a primary since it became
                         a replica */
};

struct status *status_new(void);
void status_free(struct status *status);

/* Publishes the figures and the replicas. Loop 0. */
void status_publish(struct status *status, const struct status_figures *figures,
                    const struct status_replica *replicas, size_t count);

/* Copies the figures and at most `max` replicas. Returns the number of all
 * replicas. Any thread. */
size_t status_get(struct status *status, struct status_figures *ret_figures,
                  struct status_replica *ret_replicas, size_t max);

/* Store and return the last reason of each kind, with its replica: why a
 * replica could not load its snapshot, and why a replica was lost. An empty
 * reason removes the stored one. Any thread. */
enum status_trouble { STATUS_REFUSED, STATUS_LOST, STATUS_TROUBLES };
struct status_note {
    char replica[STATUS_NAME_MAX], reason[STATUS_TEXT_MAX];
    uint64_t mono_ms;
};
void status_note(struct status *status, enum status_trouble trouble,
                 const char *replica, const char *reason);
void status_get_note(struct status *status, enum status_trouble trouble,
                     struct status_note *ret_note);

/* Notes that the replica with this id was lost, unless it only took over slots.
 */
void status_note_lost(struct status *status, uint64_t id, const char *reason);

/* Writes address:port, as all lists show a replica. */
void status_name(const struct status_replica *replica,
                 char ret_name[STATUS_NAME_MAX]);

/* Count the online replicas that have applied, or synced, this position. */
size_t status_count_acked(struct status *status, uint64_t position);
size_t status_count_synced(struct status *status, uint64_t position);

/* Returns how many replicas of any state there are, PULLS included. Atomic. */
size_t status_count(const struct status *status);

/* Counts the online replicas that have acknowledged within the last max_lag_s
 * seconds (0: ever). Atomic. */
size_t status_count_good(const struct status *status, uint64_t now_mono_ms,
                         uint64_t max_lag_s);
