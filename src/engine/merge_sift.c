/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A name is found by its database and its bytes, in a map. MOVE and COPY may
 * create a key in another database, so their names count in all databases.
 */
#include "engine/merge_sift.h"

#include "access/table.h"
#include "base/map.h"
#include "base/mem.h"
#include "proto/batch.h"
#include "proto/scan.h"

#include <errno.h>

enum { PREFIX_BYTES = 4, WORDS_MAX = 32, ANY_DB = -1 };

struct merge_sift {
    struct map map; /* database and name -> struct merge_name */
    struct merge_name **names;
    size_t count, capacity;
    bool all_aside; /* a SWAPDB */
    bool any_db;    /* there are names that count in all databases */
    uint64_t db;    /* of the command */
    struct batch batch;
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
    batch_fini(&sift->batch);
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
find(struct merge_sift *sift, uint32_t db, struct slice name)
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
note(struct merge_sift *sift, uint32_t db, struct slice name)
{
    struct merge_name *known = find(sift, db, name);
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

enum kind { KIND_ADD, KIND_SKIP, KIND_SELECT, KIND_SWAP, KIND_OTHER };

struct look {
    enum kind kind;
    size_t items; /* ADD: where they begin */
    const struct command *command;
};

/* Whether a word of a BF.INSERT has no value. */
static bool
stands_alone(struct slice word)
{
    return slice_is_word(word, "nonscaling") || slice_is_word(word, "nocreate");
}

/* Returns where the items of a BF.INSERT begin; 0: it is no plain add. What
 * creates a filter has INCARNATION, and adds to filters that forget have PLACED
 * or AT. */
static size_t
insert_items(const struct slice *argv, size_t argc)
{
    size_t at = 2;

    while (at < argc) {
        int64_t number;

        if (slice_is_word(argv[at], "items")) {
            return at + 1;
        }
        if (slice_is_word(argv[at], "incarnation") ||
            slice_is_word(argv[at], "at") ||
            slice_is_word(argv[at], "placed")) {
            return 0;
        }
        if (stands_alone(argv[at])) {
            at++;
        } else if (slice_is_word(argv[at], "deletable")) {
            at += at + 1 < argc && slice_to_i64(argv[at + 1], &number) ? 2 : 1;
        } else {
            at += 2;
        }
    }
    return 0;
}

/* Returns false if these words are no command of a log. */
static bool
look_at(const struct slice *argv, size_t argc, struct look *ret_look)
{
    const struct command *command = command_find(argv[0]);
    struct look look = { KIND_OTHER, 2, command };

    if (command == NULL || !command_arity_fits(command, argc)) {
        return false;
    }
    switch (command->id) {
    case CMD_ID_BF_ADD:
    case CMD_ID_BF_MADD:
        look.kind = KIND_ADD;
        break;
    case CMD_ID_BF_INSERT:
        look.items = insert_items(argv, argc);
        look.kind = look.items > 0 ? KIND_ADD : KIND_OTHER;
        break;
    case CMD_ID_SELECT:
        look.kind = KIND_SELECT;
        break;
    case CMD_ID_SWAPDB:
        look.kind = KIND_SWAP;
        break;
    case CMD_ID_MULTI:
    case CMD_ID_EXEC:
    case CMD_ID_REPLCONF:
        look.kind = KIND_SKIP;
        break;
    default:
        break;
    }
    *ret_look = look;
    return true;
}

/* Whether a command leaves the life of its key as it is. */
static bool
keeps_life(unsigned id)
{
    return id == CMD_ID_PEXPIREAT || id == CMD_ID_PERSIST ||
           id == CMD_ID_EXPIRE || id == CMD_ID_PEXPIRE || id == CMD_ID_EXPIREAT;
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
    name = note(toucher->sift, toucher->db, toucher->argv[position]);
    if (name == NULL) {
        toucher->failed = true;
    } else {
        name->touched = true;
    }
}

/* Notes that the command changes the lives of its keys. False: no memory. */
static bool
touch_keys(struct merge_sift *sift, const struct look *look,
           const struct slice *argv, size_t argc)
{
    struct toucher toucher = {
        .sift = sift, .argv = argv, .db = (uint32_t)sift->db, .last = argc
    };
    unsigned id = look->command->id;

    if (keeps_life(id) || look->command->keys.first == 0) {
        return true;
    }
    if (id == CMD_ID_MOVE || id == CMD_ID_COPY) {
        toucher.db = (uint32_t)ANY_DB;
        sift->any_db = true;
    }
    if (id == CMD_ID_COPY) {
        toucher.first = 2;
    } else if (id == CMD_ID_BF_MERGE) {
        toucher.last = 1;
    }
    command_each_key(look->command, argc, touch, &toucher);
    return !toucher.failed;
}

static int
note_command(struct merge_sift *sift, const struct slice *argv, size_t argc)
{
    struct look look;

    if (!look_at(argv, argc, &look)) {
        return EINVAL;
    }
    switch (look.kind) {
    case KIND_ADD:
        return note(sift, (uint32_t)sift->db, argv[1]) != NULL ? 0 : ENOMEM;
    case KIND_SKIP:
        return 0;
    case KIND_SELECT:
        return slice_to_u64(argv[1], &sift->db) && sift->db < UINT32_MAX
                   ? 0
                   : EINVAL;
    case KIND_SWAP:
        sift->all_aside = true;
        return 0;
    default:
        return touch_keys(sift, &look, argv, argc) ? 0 : ENOMEM;
    }
}

/* ---- commands for a client ----------------------------------------------- */

/* Whether a word of a BF.INSERT, which has a value, is for a log only. */
static bool
is_logs_own(struct slice word)
{
    static const char *const own[] = { "at",         "stripes",     "lines",
                                       "layout",     "incarnation", "growth",
                                       "fingerprint" };

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (slice_is_word(word, own[i])) {
            return true;
        }
    }
    return false;
}

/* Appends every second word, from the second on: the items of PLACED. */
static size_t
put_placed(struct slice *to, const struct slice *argv, size_t argc, size_t at)
{
    size_t count = 0;

    for (size_t i = at + 1; i < argc; i += 2) {
        to[count++] = argv[i];
    }
    return count;
}

static size_t
plain_insert(struct slice *to, const struct slice *argv, size_t argc)
{
    size_t count = 2;
    size_t at = 2;

    memcpy(to, argv, 2 * sizeof(*to));
    while (at < argc) {
        struct slice word = argv[at++];

        if (slice_is_word(word, "placed")) {
            to[count++] = slice_lit("ITEMS");
            return count + put_placed(to + count, argv, argc, at);
        }
        if (slice_is_word(word, "items")) {
            memcpy(to + count, argv + at - 1, (argc - at + 1) * sizeof(*to));
            return count + argc - at + 1;
        }
        if (is_logs_own(word)) {
            at++;
        } else {
            to[count++] = word;
            if (!stands_alone(word) && at < argc) {
                to[count++] = argv[at++];
            }
        }
    }
    return count;
}

/* Writes the command as a client may send it. Returns how many words that are,
 * at most argc. */
static size_t
plain(struct slice *to, unsigned id, const struct slice *argv, size_t argc)
{
    if (id == CMD_ID_BF_INSERT) {
        return plain_insert(to, argv, argc);
    }
    if (id == CMD_ID_BF_MDEL && argc > 2) {
        memcpy(to, argv, 2 * sizeof(*to));
        return 2 + put_placed(to + 2, argv, argc, 3);
    }
    if (argc > 3 && slice_is_word(argv[argc - 2], "incarnation")) {
        argc -= 2;
    }
    memcpy(to, argv, argc * sizeof(*to));
    return argc;
}

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
    const struct merge_name *name = find(sift, (uint32_t)sift->db, key);
    bool offered = name != NULL && !name->touched && name->incarnation != 0 &&
                   !sift->all_aside &&
                   (!sift->any_db || find(sift, (uint32_t)ANY_DB, key) == NULL);

