/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A copy of a server's filter that stays fresh: the rules, as a machine that
 * sees no socket. Its owner gives it what one connection to the server says,
 * and the time; it says which commands to send, and when it wants to be called
 * again. It keeps this promise:
 *
 *   when the copy says absent, the server that it subscribes to would have said
 *   so too, at some moment of the last max_stale_ms before the call.
 *
 *   stage     says                        and hears
 *   WANTED    BF.SUBSCRIBE key            is 1 INCARNATION ..., or is 1 missing
 *   LOADING   BF.SCANDUMP key 0           the header
 *             BF.SCANDUMP key place ...   a piece; four are on their way
 *   CHECKING  BF.SUBSCRIBE key            is 1 INCARNATION ...
 *   LOADED    BF.SUBSCRIBE key            the same, four times in max_stale_ms
 *
 * The answer to BF.SUBSCRIBE comes behind all changes that the server had
 * acknowledged before. So four rules keep the promise:
 *
 *   - An answer moves the deadline to max_stale_ms after its question was sent.
 *     The time when it came proves nothing: it may have lain in a buffer.
 *   - After `changed`, `gone` or a cut, answers do not move the deadline of the
 *     copy: it still answers, but absent is unknown from the deadline on.
 *   - A load counts only if the copy asks once more after the last piece has
 *     come, the answer names the same incarnation, and nothing but adds and
 *     deletions was told before it. Items that were told since the load began
 *     are added to it.
 *   - A frame that is not understood is taken for `changed`.
 *
 * A deletion does not break the promise, which is about absent items only: the
 * copy goes on to say "present". It is loaded again after many deletions, or
 * some time after the first one. It never aborts on what a server says. One
 * thread.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

#include <bloomery/bloom.h>
#include <bloomery/local.h>

struct local_options {
    struct slice key; /* borrowed; must stay valid */
    uint64_t max_stale_ms;
    uint64_t refresh_ms; /* how long after the first deletion the copy is loaded
                            again */
    bool missing_is_absent; /* a missing key counts as an empty filter */
    const struct bloom_env *env;
    /* Called when the copy has another filter, or none, before its former
     * filter is freed. May be NULL. */
    void (*on_swap)(void *ctx);
    void *ctx;
};

/* Rules that a test leaves out, to show that it notices. */
enum {
    LOCAL_WITHOUT_SENT = 1,     /* the deadline counts from the receipt */
    LOCAL_WITHOUT_CHANGED = 2,  /* answers move the deadline of an old copy */
    LOCAL_WITHOUT_CHECK = 4,    /* a load ends with its last piece */
    LOCAL_WITHOUT_GATHERED = 8, /* items told during a load are not added */
};

enum local_answer { LOCAL_ABSENT, LOCAL_PRESENT, LOCAL_UNKNOWN };

enum local_stage {
    LOCAL_UNLINKED, /* no connection */
    LOCAL_WANTED, /* an answer begins a load, or says that the key is missing */
    LOCAL_LOADING,
    LOCAL_CHECKING,
    LOCAL_LOADED
};

struct local_copy;

/* Makes a copy. Returns NULL without memory. The options are copied, but not
 * what they point to. */
struct local_copy *local_copy_new(const struct local_options *options);
void local_copy_free(struct local_copy *copy); /* NULL is fine */

/* Leaves out rules, for a test. */
void local_copy_leave_out(struct local_copy *copy, unsigned rules);

/* Says that a connection is ready for commands: it speaks RESP3, is logged in,
 * and its database is selected. */
void local_copy_link(struct local_copy *copy, uint64_t now_ms);

/* Says that the connection has ended. */
void local_copy_cut(struct local_copy *copy);

/* Takes one reply or push. False: the connection is useless, since the server
 * refuses a command, or sends an unexpected reply; the facts say why. The owner
 * ends the connection, and may try again. */
bool local_copy_take(struct local_copy *copy, struct slice value,
                     uint64_t now_ms);

/* The state of a copy. */
struct local_facts {
    bool has_copy; /* the copy may say absent, until the deadline */
    /* Its filter, borrowed until the next call; NULL: the key is missing, or
     * there is no copy. */
    const struct bloom *bloom;
    bool missing; /* the last answer said that the key is missing */
    uint64_t deadline_ms;
    uint64_t server_ms; /* the server's clock, by which an ageing copy works */
    uint64_t loads, changes; /* copies that were loaded, and that ended */
    enum bloomery_local_code fault; /* the last fault; OK: none since a load */
    const char *error;              /* text of the fault */
};
void local_copy_facts(const struct local_copy *copy,
                      struct local_facts *ret_facts);

/* Returns whether no answer or reply is awaited. */
bool local_copy_is_quiet(const struct local_copy *copy);

/* Appends the commands that are due. Returns when to call it again, if nothing
 * comes before. */
uint64_t local_copy_say(struct local_copy *copy, uint64_t now_ms,
                        struct buf *out);

/* Looks up an item. */
enum local_answer local_copy_contains(const struct local_copy *copy,
                                      struct slice item, uint64_t now_ms);

enum local_stage local_copy_stage(const struct local_copy *copy);
