/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RESTORE and COPY without a socket: every allocation fails in turn and
 * nothing has changed, and their effects, repeated by somebody who has other
 * limits and no clock, give the same bytes. What clients see of them is in
 * tests/command and tests/scenario/test_dump.py.
 */
#include "../engine/rig.h"
#include "core/codec.h"

#include <stdlib.h>

/* The body of the bulk reply that the last command got. */
static struct slice
bulk_of(const struct rig *rig)
{
    const char *body = memchr(rig->out.data, '\n', rig->out.len);

    assert_int_equal('$', rig->out.data[0]);
    assert_non_null(body);
    body++;
    return (struct slice){ body,
                           rig->out.len - (size_t)(body - rig->out.data) - 2 };
}

static void
append_dump(struct rig *rig, const char *key, struct buf *ret_bytes)
{
    char line[64];

    (void)snprintf(line, sizeof(line), "DUMP %s", key);
    run_text(rig, line, true);
    buf_append_slice(ret_bytes, rig->out.data[1] == '-' ? slice_lit("missing")
                                                        : bulk_of(rig));
    (void)snprintf(line, sizeof(line), "PEXPIRETIME %s", key);
    run_text(rig, line, true);
    buf_append_slice(ret_bytes, buf_slice(&rig->out));
}

/* All that the tests' names hold. */
static struct buf
state_of(struct rig *rig)
{
    static const char *const keys[] = { "k", "l", "m" };
    struct buf state = { 0 };

    for (int i = 0; i < 3; i++) {
        append_dump(rig, keys[i], &state);
    }
    run_text(rig, "SELECT 3", true);
    append_dump(rig, "k", &state);
    run_text(rig, "SELECT 0", true);
    return state;
}

static bool
same_bytes(const struct buf *a, const struct buf *b)
{
    return slice_equal(buf_slice(a), buf_slice(b));
}

/* k has two layers; m is in the way, with a time. */
static struct rig *
rig_with_keys(struct buf *ret_payload)
{
    struct rig *rig = rig_new();

    run_text(rig,
             "BF.INSERT k CAPACITY 2 ITEMS a b c d e; BF.ADD m x; "
             "PEXPIREAT m 5000000000000; DUMP k",
             false);
    buf_append_slice(ret_payload, bulk_of(rig));
    effects_clear(rig);
    return rig;
}

/* <payload> is what DUMP k said. */
static void
batch_one(struct rig *rig, const char *text, const struct buf *payload)
{
    const char *at = strstr(text, "<payload>");
    char head[64];

    batch_begin(rig);
    if (at == NULL) {
        batch_text(rig, text);
        return;
    }
    (void)snprintf(head, sizeof(head), "%.*s", (int)(at - text - 1), text);
    batch_text(rig, head);
    batch_word(rig, buf_slice(payload));
    for (at += strlen("<payload>"); *at == ' ';) {
        size_t len = strcspn(at + 1, " ");

        batch_word(rig, (struct slice){ at + 1, len });
        at += 1 + len;
    }
}

static const char *const writes[] = {
    "RESTORE l 0 <payload>",
    "RESTORE l 5000000000000 <payload> ABSTTL",
    "RESTORE l 100000 <payload>",
    "RESTORE m 0 <payload> REPLACE",
    "RESTORE m 6000000000000 <payload> ABSTTL REPLACE",
    "RESTORE m 1 <payload> ABSTTL REPLACE",
    "RESTORE k 5000000000000 <payload> REPLACE ABSTTL",
    "COPY k l",
    "COPY k m REPLACE",
    "COPY m k REPLACE",
    "COPY m l",
    "COPY k k DB 3",
};

static void
fail_each_allocation(const char *text)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct buf payload = { 0 };
        struct rig *rig = rig_with_keys(&payload);
        struct buf before = state_of(rig);
        struct buf after;

        batch_one(rig, text, &payload);
        rig->out.len = 0;
        assert_non_null(buf_reserve(&rig->out, 4096));
        mem_fail_at(nth);
        assert_int_equal(1,
                         dispatch_batch(rig->worker, &rig->session, &rig->batch,
                                        0, UINT64_MAX, &rig->out));
        fired = mem_fail_clear();
        if (fired) {
            assert_memory_equal("-OOM ", rig->out.data, 5);
        } else {
            assert_true(rig->out.data[0] == '+' || rig->out.data[0] == ':');
        }
        effects_take(rig);
        assert_int_equal(fired ? 0 : 1, rig->effects.count);
        after = state_of(rig);
        assert_int_equal(fired, same_bytes(&before, &after));
        buf_free(&before);
        buf_free(&after);
        buf_free(&payload);
        rig_free(rig);
        assert_true(nth < 40);
    }
}

TEST(an_allocation_that_fails_changes_nothing)
{
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        fail_each_allocation(writes[i]);
    }
}

/* Repeats the effects of RIG on COPY, which then has the same keys. */
static void
repeat_on(struct rig *copy, struct rig *rig)
{
    struct buf a;
    struct buf b;

    effects_take(rig);
    repeat_effects(copy, buf_slice(&rig->effects.raw));
    a = state_of(rig);
    b = state_of(copy);
    assert_true(same_bytes(&a, &b));
    buf_free(&a);
    buf_free(&b);
}

