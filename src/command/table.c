/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table, expanded from tbl/commands.def, and an index over it: an open
 * hash of the folded names, at most half full.
 */
#include "command/table.h"

#include "command/table_args.h"

enum { INDEX_SLOTS = 1024 };

const struct command command_table[CMD_ID_COUNT] = {
#define CMD(id, nm, fn, ...)                                                   \
    [CMD_ID_##id] = { .name = nm, .handler = fn, __VA_ARGS__ },
#include "tbl/commands.def"
#undef CMD
};

static uint16_t name_index[INDEX_SLOTS]; /* id + 1; constant after init */

static uint32_t
fold_hash(uint32_t hash, struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        /* 0x20 folds letters; other bytes that it maps together are told
         * apart by the comparison. */
        hash = (hash ^ ((unsigned char)name.data[i] | 0x20U)) * 16777619U;
    }
    return hash;
}

static uint32_t
slot_of(uint32_t hash)
{
    return (hash ^ (hash >> 15)) % INDEX_SLOTS;
}

void
command_table_init(void)
{
    _Static_assert(CMD_ID_COUNT * 2 < INDEX_SLOTS, "raise INDEX_SLOTS");

    memset(name_index, 0, sizeof(name_index));
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        struct slice name = slice_of(command_table[id].name);
        uint32_t slot = slot_of(fold_hash(2166136261U, name));

        while (name_index[slot] != 0) {
            slot = (slot + 1) % INDEX_SLOTS;
        }
        name_index[slot] = (uint16_t)(id + 1);
    }
}

const struct command *
command_find(struct slice name)
{
    uint32_t slot = slot_of(fold_hash(2166136261U, name));

    while (name_index[slot] != 0) {
        const struct command *command = &command_table[name_index[slot] - 1];

        if (slice_is_word(name, command->name)) {
            return strchr(command->name, '|') == NULL ? command : NULL;
        }
        slot = (slot + 1) % INDEX_SLOTS;
    }
    return NULL;
}

const struct command *
command_find_sub(const struct command *container, struct slice sub)
{
    size_t prefix = strlen(container->name);

    for (unsigned id = command_id(container) + 1; id < CMD_ID_COUNT; id++) {
        const char *name = command_table[id].name;

        if (strncmp(name, container->name, prefix) != 0 ||
            name[prefix] != '|') {
            break;
        }
        if (slice_is_word(sub, name + prefix + 1)) {
            return &command_table[id];
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

void
command_each_key(const struct command *command, size_t argc,
                 command_key_fn visit, void *ctx)
{
    const struct command_keys *keys = &command->keys;
    size_t last;

    if (keys->first <= 0) {
        return;
    }
    last = keys->last >= 0 ? (size_t)keys->last : argc - (size_t)-keys->last;
    for (size_t at = (size_t)keys->first; at <= last && at < argc;
         at += (size_t)keys->step) {
        visit(ctx, at);
    }
}
