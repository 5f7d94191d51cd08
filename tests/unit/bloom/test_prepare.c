/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RESTORE and COPY of large filters in pieces, with others in between.
 */
#include "bloom/prepare.h"

#include "../engine/pieces_help.h"

#include <xxhash.h>

enum { LARGE = 20000000, SMALL = 500000, CALLS_MAX = 100000 };

/* A filter of some ten MB, with some items. */
static void
make_source(struct rig *rig, unsigned capacity)
{
    char head[64];

    (void)snprintf(head, sizeof(head), "BF.RESERVE source 0.01 %u", capacity);
    (void)call(rig, head, 0, 0);
    assert_memory_equal("+OK", rig->out.data, 3);
    (void)call(rig, "BF.MADD source", 0, 5000);
}

/* Its DUMP, which is the caller's. */
static struct slice
dump(struct rig *rig, const char *name)
{
    char head[64];
    char *copy;
    char *body;
    size_t len;

    (void)snprintf(head, sizeof(head), "DUMP %s", name);
    (void)call(rig, head, 0, 0);
    assert_int_equal('$', rig->out.data[0]);
    len = strtoul(rig->out.data + 1, &body, 10);
    copy = mem_alloc(len);
    memcpy(copy, body + 2, len);
    return (struct slice){ copy, len };
}

/* Equal but for the incarnation, and so the checksum. */
static void
assert_same_filter(struct rig *rig, const char *a, const char *b)
{
    enum { HEAD = 256, SUM = 8 };
    struct slice left = dump(rig, a);
    struct slice right = dump(rig, b);

    assert_int_equal(left.len, right.len);
    assert_memory_equal(left.data + HEAD, right.data + HEAD,
                        left.len - HEAD - SUM);
    mem_free((void *)(uintptr_t)left.data);
    mem_free((void *)(uintptr_t)right.data);
}

static void
put_restore(struct command_text *command, struct slice payload)
{
    struct batch *batch = &command->batch;

    *command = (struct command_text){ .batch = { .count = 0 } };
    assert_non_null(buf_reserve(&command->text, payload.len + 64));
    add_word(command, slice_lit("RESTORE"));
    add_word(command, slice_lit("target"));
    add_word(command, slice_lit("0"));
    add_word(command, payload);
    batch->command[batch->count++] =
        (struct batch_command){ .argc = (uint32_t)batch->argv_count };
}

static unsigned
restore(struct rig *rig, struct slice payload)
{
    struct command_text command;
    unsigned calls;

    put_restore(&command, payload);
    calls = run(rig, &command);
    drop(&command);
    buf_append(&rig->out, "", 1);
    return calls;
}

TEST(a_large_payload_is_loaded_in_pieces)
{
    struct rig *rig = rig_new();
    struct slice payload;

    make_source(rig, LARGE);
    payload = dump(rig, "source");
    assert_true(payload.len > 16 << 20);
    assert_true(restore(rig, payload) > 1);
    assert_string_equal("+OK\r\n", rig->out.data);
    assert_same_filter(rig, "source", "target");
    assert_int_equal(number(rig, "BF.CARD source"),
                     number(rig, "BF.CARD target"));
    (void)restore(rig, payload);
    assert_memory_equal("-BUSYKEY", rig->out.data, 8);
    effects_take(rig);
    mem_free((void *)(uintptr_t)payload.data);
    rig_free(rig);
}

/* The bytes that follow have a checksum that holds. */
static void
seal(struct slice payload)
{
    char *end = (char *)(uintptr_t)payload.data + payload.len - 8;
    uint64_t sum = XXH3_64bits(payload.data, payload.len - 8);

    for (unsigned i = 0; i < 8; i++) {
        end[i] = (char)(sum >> (8 * i));
    }
}

TEST(a_damaged_payload_gets_the_same_error_in_pieces)
{
    struct rig *rig = rig_new();
    struct slice payload;
    char *bytes;

    make_source(rig, SMALL);
    payload = dump(rig, "source");
    assert_true(payload.len > 256 << 10);
    bytes = (char *)(uintptr_t)payload.data;
    bytes[payload.len / 2] ^= 1;
    (void)restore(rig, payload);
    assert_memory_equal("-ERR DUMP payload version or checksum are wrong\r",
                        rig->out.data, 48);
    bytes[payload.len / 2] ^= 1;
    bytes[4] ^= 64; /* the version */
    seal(payload);
    (void)restore(rig, payload);
    assert_memory_equal("-ERR DUMP payload version or checksum are wrong (",
                        rig->out.data, 49);
    bytes[4] ^= 64;
    seal(payload);
    (void)restore(rig, payload);
    assert_string_equal("+OK\r\n", rig->out.data);
    (void)call(rig, "DEL target", 0, 0);
    payload.len -= 64;
    seal(payload);
    (void)restore(rig, payload);
    assert_memory_equal("-ERR Bad data format", rig->out.data, 20);
    rig->service.bloom_env.size_limit_bytes = 1000;
    assert_int_equal(0, number(rig, "EXISTS target"));
    mem_free(bytes);
    rig_free(rig);
}

/* Its stored form has a flag, and behind the table the number of the parts that
 * have come. */