TEST(repeated_effects_give_the_same_bytes_without_limits_and_clock)
{
    struct buf payload = { 0 };
    struct rig *rig = rig_with_keys(&payload);
    struct rig *copy = rig_new();

    set_option(copy, "bf.bloom-memory-usage-limit", "1");
    set_option(copy, "bf.bloom-capacity", "7");
    run_text(rig, "DEL k l m", true);
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
            batch_one(rig, writes[i], &payload);
            batch_run(rig);
            run_text(rig, "BF.ADD k n; PEXPIRE l 1", true);
        }
    }
    run_text(rig, "PERSIST l", true); /* its time may be over by now */
    repeat_on(copy, rig);
    buf_free(&payload);
    rig_free(rig);
    rig_free(copy);
}

/* The original saw the name missing, since its time was over. */
TEST(a_repeated_effect_replaces_what_the_original_did_not_see)
{
    struct buf payload = { 0 };
    struct rig *rig = rig_with_keys(&payload);
    struct rig *copy = rig_new();

    batch_one(rig, "RESTORE l 0 <payload>", &payload);
    batch_run(rig);
    run_text(rig, "COPY l m REPLACE; DEL k", true);
    run_text(copy, "BF.ADD l old; BF.ADD m old; PEXPIRE l 3600000", true);
    repeat_on(copy, rig);
    buf_free(&payload);
    rig_free(rig);
    rig_free(copy);
}

TEST(a_repeated_copy_of_a_missing_key_is_an_error)
{
    static const char effect[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
                                 "*3\r\n$4\r\nCOPY\r\n$1\r\na\r\n$1\r\nb\r\n";
    struct rig *rig = rig_new();
    struct replay *replay = replay_new(&rig->service);
    char reason[256] = "";

    assert_false(
        replay_group(replay, slice_lit(effect), reason, sizeof(reason)));
    assert_non_null(strstr(reason, "not found"));
    replay_free(replay);
    rig_free(rig);
}

TEST(only_a_repeated_effect_may_name_an_incarnation)
{
    struct buf payload = { 0 };
    struct rig *rig = rig_with_keys(&payload);

    batch_one(rig, "RESTORE l 0 <payload> INCARNATION 5", &payload);
    batch_run(rig);
    assert_memory_equal("-ERR syntax", rig->out.data, 11);
    run_text(rig, "COPY k l INCARNATION 5", true);
    assert_memory_equal("-ERR syntax", rig->out.data, 11);
    rig->session.obey = true;
    run_text(rig, "COPY k l INCARNATION 5", true);
    assert_memory_equal(":1", rig->out.data, 2);
    run_text(rig, "DUMP l", true);
    assert_memory_equal("\5\0\0\0\0\0\0\0", bulk_of(rig).data + 64, 8);

    /* Without the word, the life that was dumped goes on. */
    batch_one(rig, "RESTORE m 0 <payload>", &payload);
    batch_run(rig);
    run_text(rig, "DUMP m", true);
    assert_true(slice_equal(bulk_of(rig), buf_slice(&payload)));
    buf_free(&payload);
    rig_free(rig);
}

/* Executes one command of these words, and returns the reply's first bytes. */
static const char *
reply_to(struct rig *rig, const struct slice *words, size_t count)
{
    batch_begin(rig);
    batch_command(rig);
    for (size_t i = 0; i < count; i++) {
        batch_word(rig, words[i]);
    }
    batch_run(rig);
    buf_append(&rig->out, "", 1);
    return rig->out.data;
}

/* Small, or large enough to be prepared. */
TEST(a_deletable_filter_is_restored_whole_and_in_chunks)
{
    static const uint64_t capacities[] = { 10, 500000 };

    for (size_t i = 0; i < 2; i++) {
        struct rig *rig = rig_new();
        struct bloom_params params = PARAMS(capacities[i], 0.01, 0.5, 2);
        struct bloom *bloom = NULL;
        char head[CODEC_HEAD_BYTES_MAX];
        struct slice dump, header;
        char *bytes;

        params.kind = BLOOM_DELETABLE;
        params.region = 2;
        assert_int_equal(BLOOM_OK, bloom_new(&params, NULL, &bloom));
        dump.len = (size_t)bloom_dump_bytes(bloom);
        bytes = malloc(dump.len);
        bloom_dump(bloom, bytes);
        dump.data = bytes;
        header = (struct slice){ head, codec_put_head(bloom, 0, head) };
        assert_non_null(strstr(
            reply_to(rig,
                     (struct slice[]){ slice_lit("RESTORE"), slice_lit("k"),
                                       slice_lit("0"), dump },
                     4),
            "+OK"));
        assert_non_null(strstr(
            reply_to(rig,
                     (struct slice[]){ slice_lit("BF.LOADCHUNK"),
                                       slice_lit("l"), slice_lit("1"), header },
                     4),
            "+OK"));
        assert_int_equal(2, count_keys(rig, 0));
        free(bytes);
        bloom_free(bloom, NULL);
        rig_free(rig);
    }
}
