/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A name is found by its database and its bytes, in a map. MOVE and COPY may
 * create a key in another database, so their names count in all databases.
 */
#include "replay/merge_sift.h"

#include "base/map.h"
#include "base/mem.h"
#include "engine/effect_words.h"
#include "engine/logged.h"

#include <errno.h>

enum { PREFIX_BYTES = 4, WORDS_MAX = 32, ANY_DB = -1 };

struct merge_sift {
    struct map map; /* database and name -> struct merge_name */
    struct merge_name **names;
    size_t count, capacity;
    bool all_aside; /* there was a SWAPDB */
    bool any_db;    /* there are names that count in all databases */
    uint64_t db;    /* of the command */
    struct logged_reader reader;
    char *scratch; /* a name with its database */
    size_t scratch_bytes;
    struct slice *words; /* of a command for a client */
    size_t words_room;
};

struct merge_sift *
merge_sift_new(void)
{
    return mem_zalloc(sizeof(struct merge_sift));
}

void
merge_sift_free(struct merge_sift *sift)
{
    if (sift == NULL) {
        return;
    }
    map_free(&sift->map);
    for (size_t i = 0; i < sift->count; i++) {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): only casts const away */
        mem_free((void *)(uintptr_t)sift->names[i]->name.data);
        mem_free(sift->names[i]);
    }
    mem_free((void *)sift->names);
    logged_fini(&sift->reader);
    mem_free(sift->scratch);
    mem_free((void *)sift->words);
    mem_free(sift);
}

/* ---- names --------------------------------------------------------------- */

/* Makes the map's name; false: no memory. */
static bool
make_name(struct merge_sift *sift, uint32_t db, struct slice name,
          struct slice *ret_full)
{
    size_t bytes = PREFIX_BYTES + name.len;

    if (bytes > sift->scratch_bytes) {
        char *more = mem_try_realloc(sift->scratch, 2 * bytes);

        if (more == NULL) {
            return false;
        }
        sift->scratch = more;
        sift->scratch_bytes = 2 * bytes;
    }
    memcpy(sift->scratch, &db, PREFIX_BYTES);
    if (name.len > 0) {
        memcpy(sift->scratch + PREFIX_BYTES, name.data, name.len);
    }
    *ret_full = (struct slice){ sift->scratch, bytes };
    return true;
}

static struct merge_name *
find_name(struct merge_sift *sift, uint32_t db, struct slice name)
{
    struct slice full;

    return make_name(sift, db, name, &full) ? map_find(&sift->map, full) : NULL;
}

static bool
reserve_name(struct merge_sift *sift)
{
    size_t capacity = 2 * sift->capacity + 16;
    struct merge_name **names;

    if (sift->count < sift->capacity) {
        return true;
    }
    names = mem_try_realloc((void *)sift->names,
                            capacity * sizeof(struct merge_name *));
    if (names == NULL) {
        return false;
    }
    sift->names = names;
    sift->capacity = capacity;
    return true;
}

/* Finds or adds a name; NULL: no memory. */
static struct merge_name *
note_name(struct merge_sift *sift, uint32_t db, struct slice name)
{
    struct merge_name *known = find_name(sift, db, name);
    struct slice full;
    char *bytes;

    if (known != NULL) {
        return known;
    }
    if (!reserve_name(sift)) {
        return NULL;
    }
    known = mem_try_zalloc(sizeof(*known));
    bytes = known != NULL ? mem_try_alloc(name.len + 1) : NULL;
    if (bytes == NULL || !make_name(sift, db, name, &full) ||
        !map_put(&sift->map, full, known)) {
        mem_free(bytes);
        mem_free(known);
        return NULL;
    }
    memcpy(bytes, sift->scratch + PREFIX_BYTES, name.len);
    known->name = (struct slice){ bytes, name.len };
    known->db = db;
    sift->names[sift->count++] = known;
    return known;
}

size_t
merge_sift_count(const struct merge_sift *sift)
{
    return sift->count;
}

struct merge_name *
merge_sift_name(const struct merge_sift *sift, size_t i)
{
    CHECK(i < sift->count);
    return sift->names[i];
}

/* ---- which commands ------------------------------------------------------ */

/* Returns where the items of a BF.INSERT begin; 0: it is no plain add, since it
 * creates a filter or adds to one that forgets. */
static size_t
insert_items(const struct slice *argv, size_t argc)
{
    struct insert_words found = insert_words_of(argv, argc);

    return found.placed || found.list == argc ||
                   (found.flags & (INSERT_MAKES | INSERT_TIMED)) != 0
               ? 0
               : found.list + 1;
}

/* Returns where the items of an add begin that can be offered; 0: it is
 * another command. */
static size_t
items_of(const struct logged *logged)
{
    switch (logged->kind) {
    case LOGGED_ADD:
        return 2;
    case LOGGED_INSERT:
        return insert_items(logged->argv, logged->argc);
    default:
        return 0;
    }
}

struct toucher {
    struct merge_sift *sift;
    const struct slice *argv;
    uint32_t db;
    size_t first, last; /* the words that count */
    bool failed;
};

