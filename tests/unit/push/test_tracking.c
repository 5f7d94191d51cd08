/* SPDX-License-Identifier: BSD-3-Clause */
#include "push/tracking.h"

#include "../test.h"
#include "base/hash.h"
#include "base/mem.h"

#include <string.h>

enum { LOOPS = 2, CLIENTS = 4 };

/* Replaces receiver.c, which needs a loop: notes the pushes and the cuts. */
static struct buf sent[CLIENTS];
static bool cut[CLIENTS], subscribes[CLIENTS];

void
receiver_cut(struct receiver *receiver)
{
    cut[receiver->id - 1] = true;
}

void
receiver_push(struct receiver *receiver, struct buf *bytes, uint64_t hold_until)
{
    assert_int_equal(hold_until, 5);
    buf_append_slice(&sent[receiver->id - 1], buf_slice(bytes));
}

bool
receiver_subscribes(const struct receiver *receiver)
{
    return subscribes[receiver->id - 1];
}

/* Clients 1 to 4; those with even ids are on loop 1. */
struct rig {
    struct tracking *tracking;
    _Atomic uint64_t keys, bytes;
    struct receiver receivers[CLIENTS];
    unsigned resp[CLIENTS];
    struct notice_list list;
    bool gone[CLIENTS];
};

static struct receiver *
find(void *ctx, uint64_t id)
{
    struct rig *rig = ctx;

    return rig->gone[id - 1] ? NULL : &rig->receivers[id - 1];
}

static void
rig_init(struct rig *rig)
{
    struct tracking_limits limits = { &rig->keys, &rig->bytes };

    memset(rig, 0, sizeof(*rig));
    memset(cut, 0, sizeof(cut));
    memset(subscribes, 0, sizeof(subscribes));
    rig->tracking = tracking_new(LOOPS, &limits);
    for (unsigned i = 0; i < CLIENTS; i++) {
        rig->resp[i] = 3;
        rig->receivers[i].id = i + 1;
        rig->receivers[i].loop = (i + 1) % LOOPS;
        rig->receivers[i].resp = &rig->resp[i];
    }
}

static void
rig_fini(struct rig *rig)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        tracking_leave(rig->tracking, &rig->receivers[i]);
        buf_free(&sent[i]);
    }
    tracking_free(rig->tracking);
    notice_list_fini(&rig->list);
}

static struct receiver *
client(struct rig *rig, unsigned id)
{
    return &rig->receivers[id - 1];
}

static void
reads(struct rig *rig, unsigned id, const char *name)
{
    struct slice key = slice_of(name);

    if (tracking_wants(client(rig, id))) {
        tracking_remember(rig->tracking, client(rig, id), key, hash_name(key),
                          &rig->list);
    }
}

/* Delivers all notices, and those that result from them. */
static void
deliver_all(struct rig *rig)
{
    while (rig->list.count > 0) {
        struct notice_list list = rig->list;

        rig->list = (struct notice_list){ 0 };
        for (uint32_t i = 0; i < list.count; i++) {
            struct tracking_place place = { list.posts[i].loop, &rig->list,
                                            find, rig };

            list.posts[i].notice->hold_until = 5;
            while (!tracking_deliver(rig->tracking, &place,
                                     list.posts[i].notice, list.posts[i].to,
                                     0)) {
            }
        }
        notice_list_fini(&list);
    }
}

static void
changes(struct rig *rig, unsigned by, const char *name)
{
    struct slice key = slice_of(name);

    tracking_invalidate(rig->tracking, by, key, hash_name(key), &rig->list);
    deliver_all(rig);
}

#define assert_sent(id, text)                                                  \
    do {                                                                       \
        buf_append(&sent[(id)-1], "", 1);                                      \
        assert_string_equal(sent[(id)-1].data, text);                          \
        sent[(id)-1].len = 0;                                                  \
    } while (0)

static void
turn_on(struct rig *rig, unsigned id, struct tracking_options options)
{
    options.redirect_loop = (unsigned)(options.redirect % LOOPS);
    assert_true(tracking_on(rig->tracking, client(rig, id), &options));
}

#define INVALIDATE_K ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"

