/* SPDX-License-Identifier: BSD-3-Clause
 *
 * observe.c, from what a handler says to what an inbox holds, with a mailbox
 * of a loop that only this test runs.
 */
#include "engine/observe.h"

#include "base/hash.h"
#include "scene.h"

static struct key
key_of(const char *name)
{
    return key_named(slice_of(name), 3);
}

TEST(nothing_is_gathered_while_nobody_looks)
{
    struct scene *scene = scene_new();
    struct key key = key_of("k");

    listen_to(scene, "*");
    observe_change(&scene->req, &key, FEED_NOTHING, CONF_EVENT_GENERIC, "del");
    observe_expired(scene->rig->worker, &key);
    observe_flush(&scene->req, FEED_ALL_DBS, FEED_GONE);
    assert_int_equal(0, scene->rig->worker->notices.count);
    expect_seen(scene, "");
    scene_free(scene);
}

TEST(an_event_goes_to_the_key_and_then_to_the_event_and_waits_for_the_disk)
{
    struct scene *scene = scene_new();
    struct key key = key_of("k");

    want_events(scene, "KEg");
    listen_to(scene, "*");
    scene->rig->worker->hold = 55;
    observe_change(&scene->req, &key, FEED_NOTHING, CONF_EVENT_GENERIC, "del");
    expect_seen(scene, "0 55 __keyspace@3__:k del\n"
                       "0 55 __keyevent@3__:del k\n");
    scene_free(scene);
}

TEST(only_the_wanted_classes_and_channels_are_published)
{
    struct scene *scene = scene_new();
    struct key key = key_of("k");

    listen_to(scene, "*");
    want_events(scene, "Kx");
    observe_change(&scene->req, &key, FEED_NOTHING, CONF_EVENT_GENERIC, "del");
    observe_change(&scene->req, &key, FEED_NOTHING, CONF_EVENT_GENERIC, NULL);
    observe_expired(scene->rig->worker, &key);
    expect_seen(scene, "0 0 __keyspace@3__:k expired\n");
    want_events(scene, "Ed");
    observe_change(&scene->req, &key, FEED_NOTHING, CONF_EVENT_MODULE,
                   "bloom.add");
    observe_event(&scene->req, &key, CONF_EVENT_KEY_MISS, "keymiss");
    expect_seen(scene, "0 0 __keyevent@3__:bloom.add k\n");
    want_events(scene, "");
    observe_change(&scene->req, &key, FEED_NOTHING, CONF_EVENT_MODULE,
                   "bloom.add");
    expect_seen(scene, "");
    scene_free(scene);
}

TEST(replay_before_the_start_sends_no_events)
{
    struct scene *scene = scene_new();
    struct key key = key_of("k");

    want_events(scene, "KEA");
    listen_to(scene, "*");
    scene->req.obey = true;
    scene->rig->worker->alone = true;
    observe_change(&scene->req, &key, FEED_NOTHING, CONF_EVENT_GENERIC, "del");
    observe_event(&scene->req, &key, CONF_EVENT_GENERIC, "del");
    observe_expired(scene->rig->worker, &key);
    expect_seen(scene, "");
    scene->rig->worker->alone = false;
    scene_free(scene);
}

TEST(a_change_invalidates_and_a_flush_does_so_for_everything)
{
    struct scene *scene = scene_new();
    struct tracking_options options = { .bcast = true };
    struct key key = key_of("k");

    assert_true(
        tracking_on(scene->rig->service.tracking, &scene->receiver, &options));
    observe_count(&scene->rig->service, OBSERVED_TRACKING, true);
    observe_change(&scene->req, &key, FEED_NOTHING, CONF_EVENT_GENERIC, "del");
    expect_seen(scene, "2 0 k \n");
    observe_expired(scene->rig->worker, &key);
    expect_seen(scene, "2 0 k \n");
    observe_flush(&scene->req, FEED_ALL_DBS, FEED_GONE);
    expect_seen(scene, "3 0  \n");
    observe_count(&scene->rig->service, OBSERVED_TRACKING, false);
    assert_true(observed_by(&scene->rig->service) == 0);
    scene_free(scene);
}

TEST(flags_and_numbers_of_clients_do_not_touch_each_other)
{
    struct service service = { 0 };

    for (int i = 0; i < 300; i++) {
        observe_count(&service, OBSERVED_TRACKING, true);
        observe_count(&service, OBSERVED_MONITOR, true);
    }
    observe_flag(&service, OBSERVED_PAUSE, true);
    assert_true((observed_by(&service) & OBSERVED_EVENTS) == 0);
    observe_flag(&service, OBSERVED_EVENTS, true);
    observe_flag(&service, OBSERVED_PAUSE, false);
    for (int i = 0; i < 300; i++) {
        assert_true((observed_by(&service) & OBSERVED_TRACKING) != 0);
        observe_count(&service, OBSERVED_TRACKING, false);
    }
    assert_true((observed_by(&service) & OBSERVED_TRACKING) == 0);
    assert_true((observed_by(&service) & OBSERVED_MONITOR) != 0);
    for (int i = 0; i < 300; i++) {
        observe_count(&service, OBSERVED_MONITOR, false);
    }
    observe_flag(&service, OBSERVED_EVENTS, false);
    assert_true(observed_by(&service) == 0);
}

/* As the reclaiming timer does it: there is no command whose end would close
 * the list. */
TEST(removals_outside_of_any_command_are_handed_over_at_once)
{
    struct scene *scene = scene_new();
    struct key key = key_of("k");

    want_events(scene, "Kx");
    listen_to(scene, "*");
    scene->rig->worker->session = NULL;
    observe_removed_alone(scene->rig->worker, &key, CONF_EVENT_EXPIRED,
                          "expired");
    assert_int_equal(0, scene->rig->worker->notices.count);
    expect_seen(scene, "0 0 __keyspace@3__:k expired\n");
    scene_free(scene);
}
