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

/* Whether the client counts as blocked, for CLIENT LIST and CLIENT UNBLOCK.
 *
 *   RUNS      WAITS       its command waits for what ends by itself
 *   RUNS      BLOCKED     its command waits, and CLIENT UNBLOCK may end that
 *   BLOCKED   UNBLOCK_*   CLIENT UNBLOCK, on any loop
 *   any       RUNS        the command goes on or has ended
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
    bool is_bloomery; /* then run_id is known */
    char run_id[41];
    char ip[256];           /* announced; "": the address of its connection */
    unsigned port;          /* that it listens on; 0: not said */
    uint64_t chain_changes; /* of the service, when the chain was sent */
    bool pulls;             /* it takes these slots over: */
    struct slot_set slots;
    bool wants_holdings; /* what this server holds of a cluster's slots */
};

enum session_reply { REPLY_ON, REPLY_OFF, REPLY_SKIP_NEXT, REPLY_SKIP };

/* More than 30 fields: most are facts of their own that a command of the client
 * sets. */
struct session {
    struct conn *conn; /* NULL when driven without a socket */
    uint64_t id;
    /* Whose rules its commands obey; the default user before a login. NULL: a
     * session of the server's own, or of a test, which no rules restrict. Its
     * loop changes it inside a section of the gate, under the registry's lock.
     */
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
    bool was_subscribed;     /* ever: held output may have messages in RESP2 */
    bool no_evict, no_touch; /* like `name`: under the lock */
    enum session_reply reply_mode;
    _Atomic uint32_t last_command; /* index in the table, +1; 0: none */
    struct receiver receiver; /* of messages, invalidations and MONITOR lines */
    struct txn *txn;          /* NULL unless in MULTI or WATCH */
    char *name, *lib_name, *lib_ver; /* NULL: not set */
    _Atomic uint64_t created_ms, active_ms;
    _Atomic uint32_t db;
    _Atomic int32_t multi_count;  /* queued commands; -1: not in MULTI */
    _Atomic uint64_t multi_bytes; /* of what is queued */
    _Atomic uint32_t watch_count;
    _Atomic int blocked; /* enum session_block */
    void *again;         /* a paused handler's state */
    void (*again_free)(void *state);
    size_t again_bytes;         /* of that state, where it is large */
    struct rights_walk *rights; /* of the command that is checked in slices */
    uint64_t worked_ns;         /* so far, by the command that has paused */
    /* What the command that stopped the batch waits for, and for how long at
     * least. The function that stops it sets them; they are cleared when the
     * batch goes on. */
    enum conn_wait wait;
    uint32_t wait_ms;
    uint64_t held_until_ms; /* monotonic: the end of a wait for the hand-off of
                               a slot; 0: the command has not waited */
    /* Position behind its last effect. UINT64_MAX: it wrote before the server
     * became a replica, so that may be lost (role.h). */
    _Atomic uint64_t written;
    struct introduction *introduction; /* NULL: nothing was said */
    struct handover *handover; /* after PSYNC: the connection becomes a link */
};

/* authenticated: no password is set. */
void session_init(struct session *session, bool authenticated);
void session_fini(struct session *session);
void session_free_handover(struct handover *handover); /* NULL is fine */

/* Resets a session for RESET: as a new connection, but with its id, and with
 * the library's name and version, which belong to the client program. The
 * caller ends MULTI and WATCH before. Under the registry's lock if there is a
 * conn. */
void session_reset(struct session *session, bool authenticated);

/* Makes the session one of this user, in the place of its present one. Under
 * the registry's lock if there is a conn. */
void session_set_user(struct session *session, struct user *user);

/* Updates `subscribed` and the receiver after a change of subscriptions,
 * protocol or MONITOR. */
void session_hears(struct session *session);

/* Sets one of the session's texts to a copy of `text`; an empty text unsets it.
 * Returns false without memory, and the old text stays. Under the registry's
 * lock if there is a conn. */
MUST_CHECK bool session_set_text(char **field, struct slice text);

/* Returns the bytes of its texts. */
size_t session_text_bytes(const struct session *session);

/* Returns whether a text may be a name: printable ASCII without blanks, since
 * CLIENT LIST separates by blanks, and at most SESSION_TEXT_MAX bytes. */
enum { SESSION_TEXT_MAX = 1024 };
bool session_text_is_valid(struct slice text);
