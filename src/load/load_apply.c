/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_apply.h"

#include "load/load_report.h"
#include "load/load_ttl.h"

#include <inttypes.h>

/* What a command means for filters. */
enum meaning {
    CHANGES,    /* changes a filter, or makes it */
    RESTORES,   /* makes a value, perhaps a filter */
    TOUCHES,    /* changes a key of any type */
    DELETES,    /* deletes keys */
    OVERWRITES, /* may replace a filter by another value */
    STORES,     /* as OVERWRITES, of the key behind the last word STORE */
    RENAMES,
    COPIES,
    MOVES,
    SWAPS,
    FLUSHES_ONE,
    FLUSHES_ALL,
    SELECTS,
    BEGINS,
    EXECUTES,
    REPLIES, /* REPLCONF GETACK */
    SCRIPTS, /* may change anything */
    IGNORED  /* is neither applied nor counted */
};

/* The keys are the words number `first`, `first` + `step`, ... to the last; if
 * `step` is 0, only number `first`. With STORES, options begin at `first`. */
static const struct row {
    const char *name;
    enum meaning meaning;
    size_t first, step;
} rows[] = {
    { "bf.add", CHANGES, 1, 0 },
    { "bf.madd", CHANGES, 1, 0 },
    { "bf.insert", CHANGES, 1, 0 },
    { "bf.reserve", CHANGES, 1, 0 },
    { "bf.loadchunk", CHANGES, 1, 0 },
    { "bf.load", CHANGES, 1, 0 },
    { "restore", RESTORES, 1, 0 },
    { "restore-asking", RESTORES, 1, 0 },
    { "expire", TOUCHES, 1, 0 },
    { "pexpire", TOUCHES, 1, 0 },
    { "expireat", TOUCHES, 1, 0 },
    { "pexpireat", TOUCHES, 1, 0 },
    { "persist", TOUCHES, 1, 0 },
    { "del", DELETES, 1, 1 },
    { "unlink", DELETES, 1, 1 },
    { "set", OVERWRITES, 1, 0 },
    { "setex", OVERWRITES, 1, 0 },
    { "psetex", OVERWRITES, 1, 0 },
    { "mset", OVERWRITES, 1, 2 },
    { "bitop", OVERWRITES, 2, 0 },
    { "sdiffstore", OVERWRITES, 1, 0 },
    { "sinterstore", OVERWRITES, 1, 0 },
    { "sunionstore", OVERWRITES, 1, 0 },
    { "zdiffstore", OVERWRITES, 1, 0 },
    { "zinterstore", OVERWRITES, 1, 0 },
    { "zunionstore", OVERWRITES, 1, 0 },
    { "zrangestore", OVERWRITES, 1, 0 },
    { "geosearchstore", OVERWRITES, 1, 0 },
    { "sort", STORES, 2, 0 },
    { "georadius", STORES, 6, 0 },
    { "georadiusbymember", STORES, 5, 0 },
    { "rename", RENAMES, 1, 0 },
    { "renamenx", RENAMES, 1, 0 },
    { "copy", COPIES, 1, 0 },
    { "move", MOVES, 1, 0 },
    { "swapdb", SWAPS, 0, 0 },
    { "flushdb", FLUSHES_ONE, 0, 0 },
    { "flushall", FLUSHES_ALL, 0, 0 },
    { "select", SELECTS, 0, 0 },
    { "multi", BEGINS, 0, 0 },
    { "exec", EXECUTES, 0, 0 },
    { "eval", SCRIPTS, 0, 0 },
    { "evalsha", SCRIPTS, 0, 0 },
    { "fcall", SCRIPTS, 0, 0 },
    { "ping", IGNORED, 0, 0 },
    { "replconf", REPLIES, 0, 0 },
};

struct command {
    const struct row *row;
    const struct slice *words;
    size_t count;
};

static const struct row *
find_row(struct slice name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (slice_is_word(name, rows[i].name)) {
            return &rows[i];
        }
    }
    return NULL;
}