    return offered ? name : NULL;
}

static int
set_aside(struct merge_sift *sift, const struct look *look,
          const struct slice *argv, size_t argc,
          const struct merge_sift_hooks *hooks)
{
    size_t changes = look->kind == KIND_ADD ? argc - look->items : 1;
    size_t count;

    if (!reserve_words(sift, argc)) {
        return ENOMEM;
    }
    count = plain(sift->words, look->command->id, argv, argc);
    CHECK(count <= argc);
    return hooks->aside(hooks->ctx, (uint32_t)sift->db, sift->words, count,
                        changes)
               ? 0
               : ECANCELED;
}

static int
split_command(struct merge_sift *sift, const struct slice *argv, size_t argc,
              const struct merge_sift_hooks *hooks)
{
    const struct merge_name *name;
    struct look look;

    if (!look_at(argv, argc, &look)) {
        return EINVAL;
    }
    if (look.kind == KIND_SELECT) {
        return slice_to_u64(argv[1], &sift->db) ? 0 : EINVAL;
    }
    if (look.kind == KIND_SKIP) {
        return 0;
    }
    name = look.kind == KIND_ADD ? find_offered(sift, argv[1]) : NULL;
    if (name == NULL) {
        return set_aside(sift, &look, argv, argc, hooks);
    }
    for (size_t i = look.items; i < argc; i++) {
        if (!hooks->offer(hooks->ctx, name, argv[i])) {
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
    static const struct parse_limits limits = { SIZE_MAX, SIZE_MAX, SIZE_MAX,
                                                false };
    size_t at = 0;
    int error = 0;

    sift->db = 0;
    while (at < commands.len && error == 0) {
        size_t begin = at;

        batch_clear(&sift->batch);
        if (scan_commands(commands, &limits, &sift->batch, &at) != OK) {
            return ENOMEM;
        }
        if (at == begin) {
            return EINVAL;
        }
        for (uint32_t i = 0; i < sift->batch.count && error == 0; i++) {
            const struct batch_command *bytes = &sift->batch.command[i];
            const struct slice *argv = &sift->batch.argv[bytes->first];

            error = hooks != NULL
                        ? split_command(sift, argv, bytes->argc, hooks)
                        : note_command(sift, argv, bytes->argc);
        }
    }
    return error;
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
