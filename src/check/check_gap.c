/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An incarnation, which is in the log, tells apart filters that had the same
 * name one after the other. An item is noted as a hash of its bytes and its
 * filter's incarnation. An item that could not be noted, for lack of memory,
 * counts as unknown.
 */
#include "check/check_gap.h"

#include "base/map.h"
#include "base/mem.h"
#include "check/check_card.h"
#include "core/deletable.h"
#include "engine/effect_words.h"
#include "engine/logged.h"
#include "keyspace/memory.h"
#include "proto/reply.h"

#include <xxhash.h>

enum {
    MDEL_FIRST = 3,  /* the first place of BF.MDEL key PLACED place item */
    MERGE_FIRST = 2, /* the first source of BF.MERGE key source INCARNATION n */
    MERGE_BEHIND = 2 /* words behind the last source */
};

/* A filter, some of whose deletions were left out. */
struct kept {
    struct kept *next;
    uint64_t items;
    uint32_t db;
    struct slice name; /* behind the struct */
};

struct check_gap {
    struct check_world *world;
    struct logged_reader reader;
    struct buf words;  /* of a command that is made here */
    struct map added;  /* items of adds that were executed, as item_mark */
    struct map whole;  /* incarnations of filters that are exact */
    struct kept *kept; /* all filters that lost deletions */
    uint64_t db;
    bool open; /* there was a gap */
};

struct check_gap *
check_gap_new(struct check_world *world)
{
    struct check_gap *gap = mem_zalloc(sizeof(*gap));

    gap->world = world;
    return gap;
}

void
check_gap_free(struct check_gap *gap)
{
    if (gap == NULL) {
        return;
    }
    while (gap->kept != NULL) {
        struct kept *next = gap->kept->next;

        mem_free(gap->kept);
        gap->kept = next;
    }
    map_free(&gap->added);
    map_free(&gap->whole);
    buf_free(&gap->words);
    logged_fini(&gap->reader);
    mem_free(gap);
}

void
check_gap_open(struct check_gap *gap)
{
    gap->open = true;
    check_world_tolerate(gap->world);
    map_free(&gap->whole);
}

/* ---- what is known ------------------------------------------------------- */

static struct entry *
find_entry(const struct check_gap *gap, struct slice name)
{
    struct key key = key_named(name, (uint32_t)gap->db);

    return keyspace_find(check_world_keyspace(gap->world), &key, 0);
}

static bool
is_deletable(const struct entry *entry)
{
    return entry != NULL && bloom_kind(&entry->bloom) == BLOOM_DELETABLE &&
           !bloom_is_incomplete(&entry->bloom);
}

static struct slice
number_bytes(const uint64_t *number)
{
    return (struct slice){ (const char *)number, sizeof(*number) };
}

/* Returns whether the present state of the filter is the one that the server
 * had at this place of the log. */
static bool
is_exact(const struct check_gap *gap, const struct entry *entry)
{
    return !gap->open ||
           map_find(&gap->whole, number_bytes(&entry->incarnation)) != NULL;
}

/* Notes that a filter differs from what the server had. */
static void
forget(struct check_gap *gap, struct slice name)
{
    const struct entry *entry = find_entry(gap, name);

    if (entry != NULL) {
        (void)map_remove(&gap->whole, number_bytes(&entry->incarnation));
    }
}

/* Forgets the keys of a failed command, which changed none of its filters, or
 * not in the same way as on the server. */
static void
forget_keys(struct check_gap *gap, const struct logged *logged)
{
    const struct command_keys *keys =
        logged->row != NULL ? &logged->row->keys : NULL;

    if (keys == NULL || keys->step == 0 || logged->kind == LOGGED_COPY ||
        logged->kind == LOGGED_MOVE) { /* they change another database, too */
        map_free(&gap->whole);
        return;
    }
    for (size_t i = (size_t)keys->first;
         i < logged->argc && (keys->last < 0 || i <= (size_t)keys->last);
         i += (size_t)keys->step) {
        forget(gap, logged->argv[i]);
    }
}

struct item_mark {
    XXH128_hash_t hash;
};

static struct slice
mark_item(const struct entry *entry, struct slice item,
          struct item_mark *ret_mark)
{
    ret_mark->hash =
        XXH3_128bits_withSeed(item.data, item.len, entry->incarnation);
    return (struct slice){ (const char *)ret_mark, sizeof(*ret_mark) };
}

