/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each side reads the lines that the other one writes, and refuses all others
 * with a reason.
 */
#include "repl/wire.h"

#include "../test.h"
#include "base/mem.h"

#define ID_A "0123456789abcdef0123456789abcdef01234567"
#define ID_B "89abcdef0123456789abcdef0123456789abcdef"

enum { REASON = 200 };

static void
assert_text(struct buf *buf, const char *text)
{
    assert_int_equal(buf->len, strlen(text));
    assert_memory_equal(buf->data, text, buf->len);
    buf_free(buf);
}

/* ---- commands and lines -------------------------------------------------- */

TEST(an_acknowledgement_has_fack_only_if_something_is_synced)
{
    struct buf out = { 0 };

    wire_ack(&out, 120, 0);
    assert_text(&out, "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$3\r\n120\r\n");
    wire_ack(&out, 120, 7);
    assert_text(&out, "*5\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$3\r\n120\r\n"
                      "$4\r\nFACK\r\n$1\r\n7\r\n");
}

TEST(an_acknowledgement_reads_back)
{
    struct slice argv[] = { slice_lit("replconf"), slice_lit("ack"),
                            slice_lit("120"), slice_lit("fack"),
                            slice_lit("7") };
    uint64_t position = 1;
    uint64_t synced = 1;

    assert_true(wire_parse_ack(argv, 5, &position, &synced));
    assert_int_equal(position, 120);
    assert_int_equal(synced, 7);
    assert_true(wire_parse_ack(argv, 3, &position, &synced));
    assert_int_equal(synced, 0);
}

TEST(a_malformed_acknowledgement_is_refused)
{
    struct slice good[] = { slice_lit("REPLCONF"), slice_lit("ACK"),
                            slice_lit("120"), slice_lit("FACK"),
                            slice_lit("7") };
    const char *bad[] = {
        "-1", "", "x", "12x", "4611686018427387904", "99999999999999999999"
    };
    uint64_t position = 1;
    uint64_t synced = 1;

    assert_false(wire_parse_ack(good, 2, &position, &synced));
    assert_false(wire_parse_ack(good, 4, &position, &synced));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (size_t k = 1; k < 5; k++) {
            struct slice argv[5];

            memcpy(argv, good, sizeof(argv));
            argv[k] = slice_of(bad[i]);
            assert_false(wire_parse_ack(argv, 5, &position, &synced));
        }
    }
    assert_int_equal(position, 1); /* untouched */
    assert_int_equal(synced, 1);
}

static struct slice
line_of(const struct buf *out)
{
    assert_true(out->len > 2 && out->len <= WIRE_LINE_MAX);
    assert_memory_equal(out->data + out->len - 2, "\r\n", 2);
    return (struct slice){ out->data, out->len - 2 };
}

TEST(a_hello_reads_back_with_any_chain)
{
    struct wire_hello hello = { .version = WIRE_VERSION, .run_id = ID_A };
    char reason[REASON];

    for (size_t count = 0; count <= WIRE_CHAIN_MAX; count++) {
        struct wire_hello back = { 0 };
        struct buf out = { 0 };

        hello.chain_count = count;
        wire_write_hello(&out, &hello);
        assert_true(
            wire_parse_hello(line_of(&out), &back, reason, sizeof(reason)));
        assert_int_equal(back.version, 1);
        assert_string_equal(back.run_id, ID_A);
        assert_int_equal(back.chain_count, count);
        for (size_t i = 0; i < count; i++) {
            assert_string_equal(back.chain[i], hello.chain[i]);
        }
        if (count < WIRE_CHAIN_MAX) {
            memcpy(hello.chain[count], count % 2 ? ID_A : ID_B,
                   sizeof(hello.chain[0]));
        }
        buf_free(&out);
    }
}