static void
touch(void *ctx, size_t position)
{
    struct toucher *toucher = ctx;
    struct merge_name *name;

    if (position < toucher->first || position > toucher->last) {
        return; /* a key that is only read */
    }
    name = note_name(toucher->sift, toucher->db, toucher->argv[position]);
    if (name == NULL) {
        toucher->failed = true;
    } else {
        name->touched = true;
    }
}

/* Notes the keys that LOGGED writes beyond their expiry. False: no memory. */
static bool
touch_keys(struct merge_sift *sift, const struct logged *logged)
{
    struct toucher toucher = { .sift = sift,
                               .argv = logged->argv,
                               .db = (uint32_t)sift->db,
                               .last = logged->argc };

    switch (logged->kind) {
    case LOGGED_CHANGE:
        return true;
    case LOGGED_COPY:
        toucher.first = 2;
        toucher.db = (uint32_t)ANY_DB;
        sift->any_db = true;
        break;
    case LOGGED_MOVE:
        toucher.db = (uint32_t)ANY_DB;
        sift->any_db = true;
        break;
    case LOGGED_MERGE:
        toucher.last = 1;
        break;
    default:
        break;
    }
    command_each_key(logged->row, logged->argc, touch, &toucher);
    return !toucher.failed;
}

static int
note_command(struct merge_sift *sift, const struct logged *logged)
{
    switch (logged->kind) {
    case LOGGED_NEVER:
        return EINVAL;
    case LOGGED_MARK:
    case LOGGED_HISTORY:
        return 0;
    case LOGGED_SELECT:
        return slice_to_u64(logged->argv[1], &sift->db) && sift->db < UINT32_MAX
                   ? 0
                   : EINVAL;
    case LOGGED_SWAP:
        sift->all_aside = true;
        return 0;
    default:
        break;
    }
    if (items_of(logged) > 0) {
        return note_name(sift, (uint32_t)sift->db, logged->argv[1]) != NULL
                   ? 0
                   : ENOMEM;
    }
    return touch_keys(sift, logged) ? 0 : ENOMEM;
}

/* ---- commands for a client ----------------------------------------------- */

static bool
reserve_words(struct merge_sift *sift, size_t count)
{
    struct slice *words;

    if (count <= sift->words_room) {
        return true;
    }
    words = mem_try_realloc((void *)sift->words,
                            (count + WORDS_MAX) * sizeof(*words));
    if (words == NULL) {
        return false;
    }
    sift->words = words;
    sift->words_room = count + WORDS_MAX;
    return true;
}

/* ---- the second time ----------------------------------------------------- */

static const struct merge_name *
find_offered(struct merge_sift *sift, struct slice key)
{
    const struct merge_name *name = find_name(sift, (uint32_t)sift->db, key);
    bool offered =
        name != NULL && !name->touched && name->incarnation != 0 &&
        !sift->all_aside &&
        (!sift->any_db || find_name(sift, (uint32_t)ANY_DB, key) == NULL);

    return offered ? name : NULL;
}

static int
set_aside(struct merge_sift *sift, const struct logged *logged,
          const struct merge_sift_hooks *hooks)
{
    size_t items = items_of(logged);
    size_t count;

    if (!reserve_words(sift, logged->argc)) {
        return ENOMEM;
    }
    count = effect_plain(sift->words, logged);
    CHECK(count <= logged->argc);
    return hooks->aside(hooks->ctx, (uint32_t)sift->db, sift->words, count,
                        items > 0 ? logged->argc - items : 1)
               ? 0
               : ECANCELED;
}

static int
split_command(struct merge_sift *sift, const struct logged *logged,
              const struct merge_sift_hooks *hooks)
{
    const struct merge_name *name;
    size_t items;

    switch (logged->kind) {
    case LOGGED_NEVER:
        return EINVAL;
    case LOGGED_SELECT:
        return slice_to_u64(logged->argv[1], &sift->db) ? 0 : EINVAL;
    case LOGGED_MARK:
    case LOGGED_HISTORY:
        return 0;
    default:
        break;
    }
    items = items_of(logged);
    name = items > 0 ? find_offered(sift, logged->argv[1]) : NULL;
    if (name == NULL) {
        return set_aside(sift, logged, hooks);
    }
    for (size_t i = items; i < logged->argc; i++) {
        if (!hooks->offer(hooks->ctx, name, logged->argv[i])) {
            return ECANCELED;
        }
    }
    return 0;
}

/* ---- groups -------------------------------------------------------------- */

/* Calls note_command, or split_command if there are hooks. */
static int
read_group(struct merge_sift *sift, struct slice commands,
           const struct merge_sift_hooks *hooks)
{
    struct logged_reader *reader = &sift->reader;
    struct logged logged;
    int error = 0;

    sift->db = 0;
    logged_begin(reader, commands);
    while (error == 0 && logged_next(reader, &logged)) {
        error = hooks != NULL ? split_command(sift, &logged, hooks)
                              : note_command(sift, &logged);
    }
    return error != 0 ? error : reader->error;
}

int
merge_sift_note(struct merge_sift *sift, struct slice commands)
{
    return read_group(sift, commands, NULL);
}

int
merge_sift_split(struct merge_sift *sift, struct slice commands,
                 const struct merge_sift_hooks *hooks)
{
    return read_group(sift, commands, hooks);
}
