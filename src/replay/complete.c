/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creations and times to live go through dispatch, in a service of its own
 * without clients, options or observers. The rest works on the keyspace.
 */
#include "replay/complete.h"

#include "base/hash.h"
#include "base/mem.h"
#include "engine/effect_words.h"
#include "engine/logged.h"
#include "keyspace/arrival.h"
#include "keyspace/databases.h"
#include "keyspace/redo.h"
#include "replay/excerpt.h"
#include "replay/obey.h"
#include "snapshot/snapshot_stamp.h"

#include <errno.h>
#include <stdio.h>

enum { FIRST_ITEM = 2, CHUNK_WORDS = 4 };

struct complete {
    struct conf conf;
    struct service service;
    struct obey obey;
    struct excerpt *excerpt; /* NULL: the state has all keys */
    struct keyspace *keyspace;
    /* About the group and its present command: */
    struct logged_reader reader;
    uint32_t db;
    uint64_t position; /* behind the command */
    const char *what;  /* what is wrong with it */
    /* The command follows a gap: effects are missing before it, since the file
     * is damaged and is being salvaged. */
    bool gap;
    uint64_t left_out; /* deletions of items that were skipped */
};

static void *
complete_open(const struct walk_part *part)
{
    static const struct keyspace_memory unlimited = { 0 };

    struct complete *complete = mem_zalloc(sizeof(*complete));
    struct service *service = &complete->service;
    struct conf_error error;

    if (!conf_try_init(&complete->conf, &error)) {
        mem_free(complete);
        return NULL;
    }
    service->conf = &complete->conf;
    service->threads = 1;
    service->stats = stats_new(1, CMD_ID_COUNT);
    service->obey_env = keyspace_env(&unlimited, UINT64_MAX);
    service->bloom_env = service->obey_env;
    obey_init(&complete->obey, service, 0);
    complete->obey.worker->alone = true;
    complete->excerpt = part != NULL ? excerpt_new(part) : NULL;
    return complete;
}

static void
complete_close(void *state)
{
    struct complete *complete = state;

    excerpt_free(complete->excerpt);
    logged_fini(&complete->reader);
    obey_fini(&complete->obey);
    stats_free(complete->service.stats);
    conf_fini(&complete->conf);
    mem_free(complete);
}

/* ---- keys ---------------------------------------------------------------- */

static struct key
key_of(const struct complete *complete, struct slice name)
{
    return key_named(name, complete->db);
}

/* Returns whether the copy includes the present command. */
static bool
is_later(const struct complete *complete, const struct entry *entry)
{
    return entry != NULL && arrival_copied(entry) >= complete->position;
}

/* Returns the key for the command to change; NULL if it is to be skipped. */
static struct entry *
find_earlier(const struct complete *complete, const struct key *key)
{
    struct entry *entry = keyspace_find(complete->keyspace, key, 0);

    return is_later(complete, entry) ? NULL : entry;
}

static void
drop_key(struct complete *complete, const struct key *key)
{
    struct entry *entry = find_earlier(complete, key);

    if (entry != NULL) {
        keyspace_remove(complete->keyspace, key, entry);
    }
}

/* Notes why a command cannot be executed. Returns whether it may be skipped:
 * after a gap it may depend on effects that are lost. */
static bool
wrong(struct complete *complete, const char *what)
{
    complete->what = what;
    return complete->gap;
}

/* Executes the present command alone, as if it came from any log. */
static bool
dispatch(struct complete *complete)
{
    enum { REPLIES_KEPT = 1 << 20 };
    struct obey *obey = &complete->obey;
    struct batch *batch = &complete->reader.batch;
    uint32_t count = batch->count;

    buf_reset(&obey->replies, REPLIES_KEPT);
    atomic_store(&obey->session.db, complete->db);
    obey->worker->failure = OK;
    batch->count = complete->reader.next;
    (void)dispatch_batch(obey->worker, &obey->session, batch, batch->count - 1,
                         0, &obey->replies);
    batch->count = count;
    return obey->worker->failure == OK || wrong(complete, "a command failed");
}

/* ---- commands ------------------------------------------------------------ */

/* Adds the items from argv[first] on. Only an ageing filter uses now_ms. */
static bool
add_items(struct complete *complete, const struct slice *argv, size_t argc,
          size_t first, uint64_t now_ms)
{
    const struct key key = key_of(complete, argv[1]);
    struct entry *entry = find_earlier(complete, &key);

    return entry == NULL ||
           arrival_add(entry, &complete->service.obey_env, argv + first,
                       argc - first, now_ms) == BLOOM_OK ||
           wrong(complete, "a filter could not grow");
}

