/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which commands are asked for the lines that they will read.
 */
#include "engine/ahead.h"

#include "base/hash.h"
#include "rig.h"

static struct {
    unsigned calls;
    char items[64];
} asked;

static void
note_item(const struct entry *entry, const struct slice *argv, size_t argc)
{
    assert_true(argc == 3 && slice_equal(argv[1], entry_name(entry)));
    asked.calls++;
    (void)strncat(asked.items, argv[2].data, argv[2].len);
}

/* Keys k0, k1, ...: the first run has two commands. */
static void
fetch(struct rig *rig, uint32_t count)
{
    static const struct slice argv[][6] = {
        { { "c", 1 },
          { "k0", 2 },
          { "a", 1 },
          { "c", 1 },
          { "k0", 2 },
          { "b", 1 } },
        { { "c", 1 }, { "k1", 2 }, { "c", 1 } },
        { { "c", 1 }, { "k2", 2 }, { "d", 1 } },
        { { "c", 1 }, { "k3", 2 }, { "e", 1 } },
    };
    static const struct command tells = { .name = "c", .ahead = note_item };
    static const struct command cannot = { .name = "c" };
    struct run run[4];
    struct ahead ahead = { .count = count };

    for (uint32_t i = 0; i < 4; i++) {
        run[i] = run_of(i == 3 ? &cannot : &tells, 1, argv[i], 3);
        ahead.run[i] = &run[i];
        ahead.key[i] = key_named(argv[i][1], 0);
    }
    run[0].count = 2;
    asked.calls = 0;
    asked.items[0] = '\0';
    ahead_fetch(&ahead, rig->service.keyspace);
}

TEST(each_command_on_a_key_that_is_there_is_asked)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k0 x; BF.ADD k2 x; BF.ADD k3 x", true);
    fetch(rig, 4);
    assert_string_equal("abd", asked.items); /* k1 is missing, k3 cannot tell */
    rig_free(rig);
}

TEST(few_keys_are_not_looked_up_ahead)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.ADD k0 x; BF.ADD k2 x; BF.ADD k3 x", true);
    fetch(rig, AHEAD_FROM - 1);
    assert_int_equal(0, asked.calls);
    rig_free(rig);
}