TEST(an_incomplete_filter_is_no_payload)
{
    enum { AT_FLAGS = 7, AT_LAYERS = 12, FIXED = 72, LAYER = 32, COUNT = 8 };
    struct rig *rig = rig_new();
    struct slice payload, incomplete;
    char *bytes;
    size_t head;

    make_source(rig, SMALL);
    payload = dump(rig, "source");
    head = FIXED + (size_t)payload.data[AT_LAYERS] * LAYER;
    bytes = mem_zalloc(payload.len + COUNT);
    memcpy(bytes, payload.data, head);
    memcpy(bytes + head + COUNT, payload.data + head, payload.len - head);
    bytes[AT_FLAGS] |= (char)0x80;
    incomplete = (struct slice){ bytes, payload.len + COUNT };
    seal(incomplete);
    (void)restore(rig, incomplete);
    assert_memory_equal("-ERR Bad data format", rig->out.data, 20);
    assert_int_equal(0, number(rig, "EXISTS target"));
    mem_free(bytes);
    mem_free((void *)(uintptr_t)payload.data);
    rig_free(rig);
}

/* Calls it once. Returns whether it is done. */
static bool
once(struct rig *rig, const struct command_text *command)
{
    rig->out.len = 0;
    return dispatch_batch(rig->worker, &rig->session, &command->batch, 0,
                          UINT64_MAX, &rig->out) == 1;
}

/* Another client's command, between two pieces. */
static void
between(struct rig *rig, const char *head, unsigned first, unsigned count)
{
    struct session *session = &rig->session;
    void *again = session->again;
    uint64_t worked_ns = session->worked_ns;

    session->again = NULL;
    (void)call(rig, head, first, count);
    session->again = again;
    session->worked_ns = worked_ns;
}

TEST(a_copy_is_what_the_source_is_at_its_end)
{
    static const char *const heads[] = { "BF.MADD source", "BF.RESET source",
                                         "PING" };

    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = rig_new();
        struct command_text command;

        make_source(rig, LARGE);
        put(&command, "COPY source target", 0, 0);
        assert_false(once(rig, &command));
        between(rig, heads[i], 100000, i == 0 ? 100 : 0);
        while (!once(rig, &command)) {
        }
        assert_memory_equal(":1\r\n", rig->out.data, 4);
        assert_same_filter(rig, "source", "target");
        assert_int_equal(number(rig, "BF.CARD source"),
                         number(rig, "BF.CARD target"));
        drop(&command);
        rig_free(rig);
    }
}

/* It never becomes quiet: in the end it is copied in one piece. */
TEST(a_copy_of_what_always_changes_comes_to_an_end)
{
    struct rig *rig = rig_new();
    struct command_text command;
    unsigned calls = 1;

    make_source(rig, LARGE);
    put(&command, "COPY source target", 0, 0);
    while (!once(rig, &command)) {
        between(rig, "BF.MADD source", 100000 + 10 * calls, 10);
        assert_true(++calls < CALLS_MAX);
    }
    assert_memory_equal(":1\r\n", rig->out.data, 4);
    assert_same_filter(rig, "source", "target");
    drop(&command);
    rig_free(rig);
}

TEST(a_source_that_goes_meanwhile_is_not_copied)
{
    struct rig *rig = rig_new();
    struct command_text command;

    make_source(rig, LARGE);
    put(&command, "COPY source target", 0, 0);
    assert_false(once(rig, &command));
    between(rig, "DEL source", 0, 0);
    while (!once(rig, &command)) {
    }
    assert_memory_equal(":0\r\n", rig->out.data, 4);
    assert_int_equal(0, number(rig, "EXISTS target"));
    drop(&command);
    rig_free(rig);
}

TEST(a_client_that_leaves_in_the_middle_leaves_nothing)
{
    uint64_t used = mem_used();
    struct rig *rig = rig_new();
    struct command_text command;

    make_source(rig, LARGE);
    put(&command, "COPY source target", 0, 0);
    assert_false(once(rig, &command));
    assert_non_null(rig->session.again);
    rig->session.again_free(rig->session.again);
    rig->session.again = NULL;
    drop(&command);
    rig_free(rig);
    assert_int_equal(used, mem_used());
}

TEST(in_a_transaction_it_is_one_piece)
{
    struct rig *rig = rig_new();

    make_source(rig, SMALL);
    (void)call(rig, "MULTI", 0, 0);
    (void)call(rig, "COPY source target", 0, 0);
    assert_int_equal(1, call(rig, "EXEC", 0, 0));
    assert_memory_equal("*1\r\n:1\r\n", rig->out.data, 8);
    assert_same_filter(rig, "source", "target");
    rig_free(rig);
}

TEST(without_memory_the_handler_does_it_or_says_so)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct rig *rig = rig_new();
        struct command_text command;

        make_source(rig, SMALL);
        put(&command, "COPY source target", 0, 0);
        mem_fail_at(nth);
        (void)run(rig, &command);
        fired = mem_fail_clear();
        if (rig->out.data[0] == ':') {
            assert_same_filter(rig, "source", "target");
        } else {
            assert_true(fired);
            assert_int_equal(0, number(rig, "EXISTS target"));
        }
        drop(&command);
        rig_free(rig);
    }
}