static void
count_skipped(struct load_apply *apply, struct slice name)
{
    char text[LOAD_COMMAND_NAME_MAX] = "";

    for (size_t i = 0; i < name.len && i + 1 < sizeof(text); i++) {
        text[i] = slice_fold(name.data[i]);
    }
    for (size_t i = 0; i < apply->skipped_count; i++) {
        if (strcmp(apply->skipped[i].name, text) == 0) {
            apply->skipped[i].count++;
            return;
        }
    }
    if (apply->skipped_count == LOAD_SKIPPED_MAX) {
        apply->skipped_more++;
        return;
    }
    memcpy(apply->skipped[apply->skipped_count].name, text, sizeof(text));
    apply->skipped[apply->skipped_count++].count = 1;
}

/* ---- passing on ---------------------------------------------------------- */

/* Opens the source's transaction at the server, before its first command. */
static bool
open_transaction(struct load_apply *apply)
{
    const struct slice multi = slice_lit("MULTI");

    if (!apply->multi || apply->opened) {
        return true;
    }
    apply->opened = true;
    return load_target_command(apply->target, apply->db, slice_lit("MULTI"),
                               &multi, 1);
}

static bool
pass_on(struct load_apply *apply, struct slice key, const struct slice *words,
        size_t count)
{
    apply->applied++;
    return open_transaction(apply) &&
           load_target_command(apply->target, apply->db, key, words, count);
}

static bool
is_ours(const struct load_apply *apply, struct slice key)
{
    return load_target_key(apply->target, apply->db, key) == LOAD_KEY_OURS;
}

/* Deletes a key that we brought; others stay. A key that is spared or lost
 * (load_target.h) remains so, although the source has deleted its own. */
static bool
delete_ours(struct load_apply *apply, struct slice key)
{
    const struct slice words[] = { slice_lit("DEL"), key };

    if (!is_ours(apply, key)) {
        return true;
    }
    (void)load_target_forget(apply->target, apply->db, key);
    return pass_on(apply, key, words, 2);
}

/* ---- one function for each meaning --------------------------------------- */

/* Restores the filter that the command has made at the source, and passes the
 * items on. */
static bool
create(struct load_apply *apply, const struct command *command)
{
    struct load_target *target = apply->target;
    struct slice key = command->words[1];
    const struct slice *words = command->words;
    struct buf value = { 0 };
    size_t items = 0;
    bool ok = true;

    switch (load_create_filter(&apply->rule, words, command->count, &value,
                               &items)) {
    case LOAD_CREATE_OTHER:
        return pass_on(apply, key, words, command->count);
    case LOAD_CREATE_UNKNOWN:
        tool_complain(&target->load->tool, LOAD_USAGE,
                      "key '%.*s' of database %" PRIu64 ": what an error rate "
                      "above 0.25 means depends on the source's version: name "
                      "it with --source-version",
                      slice_shown(key), key.data, apply->db);
        return false;
    case LOAD_CREATE_MADE:
        break;
    }
    apply->created++;
    apply->applied++;
    ok = open_transaction(apply) &&
         load_target_make(target, apply->db, key, &value);
    buf_free(&value);
    return ok && (items == 0 ||
                  load_target_add(target, apply->db, key,
                                  words + command->count - items, items));
}

static bool
change(struct load_apply *apply, const struct command *command)
{
    struct slice key = command->words[1];
    bool missing =
        load_target_key(apply->target, apply->db, key) == LOAD_KEY_UNKNOWN;
    size_t items;
    bool go;

    if (!load_target_claim(apply->target, apply->db, key, &go)) {
        return false;
    }
    if (!go) {
        apply->not_ours++;
        return true;
    }
    if (slice_is_word(command->words[0], "bf.loadchunk") &&
        !load_target_note_piece(apply->target, apply->db, key)) {
        return false;
    }
    if (missing) {
        return create(apply, command);
    }
    items = load_create_items(command->words, command->count);
    if (items == 0) {
        return pass_on(apply, key, command->words, command->count);
    }
    apply->applied++; /* only items: the server may not have the options */
    return open_transaction(apply) &&
           load_target_add(apply->target, apply->db, key,
                           command->words + command->count - items, items);
}