TEST(a_reply_that_is_no_hello_is_refused_with_a_reason)
{
    static const struct {
        const char *line, *reason;
    } cases[] = {
        { "-ERR Unrecognized REPLCONF option: bloomery",
          "the primary is not a Bloomery server, or an older one: it answered "
          "'-ERR Unrecognized REPLCONF option: bloomery'" },
        { "-NOAUTH Authentication required.",
          "the primary answered '-NOAUTH Authentication required.'" },
        { "-", "the primary answered '-'" },
        { "+OK", "the primary is not a Bloomery server: it answered '+OK'" },
        { "HTTP/1.1 400 Bad Request",
          "the primary is not a Bloomery server: it answered 'HTTP/1.1 400 Bad "
          "Request'" },
        { "", "the primary is not a Bloomery server: it answered ''" },
        { "+BLOOMERY", "the primary's introduction has no version" },
        { "+BLOOMERY x", "the primary's introduction has no version" },
        { "+BLOOMERY 0 a b", "the primary's introduction has no version" },
        { "+BLOOMERY 2 and more of it that is not known yet",
          "the primary is newer: it speaks version 2 of replication, this "
          "server version 1" },
        { "+BLOOMERY 1 " ID_A,
          "the primary's introduction does not have 4 fields" },
        { "+BLOOMERY 1 " ID_A " - -",
          "the primary's introduction does not have 4 fields" },
        { "+BLOOMERY 1 x" ID_A " -",
          "the primary's run id does not have 40 hex digits" },
        { "+BLOOMERY 1 " ID_A " ", "the primary's chain of primaries is not a "
                                   "list of at most 8 run ids" },
        { "+BLOOMERY 1 " ID_A " " ID_A ",",
          "the primary's chain of primaries is not a list of at most 8 run "
          "ids" },
        { "+BLOOMERY 1 " ID_A " " ID_A "," ID_A "," ID_A "," ID_A "," ID_A
          "," ID_A "," ID_A "," ID_A "," ID_A,
          "the primary's chain of primaries is not a list of at most 8 run "
          "ids" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire_hello hello = { .version = 77 };
        char reason[REASON] = "";

        assert_false(wire_parse_hello(slice_of(cases[i].line), &hello, reason,
                                      sizeof(reason)));
        assert_string_equal(reason, cases[i].reason);
        assert_int_equal(hello.version, 77);
    }
}

TEST(answers_read_back)
{
    struct wire_answer answers[] = {
        { .kind = WIRE_CONTINUE, .history = ID_A, .key = 0x0123456789abcdef },
        { .kind = WIRE_FULLRESYNC,
          .history = ID_B,
          .key = 1,
          .position = 1234567890123,
          .sequence = 99,
          .bytes = 1 << 30 },
        { .kind = WIRE_ERROR, .error = "NOMASTERLINK no data yet" },
        /* The highest position that a replica accepts. */
        { .kind = WIRE_FULLRESYNC,
          .history = ID_B,
          .key = 1,
          .position = UINT64_C(2305843009213693952),
          .sequence = UINT64_C(100000000000000) },
        { .kind = WIRE_FULLRESYNC,
          .history = ID_B,
          .position = 900,
          .past = { { ID_A, 800 }, { ID_B, 0 } } },
    };
    char reason[REASON];

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct wire_answer back = { .key = 5 };
        struct buf out = { 0 };

        wire_write_answer(&out, &answers[i]);
        assert_true(
            wire_parse_answer(line_of(&out), &back, reason, sizeof(reason)));
        assert_int_equal(back.kind, answers[i].kind);
        assert_string_equal(back.history, answers[i].history);
        assert_int_equal(back.key, answers[i].key);
        assert_int_equal(back.position, answers[i].position);
        assert_int_equal(back.sequence, answers[i].sequence);
        assert_int_equal(back.bytes, answers[i].bytes);
        assert_string_equal(back.error, answers[i].error);
        assert_memory_equal(back.past, answers[i].past, sizeof(back.past));
        assert_true(out.len <= WIRE_LINE_MAX);
        buf_free(&out);
    }
}

TEST(the_longest_past_fits_a_line)
{
    struct wire_answer answer = { .kind = WIRE_FULLRESYNC,
                                  .history = ID_B,
                                  .key = UINT64_MAX,
                                  .position = UINT64_C(2305843009213693952),
                                  .sequence = UINT64_C(100000000000000),
                                  .bytes = UINT64_C(4611686018427387903) };
    struct wire_answer back = { .key = 5 };
    struct buf out = { 0 };
    char reason[REASON];

    for (int i = 0; i < HISTORY_PAST_MAX; i++) {
        memcpy(answer.past[i].id, ID_A, sizeof(answer.past[i].id));
        answer.past[i].until = UINT64_C(4611686018427387903);
    }
    wire_write_answer(&out, &answer);
    assert_true(out.len <= WIRE_LINE_MAX);
    assert_true(
        wire_parse_answer(line_of(&out), &back, reason, sizeof(reason)));
    assert_memory_equal(back.past, answer.past, sizeof(back.past));
    buf_free(&out);
}

