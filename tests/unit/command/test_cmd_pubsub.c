/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What transcripts cannot test of SUBSCRIBE and the like: without memory, or
 * with a reply above its limit, they change everything or nothing.
 */
#include "push/pubsub.h"

#include "../engine/rig.h"

static struct rig *
listener_new(void)
{
    struct rig *rig = rig_new();

    rig->service.pubsub = pubsub_new(1);
    return rig;
}

static void
listener_free(struct rig *rig)
{
    pubsub_leave(rig->service.pubsub, &rig->session.receiver);
    pubsub_free(rig->service.pubsub);
    rig_free(rig);
}

/* Returns the reply to a command. */
static const char *
answer(struct rig *rig, const char *text)
{
    rig->out.len = 0;
    run_text(rig, text, true);
    buf_append(&rig->out, "", 1);
    return rig->out.data;
}

static size_t
count(const struct rig *rig)
{
    return pubsub_count(&rig->session.receiver, PUBSUB_CHANNEL);
}

TEST(subscribing_without_memory_changes_nothing)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct rig *rig = listener_new();
        const char *got;

        rig->session.resp = 3;
        (void)answer(rig, "SUBSCRIBE before");
        mem_fail_at(nth);
        got = answer(rig, "SUBSCRIBE a before b");
        fired = mem_fail_clear();
        if (strncmp(got, "-OOM", 4) == 0) {
            assert_true(fired);
            assert_int_equal(1, count(rig));
            assert_int_equal(6, pubsub_bytes(&rig->session.receiver));
            assert_int_equal(1,
                             pubsub_names(rig->service.pubsub, PUBSUB_CHANNEL));
        } else {
            assert_int_equal(3, count(rig));
        }
        assert_true(pubsub_has(&rig->session.receiver, PUBSUB_CHANNEL,
                               slice_lit("before")));
        assert_true(nth < 50);
        listener_free(rig);
    }
}

TEST(a_reply_above_its_limit_changes_nothing)
{
    struct rig *rig = listener_new();

    rig->session.resp = 3;
    (void)answer(rig, "SUBSCRIBE a b c");
    buf_free(&rig->out);
    rig->out.limit = 200;
    assert_non_null(strstr(answer(rig, "SUBSCRIBE d e f g h"),
                           "client-output-buffer-limit"));
    assert_int_equal(3, count(rig));
    assert_non_null(
        strstr(answer(rig, "UNSUBSCRIBE"), "client-output-buffer-limit"));
    assert_int_equal(3, count(rig));
    assert_non_null(strstr(answer(rig, "UNSUBSCRIBE b"), "unsubscribe"));
    assert_int_equal(2, count(rig));
    rig->out.limit = 0;
    listener_free(rig);
}

TEST(subscriptions_restrict_a_client_in_resp2_only)
{
    struct rig *rig = listener_new();

    (void)answer(rig, "SUBSCRIBE a");
    assert_true(rig->session.subscribed);
    (void)answer(rig, "SSUBSCRIBE b");
    (void)answer(rig, "UNSUBSCRIBE");
    assert_true(rig->session.subscribed);
    (void)answer(rig, "SUNSUBSCRIBE");
    assert_false(rig->session.subscribed);
    (void)answer(rig, "HELLO 3");
    (void)answer(rig, "PSUBSCRIBE a");
    assert_false(rig->session.subscribed);
    (void)answer(rig, "HELLO 2");
    assert_true(rig->session.subscribed);
    listener_free(rig);
}
