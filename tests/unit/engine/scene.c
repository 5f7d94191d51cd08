/* SPDX-License-Identifier: BSD-3-Clause */
#include "scene.h"

bool
arrive(void *ctx, const struct notice *notice,
       uint64_t to __attribute__((unused)),
       uint64_t until_ns __attribute__((unused)))
{
    struct scene *scene = ctx;

    buf_printf(&scene->seen, "%d %llu %.*s %.*s\n", (int)notice->kind,
               (unsigned long long)notice->hold_until, (int)notice->channel.len,
               notice->channel.data, (int)notice->payload.len,
               notice->payload.data);
    return true;
}

void
lose(void *ctx)
{
    struct scene *scene = ctx;

    buf_printf(&scene->seen, "lost\n");
}

static void
scene_on_mail(uv_async_t *async)
{
    (void)mailbox_collect(async->data);
    mailbox_deliver(async->data);
}

struct scene *
scene_new(void)
{
    static const unsigned resp = 3;
    struct scene *scene = mem_zalloc(sizeof(*scene));
    struct inbox_reader reader = { .deliver = arrive,
                                   .lost = lose,
                                   .ctx = scene };
    struct service *service;
    struct tracking_limits limits;

    scene->rig = rig_new();
    service = &scene->rig->service;
    limits = (struct tracking_limits){ &service->tracking_keys_max,
                                       &service->tracking_bytes_max };
    service->pubsub = pubsub_new(1);
    pubsub_announce(service->pubsub, &service->observed, OBSERVED_FILTERS);
    service->tracking = tracking_new(1, &limits);
    service->monitor = monitor_new(1);
    service->inbox_limit_bytes = 1 << 20;
    service->inboxes = inboxes_new(1, &service->inbox_limit_bytes);
    assert_int_equal(0, uv_loop_init(&scene->loop.uv));
    mailbox_init(&scene->loop.mailbox, &scene->loop, &scene->loop.uv,
                 scene_on_mail);
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

void
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

void
want_events(struct scene *scene, const char *letters)
{
    set_option(scene->rig, "notify-keyspace-events", letters);
    observe_flag(&scene->rig->service, OBSERVED_EVENTS, letters[0] != '\0');
}

void
listen_to(struct scene *scene, const char *pattern)
{
    assert_int_equal(PUBSUB_OK,
                     pubsub_subscribe(scene->rig->service.pubsub,
                                      &scene->receiver, PUBSUB_PATTERN,
                                      slice_of(pattern)));
}

void
expect_seen(struct scene *scene, const char *want)
{
    observe_close(scene->rig->worker);
    observe_wake(scene->rig->worker);
    (void)uv_run(&scene->loop.uv, UV_RUN_NOWAIT);
    buf_append(&scene->seen, "", 1);
    assert_string_equal(want, scene->seen.data);
    scene->seen.len = 0;
}