/* Notes every STEPth word as an item that was added. */
static void
note_added(struct check_gap *gap, const struct entry *entry,
           const struct slice *items, size_t count, size_t step)
{
    struct item_mark mark;

    for (size_t i = 0; i < count; i += step) {
        (void)!map_put(&gap->added, mark_item(entry, items[i], &mark), gap);
    }
}

/* Counts a deletion that was left out, for its filter. */
static void
note_kept(struct check_gap *gap, struct slice name)
{
    struct kept *kept = gap->kept;

    while (kept != NULL &&
           (kept->db != gap->db || !slice_equal(kept->name, name))) {
        kept = kept->next;
    }
    if (kept == NULL) {
        kept = mem_zalloc(sizeof(*kept) + name.len);
        memcpy(kept + 1, name.data, name.len);
        kept->name = (struct slice){ (const char *)(kept + 1), name.len };
        kept->db = (uint32_t)gap->db;
        kept->next = gap->kept;
        gap->kept = kept;
    }
    kept->items++;
}

/* ---- execution ----------------------------------------------------------- */

static bool
execute_command(struct check_gap *gap, struct slice command)
{
    char why[512] = "";

    return check_world_execute(gap->world, command, why, sizeof(why));
}

/* Executes an add in a filter that differs from what the server had. The logged
 * places may not fit, so the filter finds its own places for the items. */
static bool
add_anew(struct check_gap *gap, const struct slice *argv, size_t argc,
         const struct insert_words *found)
{
    struct reply reply = { .buf = &gap->words, .resp = 2 };

    buf_reset(&gap->words, SIZE_MAX);
    reply_array(&reply, 3 + (argc - found->list - 1) / 2);
    reply_bulk(&reply, argv[0]);
    reply_bulk(&reply, argv[1]);
    reply_bulk(&reply, slice_lit("ITEMS"));
    for (size_t i = found->list + 2; i < argc; i += 2) {
        reply_bulk(&reply, argv[i]);
    }
    return !gap->words.failed && execute_command(gap, buf_slice(&gap->words));
}

static bool
insert(struct check_gap *gap, struct slice text, const struct slice *argv,
       size_t argc)
{
    struct insert_words found = insert_words_of(argv, argc);
    bool makes = (found.flags & INSERT_MAKES) != 0;
    struct entry *entry = makes ? NULL : find_entry(gap, argv[1]);
    bool anew = found.placed && is_deletable(entry) && !is_exact(gap, entry);
    bool ok =
        anew ? add_anew(gap, argv, argc, &found) : execute_command(gap, text);

    entry = find_entry(gap, argv[1]);
    if (ok && entry != NULL && makes) {
        (void)!map_put(&gap->whole, number_bytes(&entry->incarnation), gap);
    }
    if (ok && found.placed && is_deletable(entry)) {
        note_added(gap, entry, argv + found.list + 2, argc - found.list - 2, 2);
    }
    return ok;
}

/* Executes a command that brings a whole filter, which is exact until the next
 * gap. */
static bool
restore(struct check_gap *gap, struct slice text, const struct slice *argv)
{
    bool ok = execute_command(gap, text);
    const struct entry *entry = ok ? find_entry(gap, argv[1]) : NULL;

    if (entry != NULL) {
        (void)!map_put(&gap->whole, number_bytes(&entry->incarnation), gap);
    }
    return ok;
}

static void
delete_anew(struct check_gap *gap, struct entry *entry, struct slice name,
            struct slice item, bool known)
{
    struct bloom *bloom = &entry->bloom;
    struct bloom_hash hash = bloom_hash(bloom, item.data, item.len);
    struct bloom_info before = { .struct_size = sizeof(before) };
    struct bloom_info after = { .struct_size = sizeof(after) };
    struct deletable_done done;
    int answer = -1;

    bloom_get_info(bloom, &before);
    if (known) {
        answer = deletable_delete(bloom, hash, &done);
    } else if (deletable_layer_of(bloom, hash) == DELETABLE_NEW) {
        answer = 0; /* the item's add is lost */
    }
    bloom_get_info(bloom, &after);
    keyspace_account(&before, &after);
    if (answer < 0) {
        note_kept(gap, name);
    }
}