TEST(a_reader_of_a_key_gets_an_invalidation_when_it_changes)
{
    struct rig rig;

    rig_init(&rig);
    turn_on(&rig, 1, (struct tracking_options){ 0 });
    turn_on(&rig, 2, (struct tracking_options){ 0 });
    reads(&rig, 1, "k");
    reads(&rig, 2, "k");
    reads(&rig, 3, "k"); /* does not track */
    changes(&rig, 1, "other");
    changes(&rig, 1, "k");
    assert_sent(1, INVALIDATE_K);
    assert_sent(2, INVALIDATE_K);
    assert_sent(3, "");
    rig.resp[0] = 2; /* has no pushes */
    reads(&rig, 1, "k");
    changes(&rig, 4, "k");
    assert_sent(1, "");
    rig_fini(&rig);
}

TEST(noloop_optin_and_optout_choose_what_is_pushed_and_remembered)
{
    struct rig rig;

    rig_init(&rig);
    turn_on(&rig, 1, (struct tracking_options){ .noloop = true });
    reads(&rig, 1, "k");
    changes(&rig, 1, "k");
    assert_sent(1, "");
    turn_on(&rig, 2, (struct tracking_options){ .optin = true });
    assert_false(tracking_wants(client(&rig, 2)));
    tracking_set_caching(client(&rig, 2), CACHING_YES);
    assert_true(tracking_wants(client(&rig, 2)));
    turn_on(&rig, 3, (struct tracking_options){ .optout = true });
    assert_true(tracking_wants(client(&rig, 3)));
    tracking_set_caching(client(&rig, 3), CACHING_NO);
    assert_false(tracking_wants(client(&rig, 3)));
    rig_fini(&rig);
}

TEST(bcast_follows_prefixes_which_add_up_in_order)
{
    struct rig rig;
    struct slice first[] = { slice_lit("k"), slice_lit("zz") };
    struct slice second[] = { slice_lit("a") };
    const struct tracking_options *now;

    rig_init(&rig);
    turn_on(&rig, 1,
            (struct tracking_options){
                .bcast = true, .prefixes = first, .prefix_count = 2 });
    turn_on(&rig, 1,
            (struct tracking_options){ .bcast = true,
                                       .noloop = true,
                                       .prefixes = second,
                                       .prefix_count = 1 });
    now = tracking_get(client(&rig, 1));
    assert_int_equal(now->prefix_count, 3);
    assert_true(slice_equal(now->prefixes[0], slice_lit("a")));
    assert_true(slice_equal(now->prefixes[2], slice_lit("zz")));
    assert_int_equal(tracking_sum(rig.tracking).prefixes, 3);
    assert_int_equal(client(&rig, 1)->tracks, TRACKS | TRACKS_BCAST);
    changes(&rig, 2, "k");
    assert_sent(1, INVALIDATE_K);
    changes(&rig, 1, "k");
    changes(&rig, 2, "z");
    assert_sent(1, "");
    assert_false(tracking_wants(client(&rig, 1)));
    tracking_off(rig.tracking, client(&rig, 1));
    assert_int_equal(tracking_sum(rig.tracking).prefixes, 0);
    assert_null(tracking_get(client(&rig, 1)));
    rig_fini(&rig);
}

TEST(a_flush_goes_to_all_trackers_and_forgets_all_keys)
{
    struct rig rig;

    rig_init(&rig);
    turn_on(&rig, 1, (struct tracking_options){ .noloop = true });
    turn_on(&rig, 2, (struct tracking_options){ .bcast = true });
    reads(&rig, 1, "k");
    tracking_invalidate_all(rig.tracking, &rig.list);
    deliver_all(&rig);
    assert_sent(1, ">2\r\n$10\r\ninvalidate\r\n_\r\n");
    assert_sent(2, ">2\r\n$10\r\ninvalidate\r\n_\r\n");
    assert_int_equal(tracking_sum(rig.tracking).keys, 0);
    while (tracking_sweep(rig.tracking)) {
    }
    rig_fini(&rig);
}