static bool
restore(struct load_apply *apply, const struct command *command)
{
    struct slice key = command->words[1];
    struct slice words[LOAD_TTL_WORDS_MAX];
    const struct slice *given;
    size_t given_count = command->count;
    struct load_ttl ttl;
    bool go;

    if (command->count < 4 || !rdb_payload_is_filter(command->words[3])) {
        count_skipped(apply, command->words[0]);
        return delete_ours(apply, key);
    }
    if (command->count > sizeof(words) / sizeof(words[0])) {
        load_target_refuse(apply->target, apply->db, key,
                           "RESTORE with too many words");
        return true;
    }
    if (!load_target_claim(apply->target, apply->db, key, &go)) {
        return false;
    }
    if (!go) {
        apply->not_ours++;
        return true;
    }
    memcpy(words, command->words, command->count * sizeof(words[0]));
    words[0] = slice_lit("RESTORE");
    given = load_ttl_words(apply->target, words, &given_count, &ttl);
    return pass_on(apply, key, given, given_count);
}

static bool
touch(struct load_apply *apply, const struct command *command)
{
    struct slice key = command->words[1];
    size_t count = command->count;
    const struct slice *words;
    struct load_ttl ttl;

    if (!is_ours(apply, key)) {
        return true;
    }
    words = load_ttl_words(apply->target, command->words, &count, &ttl);
    return pass_on(apply, key, words, count);
}

static bool delete (struct load_apply *apply, const struct command *command)
{
    bool ok = true;

    for (size_t i = command->row->first; ok && i < command->count; i++) {
        ok = delete_ours(apply, command->words[i]);
    }
    return ok;
}

static bool
overwrite(struct load_apply *apply, const struct command *command)
{
    size_t step = command->row->step;
    bool ok = true;

    count_skipped(apply, command->words[0]);
    for (size_t i = command->row->first;
         ok && i<command->count; i += step> 0 ? step : command->count) {
        ok = delete_ours(apply, command->words[i]);
    }
    return ok;
}

/* Skips a command with STORE, but deletes a key of ours that it overwrites. As
 * in Redis, the last STORE counts; the value of another option may be any word.
 */
static bool
store(struct load_apply *apply, const struct command *command)
{
    const struct slice *words = command->words;
    size_t at = 0;

    count_skipped(apply, words[0]);
    for (size_t i = command->row->first; i + 1 < command->count; i++) {
        if (slice_is_word(words[i], "store") ||
            slice_is_word(words[i], "storedist")) {
            at = ++i;
        } else if (slice_is_word(words[i], "limit")) {
            i += 2;
        } else if (slice_is_word(words[i], "by") ||
                   slice_is_word(words[i], "get") ||
                   slice_is_word(words[i], "count")) {
            i++;
        }
    }
    return at == 0 || delete_ours(apply, words[at]);
}

/* A source passes a command on only if it had an effect there. */
static bool
rename_key(struct load_apply *apply, const struct command *command)
{
    struct slice from = command->words[1];
    struct slice to = command->words[2];
    const struct slice words[] = { slice_lit("RENAME"), from, to };
    bool go;

    if (!is_ours(apply, from)) {
        count_skipped(apply, command->words[0]);
        return delete_ours(apply, to);
    }
    if (!load_target_claim(apply->target, apply->db, to, &go)) {
        return false;
    }
    if (!go) {
        apply->not_ours++;
        return delete_ours(apply, from);
    }
    (void)load_target_forget(apply->target, apply->db, from);
    return pass_on(apply, to, words, 3);
}

/* Reads a database; false, with a message, if there is no such database. */
static bool
read_db(struct load_apply *apply, struct slice word, uint64_t *ret_db)
{
    uint64_t db;

    if (slice_to_u64(word, &db) && db < LOAD_DATABASES_MAX) {
        *ret_db = db;
        return true;
    }
    tool_complain(&apply->target->load->tool, LOAD_UNREADABLE,
                  "the source uses database %.*s; the tool knows 0 to %d",
                  slice_shown(word), word.data, LOAD_DATABASES_MAX - 1);
    return false;
}

/* Complains of a key that comes from a database that --db leaves out: the tool
 * does not know whether it is a filter. */
static void
note_arrival(struct load_apply *apply, struct slice key, uint64_t db)
{
    uint64_t only = apply->target->load->db;

    if (only != LOAD_DB_ALL && apply->db != only && db == only) {
        load_target_refuse(apply->target, db, key,
                           "came from a database that --db leaves out, and is "
                           "missing if it is a filter");
    }
}

