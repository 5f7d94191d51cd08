/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An index over the rows: an open hash of the folded names, at most half full.
 */
#include "access/table.h"

enum { INDEX_BITS = 10, INDEX_SLOTS = 1 << INDEX_BITS };

const char *const command_category_names[] = {
    "keyspace",  "read",     "write",     "set",        "sortedset",
    "list",      "hash",     "string",    "bitmap",     "hyperloglog",
    "geo",       "stream",   "pubsub",    "admin",      "fast",
    "slow",      "blocking", "dangerous", "connection", "transaction",
    "scripting", "bloom",
};
enum {
    CATEGORIES =
        sizeof(command_category_names) / sizeof(command_category_names[0])
};
_Static_assert(1U << (CATEGORIES - 1) == ACL_BLOOM, "one name a category");

const char *
command_category_name(unsigned bit)
{
    return bit < CATEGORIES ? command_category_names[bit] : NULL;
}

/* The rows and their index; constant after command_table_init(). */
static const struct command *rows;
static struct {
    uint16_t id; /* + 1; 0: free */
    uint16_t len;
} name_index[INDEX_SLOTS];

/* The forbidden commands; constant once users are made. */
static uint64_t forbidden[(CMD_ID_COUNT + 63) / 64];
static bool any_forbidden;

/* Returns where the search for a name begins, from its first and last bytes,
 * which may overlap, and its length. 0x20 folds letters. It also makes some
 * other bytes equal; the comparison of the names tells these apart. */
static uint32_t
slot_of(struct slice name)
{
    const uint64_t fold = 0x2020202020202020U;
    const uint64_t odd = 0x9E3779B97F4A7C15U;
    const char *at = name.data;
    uint64_t first = 0;
    uint64_t last = 0;

    if (name.len >= 8) {
        first = slice_load64(at);
        last = slice_load64(at + name.len - 8);
    } else if (name.len >= 4) {
        first = slice_load32(at);
        last = slice_load32(at + name.len - 4);
    } else if (name.len > 0) {
        first = (unsigned char)at[0] | (uint64_t)(unsigned char)at[name.len / 2]
                                           << 8;
        last = (unsigned char)at[name.len - 1];
    }
    first = ((first | fold) + name.len) * odd;
    return (uint32_t)(((first ^ first >> 32 ^ (last | fold)) * odd) >>
                      (64 - INDEX_BITS));
}

void
command_table_init(const struct command table[CMD_ID_COUNT])
{
    _Static_assert(CMD_ID_COUNT * 2 < INDEX_SLOTS, "raise INDEX_BITS");

    rows = table;
    memset(forbidden, 0, sizeof(forbidden));
    any_forbidden = false;
    memset(name_index, 0, sizeof(name_index));
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        struct slice name = slice_of(rows[id].name);
        uint32_t slot = slot_of(name);

        while (name_index[slot].id != 0) {
            slot = (slot + 1) % INDEX_SLOTS;
        }
        name_index[slot].id = (uint16_t)(id + 1);
        name_index[slot].len = (uint16_t)name.len;
    }
}

const struct command *
command_at(unsigned id)
{
    CHECK(rows != NULL && id < CMD_ID_COUNT);
    return &rows[id];
}

/* First compares the name as it is, since most clients spell names as the table
 * does. */
const struct command *
command_find(struct slice name)
{
    uint32_t slot = slot_of(name);

    for (; name_index[slot].id != 0; slot = (slot + 1) % INDEX_SLOTS) {
        const struct command *command = &rows[name_index[slot].id - 1];
        struct slice spelt = { command->name, name_index[slot].len };

        if (slice_equal(name, spelt) || slice_is_word(name, command->name)) {
            return memchr(name.data, '|', name.len) == NULL ? command : NULL;
        }
    }
    return NULL;
}

const struct command *
command_find_sub(const struct command *container, struct slice sub)
{
    size_t prefix = strlen(container->name);

    for (unsigned id = command_id(container) + 1; id < CMD_ID_COUNT; id++) {
        const char *name = rows[id].name;

        if (strncmp(name, container->name, prefix) != 0 ||
            name[prefix] != '|') {
            break;
        }
        if (slice_is_word(sub, name + prefix + 1)) {
            return &rows[id];
        }
    }
    return NULL;
}

const struct command *
command_resolve(const struct slice *argv, size_t argc, unsigned *ret_words)
{
    const struct command *command = command_find(argv[0]);

    *ret_words = 1;
    if (command != NULL && command->container && argc > 1) {
        *ret_words = 2;
        command = command_find_sub(command, argv[1]);
    }
    return command;
}

size_t
command_key_from(const struct command *command, size_t argc, size_t from)
{
    const struct command_keys *keys = &command->keys;
    size_t at = (size_t)keys->first;
    size_t last;

    if (keys->first <= 0) {
        return 0;
    }
    last = keys->last >= 0 ? (size_t)keys->last : argc - (size_t)-keys->last;
    if (from > at) {
        size_t step = (size_t)keys->step;

        at += (from - at + step - 1) / step * step;
    }
    return at <= last && at < argc ? at : 0;
}

void
command_each_key(const struct command *command, size_t argc,
                 command_key_fn visit, void *ctx)
{
    for (size_t at = command_key_from(command, argc, 0); at > 0;
         at = command_key_from(command, argc, at + 1)) {
        visit(ctx, at);
    }
}

/* The subcommands of a container follow it. */
bool
command_forbid(struct slice name)
{
    const struct command *command = command_find(name);
    size_t len;

    if (command == NULL) {
        return false;
    }
    len = strlen(command->name);
    for (unsigned id = command->id;
         id < CMD_ID_COUNT && strncmp(rows[id].name, command->name, len) == 0 &&
         (id == command->id || rows[id].name[len] == '|');
         id++) {
        forbidden[id / 64] |= (uint64_t)1 << id % 64;
    }
    any_forbidden = true;
    return true;
}

bool
command_is_forbidden(unsigned id)
{
    return (forbidden[id / 64] >> id % 64 & 1) != 0;
}

bool
command_any_forbidden(void)
{
    return any_forbidden;
}
