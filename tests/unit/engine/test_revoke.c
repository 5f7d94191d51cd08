/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which connections of a loop close after a change of users.
 */
#include "engine/revoke.h"

#include "../access/users_help.h"
#include "access/users.h"
#include "engine/client.h"
#include "scene.h"

/* The scene's loop with one client, by hand. */
struct place {
    struct scene *scene;
    struct users *users;
    struct client client;
};

static void
place_init(struct place *place, const char *rules)
{
    struct worker *worker;

    memset(place, 0, sizeof(*place));
    place->scene = scene_new();
    place->users = place->scene->rig->service.users;
    worker = place->scene->rig->worker;
    worker->loop = &place->scene->loop;
    session_init(&place->client.session, true);
    session_set_user(&place->client.session,
                     users_must(place->users, "u", rules));
    place->client.conn.loop = &place->scene->loop;
    place->client.session.conn = &place->client.conn;
    place->client.session.receiver.conn = &place->client.conn;
    place->scene->loop.conns.first = &place->client.conn;
    revoke_lost(worker);
}

/* Returns how many connections are told to close. */
static uint32_t
revoked(struct place *place)
{
    struct worker *worker = place->scene->rig->worker;
    uint32_t before = place->scene->loop.mailbox.count;

    revoke_lost(worker);
    assert_true(worker->users_seen == place->users->changes);
    return place->scene->loop.mailbox.count - before;
}

static void
place_fini(struct place *place)
{
    observe_leave(place->scene->rig->worker, &place->client.session);
    session_fini(&place->client.session);
    place->scene->loop.conns.first = NULL;
    place->scene->rig->worker->loop = NULL;
    scene_free(place->scene);
}

static void
subscribe(struct place *place, enum pubsub_kind kind, const char *name)
{
    assert_int_equal(PUBSUB_OK,
                     pubsub_subscribe(place->scene->rig->service.pubsub,
                                      &place->client.session.receiver, kind,
                                      slice_of(name)));
}

TEST(a_monitor_closes_when_its_user_may_not_monitor)
{
    static const char *const rules[] = { "-monitor", "reset" };

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct place place;

        place_init(&place, "on +monitor +ping");
        monitor_join(place.scene->rig->service.monitor,
                     &place.client.session.receiver);
        (void)users_must(place.users, "u", "-ping");
        assert_int_equal(0, revoked(&place));
        (void)users_must(place.users, "u", rules[i]);
        assert_int_equal(1, revoked(&place));
        place_fini(&place);
    }
}

TEST(a_connection_closes_with_its_user)
{
    struct place place;

    place_init(&place, "on +@all");
    assert_int_equal(0, revoked(&place));
    assert_true(users_delete(place.users, slice_lit("u")));
    assert_int_equal(1, revoked(&place));
    place_fini(&place);
}

TEST(a_connection_that_closes_behind_its_reply_is_left_alone)
{
    struct place place;

    place_init(&place, "on +@all");
    place.client.session.closing = true;
    assert_true(users_delete(place.users, slice_lit("u")));
    assert_int_equal(0, revoked(&place));
    place_fini(&place);
}

TEST(a_subscriber_closes_when_it_loses_a_channel)
{
    struct place place;

    place_init(&place, "on +@all &a* &b");
    subscribe(&place, PUBSUB_CHANNEL, "ax");
    subscribe(&place, PUBSUB_PATTERN, "a*");
    users_must(place.users, "u", "resetchannels &a* +ping");
    assert_int_equal(0, revoked(&place));
    users_must(place.users, "u", "resetchannels &ax");
    assert_int_equal(1, revoked(&place));
    assert_false(receiver_subscribes(&place.client.session.receiver));
    place_fini(&place);
}

TEST(other_users_change_nothing)
{
    struct place place;

    place_init(&place, "on +@all &a");
    subscribe(&place, PUBSUB_SHARD, "a");
    users_must(place.users, "other", "on");
    assert_true(users_delete(place.users, slice_lit("other")));
    assert_int_equal(0, revoked(&place));
    users_must(place.users, "u", "resetchannels");
    assert_int_equal(1, revoked(&place));
    place_fini(&place);
}
