/* SPDX-License-Identifier: BSD-3-Clause
 *
 * observe.c, from what a handler says to what an inbox holds, with a mailbox
 * of a loop that only this test runs.
 */
#include "command/observe.h"

#include "admin/monitor.h"
#include "admin/pubsub.h"
#include "admin/tracking.h"
#include "base/hash.h"
#include "net/loop.h"
#include "rig.h"

/* A service with its observers, and one line for each notice that arrives:
 * "<kind> <hold> <channel> <payload>". */
struct scene {
    struct rig *rig;
    struct loop loop;
    struct receiver receiver;
    struct request req;
    struct buf seen;
};

static void
arrive(void *ctx, const struct notice *notice,
       uint64_t to __attribute__((unused)))
{
    struct scene *scene = ctx;

    buf_printf(&scene->seen, "%d %llu %.*s %.*s\n", (int)notice->kind,
               (unsigned long long)notice->hold_until, (int)notice->channel.len,
               notice->channel.data, (int)notice->payload.len,
               notice->payload.data);
}

static void
lose(void *ctx)
{
    struct scene *scene = ctx;

    buf_printf(&scene->seen, "lost\n");
}

static struct scene *
scene_new(void)
{
    static const unsigned resp = 3;
    struct scene *scene = mem_zalloc(sizeof(*scene));
    struct inbox_reader reader = { arrive, lose, scene };
    struct service *service;
    struct tracking_limits limits;

    scene->rig = rig_new();
    service = &scene->rig->service;
    limits = (struct tracking_limits){ &service->tracking_keys_max,
                                       &service->tracking_bytes_max };
    service->pubsub = pubsub_new(1);
    service->tracking = tracking_new(1, &limits);
    service->monitor = monitor_new(1);
    service->inbox_limit_bytes = 1 << 20;
    service->inboxes = inboxes_new(1, &service->inbox_limit_bytes);
    assert_int_equal(0, uv_loop_init(&scene->loop.uv));
    mailbox_init(&scene->loop.mailbox, &scene->loop);
    inboxes_attach(service->inboxes, 0, &scene->loop.mailbox, &reader);
    scene->receiver.resp = &resp;
    scene->receiver.id = 7;
    scene->rig->session.id = 9;
    scene->rig->worker->session = &scene->rig->session;
    scene->req = (struct request){ .worker = scene->rig->worker,
                                   .service = service,
                                   .session = &scene->rig->session,
                                   .keyspace = service->keyspace };
    return scene;
}

static void
scene_free(struct scene *scene)
{
    struct service *service = &scene->rig->service;

    pubsub_leave(service->pubsub, &scene->receiver);
    tracking_leave(service->tracking, &scene->receiver);
    mailbox_close(&scene->loop.mailbox);
    (void)uv_run(&scene->loop.uv, UV_RUN_DEFAULT);
    mailbox_fini(&scene->loop.mailbox);
    assert_int_equal(0, uv_loop_close(&scene->loop.uv));
    inboxes_free(service->inboxes);
    monitor_free(service->monitor);
    tracking_free(service->tracking);
    pubsub_free(service->pubsub);
    rig_free(scene->rig);
    buf_free(&scene->seen);
    mem_free(scene);
}

static void
want_events(struct scene *scene, const char *letters)
{
    set_option(scene->rig, "notify-keyspace-events", letters);
    observe_flag(&scene->rig->service, OBSERVED_EVENTS, letters[0] != '\0');
}

static void
listen_to(struct scene *scene, const char *pattern)
{
    assert_int_equal(PUBSUB_OK,
                     pubsub_subscribe(scene->rig->service.pubsub,
                                      &scene->receiver, PUBSUB_PATTERN,
                                      slice_of(pattern)));
}

static struct key
key_of(const char *name)
{
    return (struct key){ slice_of(name), hash_name(slice_of(name)), 3 };
}

/* Hands over as a command would, runs the loop, and compares what arrived. */
static void
expect_seen(struct scene *scene, const char *want)
{
    observe_close(scene->rig->worker);
    observe_wake(scene->rig->worker);
    (void)uv_run(&scene->loop.uv, UV_RUN_NOWAIT);
    buf_append(&scene->seen, "", 1);
    assert_string_equal(want, scene->seen.data);
    scene->seen.len = 0;
}

TEST(nothing_is_gathered_while_nobody_looks)
{
    struct scene *scene = scene_new();
    struct key key = key_of("k");

    listen_to(scene, "*");
    observe_change(&scene->req, &key, CONF_EVENT_GENERIC, "del");
    observe_expired(scene->rig->worker, &key);
    observe_flush(&scene->req);
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
    observe_change(&scene->req, &key, CONF_EVENT_GENERIC, "del");
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
    observe_change(&scene->req, &key, CONF_EVENT_GENERIC, "del");
    observe_change(&scene->req, &key, CONF_EVENT_GENERIC, NULL);
    observe_expired(scene->rig->worker, &key);
    expect_seen(scene, "0 0 __keyspace@3__:k expired\n");
    want_events(scene, "Ed");
    observe_change(&scene->req, &key, CONF_EVENT_MODULE, "bloom.add");
    observe_event(&scene->req, &key, CONF_EVENT_KEY_MISS, "keymiss");
    expect_seen(scene, "0 0 __keyevent@3__:bloom.add k\n");
    want_events(scene, "");
    observe_change(&scene->req, &key, CONF_EVENT_MODULE, "bloom.add");
    expect_seen(scene, "");
    scene_free(scene);
}

TEST(what_repeats_a_history_tells_nobody)
{
    struct scene *scene = scene_new();
    struct key key = key_of("k");

    want_events(scene, "KEA");
    listen_to(scene, "*");
    scene->req.obey = true;
    observe_change(&scene->req, &key, CONF_EVENT_GENERIC, "del");
    observe_event(&scene->req, &key, CONF_EVENT_GENERIC, "del");
    scene->rig->worker->alone = true;
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
    observe_change(&scene->req, &key, CONF_EVENT_GENERIC, "del");
    expect_seen(scene, "2 0 k \n");
    observe_expired(scene->rig->worker, &key);
    expect_seen(scene, "2 0 k \n");
    observe_flush(&scene->req);
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
TEST(what_is_removed_outside_of_any_command_is_handed_over_at_once)
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
