/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which groups need the world, and which commands a log may consist of; what
 * they do is in test_replay.c and test_apply.c.
 */
#include "replay/obey.h"

#include "../engine/group_help.h"

struct scene {
    struct rig *rig;
    struct obey obey;
    char reason[256];
};

static struct scene *
scene_new(bool alone)
{
    struct scene *scene = mem_zalloc(sizeof(*scene));

    scene->rig = rig_new();
    scene->rig->service.journal = NULL;
    obey_init(&scene->obey, &scene->rig->service, 0);
    scene->obey.worker->alone = alone;
    return scene;
}

static void
scene_free(struct scene *scene)
{
    obey_fini(&scene->obey);
    rig_free(scene->rig);
    mem_free(scene);
}

static bool
needs_world(struct scene *scene, const char *text)
{
    struct buf group = { 0 };
    bool needs;

    encode(&group, text);
    needs = obey_needs_world(&scene->obey, buf_slice(&group));
    buf_free(&group);
    return needs;
}

static bool
execute(struct scene *scene, const char *text)
{
    struct buf group = { 0 };
    bool done;

    scene->reason[0] = '\0';
    encode(&group, text);
    done = obey_group(&scene->obey, buf_slice(&group), 0, scene->reason,
                      sizeof(scene->reason));
    buf_free(&group);
    return done;
}

TEST(commands_that_touch_more_than_their_keys_need_the_world)
{
    struct scene *scene = scene_new(true);
    char many[4000] = "";

    assert_false(needs_world(scene, ""));
    assert_false(needs_world(scene, "SELECT 1; BF.ADD k a; BF.ADD k b; DEL k"));
    assert_false(needs_world(scene, "MULTI; BF.ADD FLUSHALL FLUSHALL; EXEC"));
    assert_false(needs_world(scene, "nonsense; REPLCONF ACK 1"));
    assert_true(needs_world(scene, "FLUSHALL"));
    assert_true(needs_world(scene, "BF.ADD k a; flushdb"));
    assert_true(needs_world(scene, "MULTI; BF.ADD k a; SwapDB 0 1; EXEC"));
    assert_true(needs_world(scene, "BF.ADD k a; REPLCONF history x"));
    for (int i = 0; i < 300; i++) { /* more than a batch */
        (void)strcat(many, "DEL k;");
    }
    assert_false(needs_world(scene, many));
    (void)strcat(many, "FLUSHDB");
    assert_true(needs_world(scene, many));
    assert_false(obey_needs_world(&scene->obey, slice_lit("FLUSHALL\r\n")));
    scene_free(scene);
}

/* A name that was judged must not vouch for another command of that name. */
TEST(only_one_replconf_belongs_into_a_log)
{
    static const char id[] = "0123456789012345678901234567890123456789";
    struct scene *scene = scene_new(true);
    char text[256];

    (void)snprintf(text, sizeof(text), "REPLCONF HISTORY %s", id);
    assert_true(execute(scene, text));
    (void)snprintf(text, sizeof(text), "replconf history %s; REPLCONF ACK 5",
                   id);
    assert_false(execute(scene, text));
    assert_non_null(strstr(scene->reason, "is neither a write nor SELECT"));
    assert_false(execute(scene, "REPLCONF"));
    assert_non_null(strstr(scene->reason, "is neither a write nor SELECT"));
    assert_false(execute(scene, "REPLCONF HISTORY short"));
    assert_string_equal("replconf failed: ERR syntax error", scene->reason);
    scene_free(scene);
}

TEST(transactions_mean_nothing_to_who_is_alone)
{
    for (int alone = 0; alone < 2; alone++) {
        struct scene *scene = scene_new(alone);

        assert_true(execute(scene, "MULTI; FLUSHALL"));
        assert_int_equal(alone, scene->obey.session.txn == NULL);
        assert_int_equal(alone, execute(scene, "MULTI"));
        assert_true(execute(scene, "EXEC"));
        assert_int_equal(alone, execute(scene, "EXEC"));
        scene_free(scene);
    }
}

TEST(without_memory_a_group_fails_and_says_so)
{
    struct scene *scene = scene_new(true);
    struct buf group = { 0 };

    encode(&group, "BF.ADD k a");
    mem_fail_at(1);
    assert_false(obey_group(&scene->obey, buf_slice(&group), 0, scene->reason,
                            sizeof(scene->reason)));
    assert_true(mem_fail_clear());
    assert_string_equal("not enough memory", scene->reason);
    buf_free(&group);
    scene_free(scene);
}
