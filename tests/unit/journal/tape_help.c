/* SPDX-License-Identifier: BSD-3-Clause
 *
 * It seals groups with a key of its own.
 */
#include "tape_help.h"

static void
tape_begin(void *ctx, uint64_t position, uint64_t sequence)
{
    struct tape *tape = ctx;

    if (tape->open > 0) {
        tape->wrong = "began within a group";
    }
    tape->bytes.len = 0;
    tape->begin = position;
    tape->begin_sequence = tape->sequence = sequence;
    tape->begins++;
}

static void
tape_text(void *ctx, struct slice bytes)
{
    struct tape *tape = ctx;

    if (tape->open == 0) {
        group_hash_begin(tape->hash, TAPE_KEY);
    }
    group_hash_add(tape->hash, bytes.data, bytes.len);
    tape->open += bytes.len;
    buf_append_slice(&tape->bytes, bytes);
}

static void
tape_close(void *ctx, uint64_t sequence, const char *seal)
{
    struct tape *tape = ctx;
    struct group_seal own = { sequence, tape->stamp, tape->open, 0 };
    char bytes[GROUP_SEAL_BYTES];

    if (sequence != ++tape->sequence || tape->open == 0) {
        tape->wrong = "a group out of order, or empty";
    }
    group_write_seal(tape->hash, TAPE_KEY, &own, bytes);
    buf_append(&tape->bytes, seal != NULL ? seal : bytes, sizeof(bytes));
    tape->open = 0;
}

static struct journal_tap
tape_tap(struct tape *tape)
{
    return (struct journal_tap){ tape_begin, tape_text, tape_close, tape };
}

struct tape *
tape_new(void)
{
    struct tape *tape = mem_zalloc(sizeof(*tape));

    tape->hash = group_hash_new();
    return tape;
}

void
tape_free(struct tape *tape)
{
    buf_free(&tape->bytes);
    group_hash_free(tape->hash);
    mem_free(tape);
}

uint64_t
tape_follow(struct tape *tape, struct rig *rig, uint64_t position,
            uint64_t sequence)
{
    struct journal_tap tap = tape_tap(tape);

    journal_set_tap(rig->journal, JOURNAL_TAP_REPLICAS, &tap, &position,
                    &sequence);
    assert_int_equal(position, tape->begin);
    assert_int_equal(sequence, tape->begin_sequence);
    return position;
}

void
check_tape(const struct tape *tape, const struct rig *rig,
           const struct source *sources, size_t count)
{
    struct expected expected = expect(sources, count, tape->begin);
    uint64_t sequence = tape->begin_sequence;
    uint64_t end = check_groups(&expected, buf_slice(&tape->bytes), 0, TAPE_KEY,
                                tape->begin, &sequence);

    if (tape->wrong != NULL) {
        fail_msg("%s", tape->wrong);
    }
    assert_int_equal(expected.count, expected.next);
    assert_int_equal(end, journal_position(rig->journal));
    assert_int_equal(sequence, status_of(rig).sequence);
    mem_free(expected.entries);
}

void
turn_something(struct rig *rig, uint64_t random, uint64_t *mark,
               uint64_t *sequence)
{
    struct journal_status status = status_of(rig);

    if (!status.on && !status.closing) {
        *mark = set_target(rig, JOURNAL_BUILD, 0, sequence);
    } else if (status.on && random % 4 == 0) {
        journal_turn_off(rig->journal, random & 16);
    } else if (status.on) {
        *mark = set_target(rig,
                           status.faulted || random % 16 == 1 ? JOURNAL_REBASE
                                                              : JOURNAL_ROTATE,
                           0, sequence);
    }
}
