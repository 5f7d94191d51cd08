/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of one client apart from its connection. Owned by its loop; what
 * CLIENT LIST reads from other loops is atomic, and the texts change only under
 * the registry's lock (net/registry.h).
 */
#pragma once

#include "base/slice.h"
#include "base/slot_set.h"
#include "keyspace/keyspace.h"
#include "net/conn.h"
#include "push/receiver.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct handover;
struct txn;
struct user;

/* Whether the client counts as blocked, for CLIENT LIST and CLIENT UNBLOCK:
 *
 *   from      to          when
 *   RUNS      WAITS       its command waits, and CLIENT UNBLOCK cannot end that
 *   RUNS      BLOCKED     its command waits, and CLIENT UNBLOCK can end that
 *   BLOCKED   UNBLOCK_*   CLIENT UNBLOCK ended the wait, on any loop
 *   any       RUNS        the command goes on, or it has ended
 */
enum session_block {
    SESSION_RUNS,
    SESSION_WAITS,
    SESSION_BLOCKED,
    SESSION_UNBLOCK_TIMEOUT,
    SESSION_UNBLOCK_ERROR,
};

/* What a replica says about itself with REPLCONF, before PSYNC. */
struct introduction {
    bool is_bloomery; /* it is a Bloomery: run_id is known */
    char run_id[41];
    char ip[256];           /* announced; "": the address of its connection */
    unsigned port;          /* the port that it listens on; 0: it did not say */
    uint64_t chain_changes; /* chain_changes of the service when the chain was
                               sent */
    bool pulls;             /* it takes over these slots: */
    struct slot_set slots;
    bool wants_holdings; /* it wants to know which slots' data this server holds
                          */
};

enum session_reply { REPLY_ON, REPLY_OFF, REPLY_SKIP_NEXT, REPLY_SKIP };

/* More than 30 fields: most are facts of their own that a command of the client
 * sets. */
struct session {
    struct conn *conn; /* NULL when driven without a socket */
    uint64_t id;
    /* The user whose rules restrict its commands; before a login the default
     * user. NULL in a session of the server itself or of a test: no rules. The
     * session's loop changes it inside a section of the gate, under the
     * registry's lock. */
    struct user *user;
    unsigned resp; /* 2 or 3; changes under the registry's lock */
    bool authenticated;
    bool obey;             /* replays a log: see struct request */
    bool closing;          /* close when the replies so far are sent */
    uint8_t auth_failures; /* in a row */
    uint8_t refusals;      /* of commands before the password */
    bool subscribed; /* has subscriptions in RESP2: few commands are allowed */
    bool asking;     /* after ASKING: the next command may use a slot that the
                        server exports */
    bool reads_replica;      /* READONLY: reads what a replica has */
    bool follows_redirects;  /* CLIENT CAPA redirect; RESET keeps it */
    bool was_subscribed;     /* was once `subscribed`: its held output may have
                                messages */
    bool no_evict, no_touch; /* change under the registry's lock */
    enum session_reply reply_mode;
    _Atomic uint32_t last_command; /* index in the table, +1; 0: none */
    struct receiver receiver; /* of messages, invalidations and MONITOR lines */
    struct txn *txn;          /* NULL unless in MULTI or WATCH */
    char *name, *lib_name, *lib_ver; /* NULL: not set */
    _Atomic uint64_t created_ms, active_ms;
    _Atomic uint32_t db;
    _Atomic int32_t multi_count;  /* queued commands; -1: not in MULTI */
    _Atomic uint64_t multi_bytes; /* bytes of the queued commands */
    _Atomic uint32_t watch_count;
    _Atomic int blocked; /* enum session_block */
    void *again;         /* a paused handler's state */
    void (*again_free)(void *state);
    size_t again_bytes;         /* bytes of that state if it is large, else 0 */
    struct rights_walk *rights; /* the state of a long check; else NULL */
    uint64_t worked_ns;         /* time so far of the paused command */
    /* What the command that stopped the batch waits for, and for how long at
     * least. The function that stops it sets them; they are cleared when the
     * batch goes on. */
    enum conn_wait wait;
    uint32_t wait_ms;
    uint64_t held_until_ms; /* monotonic: the end of a wait for the hand-off of
                               a slot; 0: the command has not waited */
    /* The position of the log at the end of its last effect. UINT64_MAX: the
     * client wrote before the server became a replica, so this write may be
     * lost (role.h). */
    _Atomic uint64_t written;
    struct introduction *introduction; /* NULL: nothing was said */
    struct handover *handover; /* after PSYNC: the connection becomes a link */
};

/* Prepares the session of a new connection. authenticated: whether the server
 * has no password. */
void session_init(struct session *session, bool authenticated);
void session_fini(struct session *session);
void session_free_handover(struct handover *handover); /* NULL is fine */

/* Resets a session for RESET to the state of a new connection. It keeps its id,
 * and the library's name and version, which belong to the client program. The
 * caller has ended MULTI and WATCH before. Under the registry's lock if there
 * is a conn. */
void session_reset(struct session *session, bool authenticated);

/* Makes `user` the user of the session. Under the registry's lock if there is a
 * conn. */
void session_set_user(struct session *session, struct user *user);

/* Updates `subscribed` and the receiver after a change of subscriptions,
 * protocol or MONITOR. */
void session_hears(struct session *session);

/* Sets one of the session's texts to a copy of `text`; an empty text unsets it.
 * Returns false without memory, and the old text stays. Under the registry's
 * lock if there is a conn. */
MUST_CHECK bool session_set_text(char **field, struct slice text);

/* Returns the bytes of the session's texts and of its introduction. */
size_t session_text_bytes(const struct session *session);

/* Returns whether a text may be a name: printable ASCII without blanks, since
 * CLIENT LIST separates by blanks, and at most SESSION_TEXT_MAX bytes. */
enum { SESSION_TEXT_MAX = 1024 };
bool session_text_is_valid(struct slice text);