/* Adds or deletes the items behind argv[list], which is PLACED, of a deletable
 * filter. The lines of its copy may be newer than the counts (struct
 * bloom_pieces). */
static bool
redo(struct complete *complete, const struct slice *argv, size_t argc,
     size_t list, bool deletes)
{
    const struct key key = key_of(complete, argv[1]);
    struct entry *entry = find_earlier(complete, &key);
    const struct redo items = { .words = argv + list + 1,
                                .count = argc - list - 1,
                                .position = complete->position,
                                .anew = complete->gap };
    enum bloom_status status = BLOOM_OK;

    if (entry != NULL) {
        complete->left_out += deletes && complete->gap ? items.count / 2 : 0;
        status = deletes ? redo_deletions(&entry->bloom, &items)
                         : redo_adds(&entry->bloom, &complete->service.obey_env,
                                     &items);
    }
    return status == BLOOM_OK ||
           wrong(complete, "a deletable filter cannot have changed so");
}

/* Executes the present command as dispatch() does, and notes that the key
 * includes it. */
static bool
dispatch_on(struct complete *complete, const struct key *key)
{
    struct entry *entry;

    if (!dispatch(complete)) {
        return false;
    }
    entry = keyspace_find(complete->keyspace, key, 0);
    if (entry == NULL) {
        return wrong(complete, "its key is missing");
    }
    arrival_set_copied(entry, complete->position);
    return true;
}

/* Makes the key, in place of any copy but a later one. */
static bool
make_key(struct complete *complete, const struct slice *argv)
{
    const struct key key = key_of(complete, argv[1]);

    return is_later(complete, keyspace_find(complete->keyspace, &key, 0)) ||
           dispatch_on(complete, &key);
}

/* A BF.INSERT creates if it has an INCARNATION; else the words before ITEMS do
 * not matter, since the filter exists. */
static bool
insert(struct complete *complete, const struct slice *argv, size_t argc)
{
    struct insert_words found = insert_words_of(argv, argc);
    uint64_t now_ms = 0;

    if ((found.flags & INSERT_MAKES) != 0) {
        return make_key(complete, argv);
    }
    if (found.list == argc ||
        (found.time > 0 && !slice_to_u64(argv[found.time], &now_ms))) {
        return wrong(complete, "a BF.INSERT without items");
    }
    return found.placed
               ? redo(complete, argv, argc, found.list, false)
               : add_items(complete, argv, argc, found.list + 1, now_ms);
}

/* Executes a command that changes a key; skips a missing or later key. */
static bool
change(struct complete *complete, const struct slice *argv)
{
    const struct key key = key_of(complete, argv[1]);

    return find_earlier(complete, &key) == NULL || dispatch_on(complete, &key);
}

static bool
drop_all(struct complete *complete, const struct slice *argv, size_t argc)
{
    for (size_t i = 1; i < argc; i++) {
        const struct key key = key_of(complete, argv[i]);

        drop_key(complete, &key);
    }
    return true;
}

static bool
parse_db(struct complete *complete, struct slice word, uint32_t *ret_db)
{
    uint64_t db;

    if (!slice_to_u64(word, &db) ||
        db >= keyspace_databases(complete->keyspace)) {
        complete->what = "a number of a database is too high";
        return false;
    }
    *ret_db = (uint32_t)db;
    return true;
}

/* Drops a key in the database that this word names. */
static bool
drop_in(struct complete *complete, struct slice name, struct slice db)
{
    struct key key = key_of(complete, name);

    if (!parse_db(complete, db, &key.db)) {
        return false;
    }
    drop_key(complete, &key);
    return true;
}

/* Executes COPY from to [DB n] ...: drops the key that it made. */
static bool
copy(struct complete *complete, const struct slice *argv, size_t argc)
{
    enum { TO = 2, OPTION = 3, DB = 4 };

    return argc > DB && slice_is_word(argv[OPTION], "db")
               ? drop_in(complete, argv[TO], argv[DB])
               : drop_all(complete, argv + 1, 2);
}

static bool
move(struct complete *complete, const struct slice *argv)
{
    return drop_all(complete, argv, 2) && drop_in(complete, argv[1], argv[2]);
}

static bool
flush(struct complete *complete, bool all)
{
    uint32_t first = all ? 0 : complete->db;
    uint32_t end =
        all ? keyspace_databases(complete->keyspace) : complete->db + 1;

    for (uint32_t db = first; db < end; db++) {
        arrival_flush(complete->keyspace, db);
    }
    return true;
}

