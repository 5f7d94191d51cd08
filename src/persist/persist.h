/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence: decides when to save, to rewrite, and to rebuild after a fault,
 * and which files the journal's directory has. A state machine of loop 0,
 * driven by its timer, by the thread that walks, and by the journal's events.
 * Functions marked "any thread" only leave a request or read figures.
 *
 *   dir/                 lock, <dbfilename>, *.tmp
 *   dir/<appenddirname>/ manifest, base-<n>, incr-<n>
 */
#pragma once

#include "persist/persist_options.h"
#include "persist/recover.h"
#include "persist/requests.h"

struct journal;
struct persist;

struct persist *persist_new(const struct persist_options *options);
void persist_free(struct persist *persist);

/* ---- start, before or while the loops run -------------------------------- */

/* Opens dir and locks it. False: the reason was logged. */
bool persist_open(struct persist *persist);

/* Returns whether persist_open or persist_load has failed because of the files:
 * they are damaged, cannot be read, or need a newer server, another secret or
 * more memory. Nothing was changed, and the next start would find the same. */
bool persist_refuses_data(const struct persist *persist);

/* Returns the absolute path of dir. Call it after persist_open. */
const char *persist_dir(const struct persist *persist);

/* Loads the data, on the calling thread, which owns the keyspace meanwhile.
 * False: the reason was logged, and the server must not serve. replay: see
 * recover.h. */
bool persist_load(struct persist *persist, const struct recover_replay *replay);

/* Starts the journal if it is on. Call it after the load, on loop 0, outside
 * the gate. False: the reason was logged. */
bool persist_begin(struct persist *persist);

/* ---- loop 0 -------------------------------------------------------------- */

/* Takes the next steps. Call it every 100 ms and after poke, outside the gate.
 */
void persist_tick(struct persist *persist);

/* Returns which commands must wait at present. */
enum persist_parks persist_parks(const struct persist *persist);

/* Copies the options in force. Called under the raised gate; the first time
 * before the load, when the hooks can already be called. */
void persist_apply_conf(struct persist *persist);

/* Ends the threads: no hook is called any more. Figures can still be read. */
void persist_halt(struct persist *persist);

/* ---- any thread ---------------------------------------------------------- */

struct journal *persist_journal(struct persist *persist);

/* Requests work that begins after this call, and returns a ticket.
 * persist_outcome returns whether the work of the ticket is done. */
uint64_t persist_ask(struct persist *persist, enum persist_request what);
enum persist_outcome persist_outcome(const struct persist *persist,
                                     enum persist_request what,
                                     uint64_t ticket);

/* Returns a flag. While it is true, replies that wait for a position are
 * replaced by ERR_MISCONF_UNKNOWN. */
const atomic_bool *persist_gives_up(const struct persist *persist);