TEST(an_error_longer_than_its_field_is_cut)
{
    struct wire_answer answer;
    char line[WIRE_LINE_MAX];
    char reason[REASON];

    memset(line, 'x', sizeof(line));
    line[0] = '-';
    assert_true(wire_parse_answer((struct slice){ line, sizeof(line) }, &answer,
                                  reason, sizeof(reason)));
    assert_int_equal(strlen(answer.error), sizeof(answer.error) - 1);
    assert_true(wire_parse_answer((struct slice){ line, 257 }, &answer, reason,
                                  sizeof(reason)));
    assert_int_equal(strlen(answer.error), sizeof(answer.error) - 1);
    assert_true(wire_parse_answer((struct slice){ line, 2 }, &answer, reason,
                                  sizeof(reason)));
    assert_string_equal(answer.error, "x");
}

TEST(each_error_text_of_a_server_is_shown_whole)
{
    static const char *const texts[] = {
#define ERR(id, prefix, text) "-" prefix " " text,
#include "tbl/errors.def"
#undef ERR
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(strlen(texts[i]), wire_shown(slice_of(texts[i])));
    }
    assert_int_equal(WIRE_SHOWN_MAX,
                     wire_shown((struct slice){ texts[0], SIZE_MAX }));
}

TEST(a_malformed_answer_is_refused_with_a_reason)
{
    static const struct {
        const char *line, *reason;
    } cases[] = {
        { "+CONTINUE", "CONTINUE does not have 2 fields" },
        { "+CONTINUE " ID_A " 0123456789abcdef more",
          "CONTINUE does not have 2 fields" },
        { "+CONTINUE " ID_A "0 0123456789abcdef",
          "the history of CONTINUE does not have 40 hex digits" },
        { "+CONTINUE " ID_A " 0123456789abcdeF",
          "the key of CONTINUE does not have 16 hex digits" },
        { "+CONTINUE " ID_A " 0123456789abcde",
          "the key of CONTINUE does not have 16 hex digits" },
        { "+FULLRESYNC " ID_A " 1", "FULLRESYNC does not have 5 or 6 fields" },
        { "+FULLRESYNC " ID_A " 1 2 0123456789abcdef 3 - 5",
          "FULLRESYNC does not have 5 or 6 fields" },
        { "+FULLRESYNC " ID_A " 1 2 0123456789abcdef 3 4",
          "the past of FULLRESYNC is not a list of at most 8 histories" },
        { "+FULLRESYNC " ID_A " 1 2 0123456789abcdef 3 " ID_A,
          "the past of FULLRESYNC is not a list of at most 8 histories" },
        { "+FULLRESYNC " ID_A " 1 2 0123456789abcdef 3 " ID_A ":x",
          "the past of FULLRESYNC is not a list of at most 8 histories" },
        { "+FULLRESYNC " ID_A " 1 2 0123456789abcdef 3 " ID_A ":1,",
          "the past of FULLRESYNC is not a list of at most 8 histories" },
        { "+FULLRESYNC x 1 2 0123456789abcdef 3",
          "the history of FULLRESYNC does not have 40 hex digits" },
        { "+FULLRESYNC " ID_A " -1 2 0123456789abcdef 3",
          "FULLRESYNC has no valid position" },
        { "+FULLRESYNC " ID_A " 4611686018427387904 2 0123456789abcdef 3",
          "FULLRESYNC has no valid position" },
        { "+FULLRESYNC " ID_A " 2305843009213693953 2 0123456789abcdef 3",
          "FULLRESYNC has no valid position" },
        { "+FULLRESYNC " ID_A " 1 1000000000000000 0123456789abcdef 3",
          "FULLRESYNC has no valid sequence" },
        { "+FULLRESYNC " ID_A " 1 100000000000001 0123456789abcdef 3",
          "FULLRESYNC has no valid sequence" },
        { "+FULLRESYNC " ID_A " 1 2 x 3",
          "the key of FULLRESYNC does not have 16 hex digits" },
        { "+FULLRESYNC " ID_A " 1 2 0123456789abcdef x",
          "FULLRESYNC has no valid size" },
        { "+OK", "the answer to PSYNC is '+OK', neither CONTINUE nor "
                 "FULLRESYNC" },
        { "", "the answer to PSYNC is '', neither CONTINUE nor FULLRESYNC" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire_answer answer = { .key = 77 };
        char reason[REASON] = "";

        assert_false(wire_parse_answer(slice_of(cases[i].line), &answer, reason,
                                       sizeof(reason)));
        assert_string_equal(reason, cases[i].reason);
        assert_int_equal(answer.key, 77);
    }
}