static bool
swap(struct complete *complete, const struct slice *argv)
{
    uint32_t a;
    uint32_t b;

    if (!parse_db(complete, argv[1], &a) || !parse_db(complete, argv[2], &b)) {
        return false;
    }
    keyspace_swap_db(complete->keyspace, a, b);
    return true;
}

/* Executes a command. REPLCONF HISTORY is skipped, since the end section has
 * the history. */
static bool
execute_logged(struct complete *complete, const struct logged *logged)
{
    const struct slice *argv = logged->argv;
    size_t argc = logged->argc;

    switch (logged->kind) {
    case LOGGED_SELECT:
        return parse_db(complete, argv[1], &complete->db);
    case LOGGED_MARK:
    case LOGGED_HISTORY:
        return true;
    case LOGGED_ADD:
        return add_items(complete, argv, argc, FIRST_ITEM, 0);
    case LOGGED_INSERT:
        return insert(complete, argv, argc);
    case LOGGED_MDEL:
        return redo(complete, argv, argc, FIRST_ITEM, true);
    case LOGGED_MAKE:
        return make_key(complete, argv);
    case LOGGED_CHUNK: /* the chunk with the header has INCARNATION n */
        return argc > CHUNK_WORDS ? make_key(complete, argv)
                                  : change(complete, argv);
    case LOGGED_CHANGE:
        return change(complete, argv);
    case LOGGED_DROP:
        return drop_all(complete, argv, argc);
    case LOGGED_MERGE:
        return drop_all(complete, argv, 2);
    case LOGGED_COPY:
        return copy(complete, argv, argc);
    case LOGGED_MOVE:
        return move(complete, argv);
    case LOGGED_SWAP:
        return swap(complete, argv);
    case LOGGED_FLUSH_DB:
    case LOGGED_FLUSH_ALL:
        return flush(complete, logged->kind == LOGGED_FLUSH_ALL);
    case LOGGED_NEVER:
    case LOGGED_OTHERWISE:
        break;
    }
    return wrong(complete, "no command of a log");
}

/* ---- groups -------------------------------------------------------------- */

/* Adds the place in the log to an error. */
static bool
say_where(const struct complete *complete, char *ret_reason, size_t reason_size)
{
    (void)snprintf(ret_reason, reason_size,
                   "the effect before position %llu cannot be executed: %s",
                   (unsigned long long)complete->position, complete->what);
    return false;
}

static bool
execute_group(struct complete *complete, const struct snapshot_effects *effects,
              char *ret_reason, size_t reason_size)
{
    struct logged_reader *reader = &complete->reader;
    struct logged logged;

    complete->gap = complete->gap || effects->behind_gap;
    complete->db = 0; /* a group begins with SELECT */
    logged_begin(reader, effects->commands);
    while (logged_next(reader, &logged)) {
        complete->position = effects->position + logged.end;
        if (!execute_logged(complete, &logged)) {
            return say_where(complete, ret_reason, reason_size);
        }
    }
    if (reader->error != 0) {
        complete->position = effects->position + reader->at;
        complete->what = reader->error == ENOMEM ? "not enough memory"
                                                 : "no command of a log";
        return say_where(complete, ret_reason, reason_size);
    }
    return true;
}

/* What is needed to execute a piece that the excerpt has picked. */
struct piece_run {
    struct complete *complete;
    char *reason;
    size_t reason_size;
};

static int
execute_piece(void *ctx, const struct snapshot_effects *piece)
{
    const struct piece_run *run = ctx;

    return execute_group(run->complete, piece, run->reason, run->reason_size)
               ? 0
               : ECANCELED;
}

static bool
complete_group(void *state, struct keyspace *ks,
               const struct snapshot_effects *effects, char *ret_reason,
               size_t reason_size)
{
    struct complete *complete = state;
    struct piece_run run = { complete, ret_reason, reason_size };
    int error;

    complete->keyspace = complete->service.keyspace = ks;
    complete->obey.worker->request->keyspace = ks;
    if (complete->excerpt == NULL) {
        return execute_group(complete, effects, ret_reason, reason_size);
    }
    error = excerpt_group(complete->excerpt, effects, execute_piece, &run);
    if (error != 0 && error != ECANCELED) {
        (void)snprintf(ret_reason, reason_size,
                       "the effects behind position %llu %s",
                       (unsigned long long)effects->position,
                       error == ENOMEM ? "need more memory than there is"
                                       : "are no commands of a log");
    }
    return error == 0;
}

static uint64_t
complete_left_out(const void *state)
{
    return ((const struct complete *)state)->left_out;
}

const struct completion complete_calls = { .open = complete_open,
                                           .group = complete_group,
                                           .left_out = complete_left_out,
                                           .close = complete_close };