/* Client 3 is on the loop of client 1, client 2 is not. */
TEST(redirected_invalidations_arrive_and_a_broken_redirection_is_reported)
{
    for (unsigned target = 2; target <= 3; target++) {
        const char *broken =
            target == 2 ? ">2\r\n$21\r\ntracking-redir-broken\r\n:2\r\n"
                        : ">2\r\n$21\r\ntracking-redir-broken\r\n:3\r\n";
        struct rig rig;

        rig_init(&rig);
        turn_on(&rig, 1, (struct tracking_options){ .redirect = target });
        reads(&rig, 1, "k");
        changes(&rig, 4, "k");
        assert_sent(1, "");
        assert_sent(target, INVALIDATE_K);
        rig.resp[target - 1] = 2;
        reads(&rig, 1, "k");
        changes(&rig, 4, "k");
        assert_sent(target, "");
        subscribes[target - 1] = true;
        reads(&rig, 1, "k");
        changes(&rig, 4, "k");
        assert_sent(target, "*3\r\n$7\r\nmessage\r\n"
                            "$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n");
        tracking_invalidate_all(rig.tracking, &rig.list);
        deliver_all(&rig);
        assert_sent(target, "*3\r\n$7\r\nmessage\r\n"
                            "$20\r\n__redis__:invalidate\r\n$-1\r\n");
        tracking_forget_target(rig.tracking, client(&rig, target));
        rig.gone[target - 1] = true;
        reads(&rig, 1, "k");
        changes(&rig, 4, "k");
        assert_sent(1, broken);
        assert_int_equal(client(&rig, 1)->tracks, TRACKS | TRACKS_BROKEN);
        turn_on(&rig, 1, (struct tracking_options){ 0 });
        assert_int_equal(client(&rig, 1)->tracks, TRACKS);
        rig_fini(&rig);
    }
}

TEST(keys_read_before_tracking_was_off_are_invalidated_when_it_is_on_again)
{
    struct rig rig;

    rig_init(&rig);
    turn_on(&rig, 1, (struct tracking_options){ 0 });
    reads(&rig, 1, "k");
    reads(&rig, 1, "l");
    tracking_off(rig.tracking, client(&rig, 1));
    changes(&rig, 2, "l");
    turn_on(&rig, 1, (struct tracking_options){ 0 });
    changes(&rig, 2, "k");
    assert_sent(1, INVALIDATE_K);
    reads(&rig, 1, "k");
    tracking_leave(rig.tracking, client(&rig, 1));
    turn_on(&rig, 1, (struct tracking_options){ 0 });
    changes(&rig, 2, "k");
    assert_sent(1, "");
    rig_fini(&rig);
}

TEST(a_loss_cuts_the_trackers_and_targets_of_its_loop)
{
    struct rig rig;
    struct tracking_place place = { 1, &rig.list, find, &rig };

    rig_init(&rig);
    turn_on(&rig, 1, (struct tracking_options){ 0 });
    turn_on(&rig, 2, (struct tracking_options){ .redirect = 3 });
    tracking_cut(rig.tracking, &place);
    assert_true(cut[0]);
    assert_false(cut[1]); /* of the other loop */
    assert_true(cut[2]);
    assert_false(cut[3]);
    rig_fini(&rig);
}

TEST(turned_on_without_memory_nothing_changes)
{
    bool fired = true;
    struct slice prefixes[] = { slice_lit("b"), slice_lit("c") };
    struct slice old[] = { slice_lit("a") };

    for (unsigned nth = 1; fired; nth++) {
        struct rig rig;
        struct tracking_options options = { .bcast = true,
                                            .redirect = 2,
                                            .prefixes = prefixes,
                                            .prefix_count = 2 };
        bool fresh;
        bool more;

        rig_init(&rig);
        turn_on(&rig, 1,
                (struct tracking_options){
                    .bcast = true, .prefixes = old, .prefix_count = 1 });
        mem_fail_at(nth);
        more = tracking_on(rig.tracking, client(&rig, 1), &options);
        fresh = tracking_on(rig.tracking, client(&rig, 3), &options);
        fired = mem_fail_clear();
        assert_true(fired || (more && fresh));
        assert_int_equal(tracking_get(client(&rig, 1))->prefix_count,
                         more ? 3 : 1);
        assert_int_equal(tracking_get(client(&rig, 1))->redirect, more ? 2 : 0);
        assert_int_equal(tracking_get(client(&rig, 3)) != NULL, fresh);
        assert_int_equal(tracking_sum(rig.tracking).prefixes,
                         more || fresh ? 3 : 1);
        rig_fini(&rig);
    }
}