static bool
copy(struct load_apply *apply, const struct command *command)
{
    struct slice from = command->words[1];
    struct slice to = command->words[2];
    uint64_t db = apply->db;
    bool go;

    for (size_t i = 3; i + 1 < command->count; i++) {
        if (slice_is_word(command->words[i], "db") &&
            !read_db(apply, command->words[i + 1], &db)) {
            return false;
        }
    }
    if (!is_ours(apply, from)) {
        uint64_t own = apply->db;
        bool ok;

        count_skipped(apply, command->words[0]);
        note_arrival(apply, to, db);
        apply->db = db;
        ok = delete_ours(apply, to);
        apply->db = own;
        return ok;
    }
    if (!load_target_claim(apply->target, db, to, &go)) {
        return false;
    }
    apply->not_ours += !go;
    return !go || pass_on(apply, to, command->words, command->count);
}

static bool
move(struct load_apply *apply, const struct command *command)
{
    struct slice key = command->words[1];
    uint64_t db;
    bool go;

    if (!read_db(apply, command->words[2], &db)) {
        return false;
    }
    if (!is_ours(apply, key)) {
        count_skipped(apply, command->words[0]);
        note_arrival(apply, key, db);
        return true;
    }
    if (!load_target_claim(apply->target, db, key, &go)) {
        return false;
    }
    if (!go) {
        apply->not_ours++;
        return delete_ours(apply, key);
    }
    (void)load_target_forget(apply->target, apply->db, key);
    return pass_on(apply, key, command->words, command->count);
}

/* The server swaps everything in the two databases, even keys that are not
 * ours. */
static bool
swap(struct load_apply *apply, const struct command *command)
{
    struct map *keys = apply->target->keys;
    uint64_t only = apply->target->load->db;
    uint64_t a, b;
    struct map map;

    if (!read_db(apply, command->words[1], &a) ||
        !read_db(apply, command->words[2], &b)) {
        return false;
    }
    if (only != LOAD_DB_ALL && a != b && (a == only || b == only)) {
        tool_complain(&apply->target->load->tool, LOAD_INCOMPLETE,
                      "the source has swapped database %" PRIu64
                      " with one that --db leaves out",
                      only);
        return false;
    }
    if (keys[a].count == 0 && keys[b].count == 0) {
        count_skipped(apply, command->words[0]);
        return true;
    }
    map = keys[a];
    keys[a] = keys[b];
    keys[b] = map;
    return pass_on(apply, slice_lit("SWAPDB"), command->words, command->count);
}

struct flush {
    struct load_target *target;
    uint64_t db;
    struct buf names;
};

static bool
note_name(void *ctx, struct slice name, void *value)
{
    struct flush *flush = ctx;

    (void)value;
    if (load_target_key(flush->target, flush->db, name) == LOAD_KEY_OURS) {
        buf_append_item(&flush->names, name);
    }
    return !flush->names.failed;
}

static bool
flush_one(struct load_apply *apply)
{
    struct flush flush = { .target = apply->target, .db = apply->db };
    struct slice name;
    size_t at = 0;
    bool ok = map_each(&apply->target->keys[apply->db], note_name, &flush);

    if (!ok) {
        tool_complain(&apply->target->load->tool, LOAD_UNREADABLE,
                      "no memory for the names of the keys");
    }
    while (ok && buf_next_item(&flush.names, &at, &name)) {
        ok = delete_ours(apply, name);
    }
    buf_free(&flush.names);
    return ok;
}

static bool
flush_all(struct load_apply *apply)
{
    uint64_t own = apply->db;
    bool ok = true;

    for (apply->db = 0; ok && apply->db < LOAD_DATABASES_MAX; apply->db++) {
        ok = flush_one(apply);
    }
    apply->db = own;
    return ok;
}

static bool
execute_command(struct load_apply *apply)
{
    const struct slice exec = slice_lit("EXEC");
    bool opened = apply->opened;

    apply->multi = false;
    apply->opened = false;
    return !opened || load_target_command(apply->target, apply->db,
                                          slice_lit("EXEC"), &exec, 1);
}

/* ---- commands ------------------------------------------------------------ */