static bool
delete_items(struct check_gap *gap, struct slice text, const struct slice *argv,
             size_t argc)
{
    struct entry *entry = find_entry(gap, argv[1]);
    bool anew = is_deletable(entry) && !is_exact(gap, entry);
    struct item_mark mark;

    if (!is_deletable(entry)) {
        return execute_command(gap, text);
    }
    if (!anew && !execute_command(gap, text)) {
        return false;
    }
    for (size_t i = MDEL_FIRST + 1; i < argc; i += 2) {
        struct slice marked = mark_item(entry, argv[i], &mark);
        bool known = map_remove(&gap->added, marked) != NULL;

        if (anew) {
            delete_anew(gap, entry, argv[1], argv[i], known);
        }
    }
    return true;
}

/* Merges one source of several. */
static bool
merge_one(struct check_gap *gap, const struct slice *argv, size_t source,
          struct slice incarnation)
{
    struct reply reply = { .buf = &gap->words, .resp = 2 };

    buf_reset(&gap->words, SIZE_MAX);
    reply_array(&reply, MERGE_FIRST + 1 + MERGE_BEHIND);
    reply_bulk(&reply, argv[0]);
    reply_bulk(&reply, argv[1]);
    reply_bulk(&reply, argv[source]);
    reply_bulk(&reply, slice_lit("INCARNATION"));
    reply_bulk(&reply, incarnation);
    return !gap->words.failed && execute_command(gap, buf_slice(&gap->words));
}

/* If a source is lost, the others are merged. */
static bool
merge(struct check_gap *gap, struct slice text, const struct slice *argv,
      size_t argc)
{
    size_t end = argc - MERGE_BEHIND;
    bool exact = true;
    struct slice incarnation = argv[argc - 1];
    bool ok;

    for (size_t i = MERGE_FIRST; i < end; i++) {
        const struct entry *source = find_entry(gap, argv[i]);

        exact = exact && source != NULL && is_exact(gap, source);
    }
    ok = execute_command(gap, text);
    for (size_t i = MERGE_FIRST; !ok && end > MERGE_FIRST + 1 && i < end; i++) {
        if (merge_one(gap, argv, i, incarnation)) {
            incarnation = slice_lit("0"); /* the filter exists now */
        }
    }
    if (!exact) {
        forget(gap, argv[1]);
    }
    return ok;
}

static bool
execute_one(struct check_gap *gap, struct slice text,
            const struct logged *logged)
{
    switch (logged->kind) {
    case LOGGED_INSERT:
        return insert(gap, text, logged->argv, logged->argc);
    case LOGGED_MAKE:
        return restore(gap, text, logged->argv);
    case LOGGED_MDEL:
        return delete_items(gap, text, logged->argv, logged->argc);
    case LOGGED_MERGE:
        return merge(gap, text, logged->argv, logged->argc);
    case LOGGED_SELECT:
        return slice_to_u64(logged->argv[1], &gap->db) &&
               execute_command(gap, text);
    default:
        return execute_command(gap, text);
    }
}

/* Counts the commands that follow in the batch. */
static uint64_t
behind(const struct logged_reader *reader)
{
    return reader->batch.count - reader->next;
}

uint64_t
check_gap_execute(struct check_gap *gap, struct slice commands)
{
    struct logged_reader *reader = &gap->reader;
    struct logged logged;
    uint64_t failed = 0;

    logged_begin(reader, commands);
    while (logged_next(reader, &logged)) {
        const struct slice text = { commands.data + logged.begin,
                                    logged.end - logged.begin };

        if (execute_one(gap, text, &logged)) {
            continue;
        }
        failed++;
        forget_keys(gap, &logged);
        if (slice_is_word(logged.argv[0], "select")) {
            /* What follows belongs to another database. */
            return failed + behind(reader);
        }
    }
    /* An error: the batch ends with bytes that no server writes. */
    return reader->error != 0 ? failed + 1 : failed;
}

uint64_t
check_gap_complain(const struct check_gap *gap, struct check *check,
                   const char *path)
{
    uint64_t sum = 0;

    for (const struct kept *kept = gap->kept; kept != NULL; kept = kept->next) {
        struct buf name = { 0 };

        buf_append_escaped(&name, kept->name);
        tool_complain(&check->tool, CHECK_DAMAGED,
                      "%s: database %u, filter \"%.*s\": %llu deleted items "
                      "may still be found, since their adds may be lost",
                      path, kept->db, (int)name.len, name.data,
                      (unsigned long long)kept->items);
        buf_free(&name);
        sum += kept->items;
    }
    return sum;
}