static bool
obey(struct load_apply *apply, const struct command *command)
{
    switch (command->row->meaning) {
    case CHANGES:
        return change(apply, command);
    case RESTORES:
        return restore(apply, command);
    case TOUCHES:
        return touch(apply, command);
    case DELETES:
        return delete (apply, command);
    case OVERWRITES:
        return overwrite(apply, command);
    case STORES:
        return store(apply, command);
    case RENAMES:
        return rename_key(apply, command);
    case COPIES:
        return copy(apply, command);
    case MOVES:
        return move(apply, command);
    case SWAPS:
        return swap(apply, command);
    case FLUSHES_ONE:
        return flush_one(apply);
    case FLUSHES_ALL:
        return flush_all(apply);
    case SELECTS:
        return read_db(apply, command->words[1], &apply->db);
    case BEGINS:
        apply->multi = true;
        return true;
    case EXECUTES:
        return execute_command(apply);
    case SCRIPTS:
        apply->scripts++;
        count_skipped(apply, command->words[0]);
        return true;
    case REPLIES:
        apply->asked =
            apply->asked ||
            (command->count > 1 && slice_is_word(command->words[1], "getack"));
        return true;
    case IGNORED:
        return true;
    }
    return true;
}

/* Returns the fewest words that a function above reads. */
static size_t
least_words(enum meaning meaning)
{
    switch (meaning) {
    case CHANGES:
    case RESTORES:
    case TOUCHES:
    case DELETES:
    case SELECTS:
        return 2;
    case RENAMES:
    case COPIES:
    case MOVES:
    case SWAPS:
        return 3;
    default:
        return 1;
    }
}

bool
load_apply(struct load_apply *apply, const struct slice *words, size_t count)
{
    struct command command = { find_row(words[0]), words, count };

    if (words[0].len > 0 && words[0].data[0] == '#') {
        return true; /* a note in an AOF */
    }
    if (command.row == NULL) {
        count_skipped(apply, words[0]);
        return true;
    }
    if (count < least_words(command.row->meaning)) {
        tool_complain(&apply->target->load->tool, LOAD_UNREADABLE,
                      "the source sent %s with too few words",
                      command.row->name);
        return false;
    }
    return obey(apply, &command);
}

bool
load_apply_end(struct load_apply *apply)
{
    const struct slice discard = slice_lit("DISCARD");
    bool opened = apply->opened;
    bool ok = true;

    apply->multi = false;
    apply->opened = false;
    if (opened) {
        ok = load_target_command(apply->target, apply->db, slice_lit("DISCARD"),
                                 &discard, 1);
    }
    apply->db = 0;
    return ok;
}

/* ---- reports ------------------------------------------------------------- */

void
load_rdb_report(const struct rdb_result *result)
{
    load_report_format("written by", "%s, RDB version %u",
                       result->product[0] != '\0' ? result->product : "unknown",
                       result->version);
    load_report_text("checksum", result->checked            ? "holds"
                                 : result->status == RDB_OK ? "none"
                                                            : "not verified");
    load_report_number("filters found", result->filters);
    for (int kind = 0; kind < RDB_KIND_COUNT; kind++) {
        if (result->skipped[kind] > 0) {
            load_report_format("skipped", "%" PRIu64 " %s",
                               result->skipped[kind],
                               rdb_kind_name((enum rdb_kind)kind));
        }
    }
}

void
load_apply_report(const struct load_apply *apply)
{
    load_report_number("commands applied", apply->applied);
    if (apply->created > 0) {
        load_report_number("filters created", apply->created);
    }
    if (apply->target->full > 0) {
        load_report_number("to full filters", apply->target->full);
    }
    if (apply->not_ours > 0) {
        load_report_number("to other filters", apply->not_ours);
    }
    for (size_t i = 0; i < apply->skipped_count; i++) {
        load_report_format("skipped", "%" PRIu64 " %s", apply->skipped[i].count,
                           apply->skipped[i].name);
    }
    if (apply->skipped_more > 0) {
        load_report_number("skipped, others", apply->skipped_more);
    }
    if (apply->scripts > 0) {
        tool_complain(&apply->target->load->tool, LOAD_INCOMPLETE,
                      "%" PRIu64 " scripts were skipped, and may have changed "
                      "filters",
                      apply->scripts);
    }
}
