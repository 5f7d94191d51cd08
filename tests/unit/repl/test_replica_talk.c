/* SPDX-License-Identifier: BSD-3-Clause */
#include "replica_rig.h"

TEST(a_password_is_said_first_and_alone_without_a_user)
{
    struct rig *rig = rig_new();

    rig->options.password = "s e\r\ncret";
    replica_set_options(rig->replica, &rig->options);
    follow(rig);
    replica_opened(rig->replica, rig->number, rig->now_ms);
    assert_memory_equal("*2\r\n$4\r\nAUTH\r\n$9\r\ns e\r\ncret\r\n",
                        rig->sent.data, rig->sent.len);
    (void)said(rig);
    hear(rig, "+OK\r\n");
    assert_string_equal("REPLCONF bloomery 1 run " RUN_ID, said(rig));
    rig->options.password = "secret";
    rig->options.user = "eve";
    replica_set_options(rig->replica, &rig->options);
    follow(rig);
    replica_opened(rig->replica, rig->number, rig->now_ms);
    assert_string_equal("AUTH eve secret", said(rig));
    rig->options.password = "";
    replica_set_options(rig->replica, &rig->options);
    follow(rig);
    replica_opened(rig->replica, rig->number, rig->now_ms);
    assert_string_equal("REPLCONF bloomery 1 run " RUN_ID, said(rig));
    rig_free(rig);
}

TEST(an_address_to_announce_is_said_with_the_port)
{
    struct rig *rig = rig_new();

    rig->options.announce_ip = "10.0.0.9";
    replica_set_options(rig->replica, &rig->options);
    follow(rig);
    replica_opened(rig->replica, rig->number, rig->now_ms);
    (void)said(rig);
    hear(rig, "\r\n+BLOOMERY 1 " PRIMARY_ID " " ABOVE_ID "\r\n");
    assert_string_equal("REPLCONF listening-port 7379 ip-address 10.0.0.9",
                        said(rig));
    rig_free(rig);
}

TEST(what_the_primary_holds_is_asked_for_if_somebody_wants_it)
{
    struct rig *rig = rig_new();

    rig->options.wants_holdings = true;
    replica_set_options(rig->replica, &rig->options);
    follow(rig);
    replica_opened(rig->replica, rig->number, rig->now_ms);
    (void)said(rig);
    hear(rig, "+BLOOMERY 1 " PRIMARY_ID " " ABOVE_ID "\r\n");
    assert_string_equal("REPLCONF listening-port 7379 capa holdings",
                        said(rig));
    rig_free(rig);
}

enum { AT_AUTH, AT_HELLO, AT_PORT, AT_PSYNC, AT_STREAM };

static void
get_to(struct rig *rig, int step)
{
    rig->options.password = step == AT_AUTH ? "wrong" : "";
    replica_set_options(rig->replica, &rig->options);
    follow(rig);
    replica_opened(rig->replica, rig->number, rig->now_ms);
    if (step > AT_HELLO) {
        hear(rig, "+BLOOMERY 1 " PRIMARY_ID " -\r\n");
    }
    if (step > AT_PORT) {
        hear(rig, "+OK\r\n");
    }
    if (step > AT_PSYNC) {
        hear(rig, "+CONTINUE " HISTORY " " KEY_TEXT "\r\n");
        assert_true(replica_is_connected(rig->replica));
    }
    (void)said(rig);
}

/* As long as the longest of errors.def. Its end says what to do. */
#define TEXT_OF_80                                                             \
    "01234567890123456789012345678901234567890123456789012345678901234567890"  \
    "123456789"
#define LONG_ERROR                                                             \
    "READONLY " TEXT_OF_80 TEXT_OF_80 TEXT_OF_80 TEXT_OF_80 "promote that one"

TEST(each_refusal_has_its_reason)
{
    static const struct {
        int step;
        const char *line, *reason;
    } rows[] = {
        { AT_AUTH, "-WRONGPASS invalid username-password pair",
          "the primary does not take our password (masteruser, masterauth): "
          "WRONGPASS invalid username-password pair" },
        { AT_AUTH, "-ERR AUTH called without any password configured",
          "the primary does not take our password (masteruser, masterauth): "
          "ERR AUTH called without any password configured" },
        { AT_HELLO, "-NOAUTH Authentication required.",
          "the primary wants a password (masteruser, masterauth): "
          "NOAUTH Authentication required." },
        { AT_HELLO, "-LOADING soon",
          "the primary refused REPLCONF: LOADING soon" },
        { AT_HELLO, "-ERR Unrecognized REPLCONF option: bloomery",
          "not a Bloomery" },
        { AT_HELLO, "+OK", "Bloomery" },
        { AT_HELLO, "+BLOOMERY 2 " PRIMARY_ID " -", "newer" },
        { AT_HELLO, "+BLOOMERY 1 " RUN_ID " -",
          "the primary is this server itself" },
        { AT_HELLO, "+BLOOMERY 1 " PRIMARY_ID " " ABOVE_ID "," RUN_ID,
          "a ring: the primary is itself a replica of this server, 2 steps "
          "down" },
        { AT_HELLO,
          "+BLOOMERY 1 " PRIMARY_ID " " ABOVE_ID "," ABOVE_ID "," ABOVE_ID
          "," ABOVE_ID "," ABOVE_ID "," ABOVE_ID "," ABOVE_ID "," ABOVE_ID,
          "the primary has 8 primaries above it: no chain may be longer" },
        { AT_PORT, "-ERR no", "the primary refused REPLCONF: ERR no" },
        { AT_PORT, "+QUEUED", "cannot be read" },
        { AT_PSYNC, "-NOMASTERLINK none",
          "the primary refused PSYNC: NOMASTERLINK none" },
        { AT_PSYNC, "-ERR max \"replicas\"",
          "the primary refused PSYNC: ERR max 'replicas'" },
        { AT_PSYNC, "-" LONG_ERROR, "the primary refused PSYNC: " LONG_ERROR },
        { AT_PSYNC, "+CONTINUE " HISTORY, "" },
        { AT_PSYNC, "+FULLRESYNC " HISTORY " -1 2 " KEY_TEXT " 7", "" },
        { AT_PSYNC, "+WHAT", "" },
        { AT_STREAM, "-ERR leaving",
          "the primary closed the link: ERR leaving" },
        { AT_STREAM, "+WHAT", "cannot be read" },
        { AT_STREAM, "*1", "cannot be read" },
    };
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[1024];

        get_to(rig, rows[i].step);
        (void)snprintf(line, sizeof(line), "%s\r\n", rows[i].line);
        hear(rig, line);
        assert_false(rig->linked);
        assert_int_equal(STATUS_CONNECT, state_of(rig));
        if (strstr(reason_of(rig), rows[i].reason) == NULL ||
            reason_of(rig)[0] == '\0') {
            (void)fprintf(stderr, "%s: %s\n", rows[i].line, reason_of(rig));
            fail();
        }
        tick(rig, 10000);
        assert_true(rig->linked);
    }
    rig_free(rig);
}

TEST(no_answer_within_the_time_ends_each_step)
{
    static const char *const reasons[] = {
        "no answer to AUTH within 10000 ms",
        "no answer to REPLCONF within 10000 ms",
        "no answer to REPLCONF within 10000 ms",
        "no answer to PSYNC within 10000 ms",
    };
    struct rig *rig = rig_new();

    for (int step = AT_AUTH; step <= AT_PSYNC; step++) {
        get_to(rig, step);
        tick(rig, TIMEOUT_MS - 1);
        assert_true(rig->linked);
        tick(rig, 1);
        assert_false(rig->linked);
        assert_string_equal(reasons[step], reason_of(rig));
    }
    follow(rig);
    tick(rig, TIMEOUT_MS);
    assert_string_equal("no answer to a connection within 10000 ms",
                        reason_of(rig));
    rig_free(rig);
}

TEST(an_end_in_the_handshake_says_where)
{
    struct rig *rig = rig_new();

    follow(rig);
    replica_closed(rig->replica, rig->number, "connection refused",
                   rig->now_ms);
    rig->linked = false;
    assert_string_equal("connection refused", reason_of(rig));
    get_to(rig, AT_HELLO);
    replica_closed(rig->replica, rig->number, "end of file", rig->now_ms);
    rig->linked = false;
    assert_string_equal("the link ended before REPLCONF was answered: end of "
                        "file",
                        reason_of(rig));
    rig_free(rig);
}

TEST(a_replica_that_waits_for_a_snapshot_shows_that_it_lives)
{
    struct rig *rig = rig_new();

    get_to(rig, AT_PSYNC);
    assert_int_equal(STATUS_HANDSHAKE, state_of(rig));
    tick(rig, 2000);
    assert_string_equal("", said(rig));
    for (int i = 0; i < 30; i++) {
        hear(rig, "+PING\r\n");
        assert_int_equal(STATUS_SYNC, state_of(rig));
        tick(rig, 1000);
        expect_ack(rig, 0);
    }
    rig_free(rig);
}

TEST(the_chain_goes_upwards_and_its_changes_are_told)
{
    char chain[WIRE_CHAIN_MAX][WIRE_ID_CHARS + 1];
    struct rig *rig = rig_new();

    assert_int_equal(0, replica_chain(rig->replica, chain));
    get_to(rig, AT_STREAM);
    assert_int_equal(1, replica_chain(rig->replica, chain));
    assert_string_equal(PRIMARY_ID, chain[0]);
    assert_int_equal(1, rig->chained);
    for (int i = 0; i < 2; i++) {
        end_link(rig);
        tick(rig, 10000);
        replica_opened(rig->replica, rig->number, rig->now_ms);
        hear(rig, "+BLOOMERY 1 " PRIMARY_ID " " ABOVE_ID "\r\n");
        assert_int_equal(2, rig->chained);
    }
    assert_int_equal(2, replica_chain(rig->replica, chain));
    assert_string_equal(ABOVE_ID, chain[1]);
    replica_stop(rig->replica);
    assert_int_equal(0, replica_chain(rig->replica, chain));
    rig_free(rig);
}

TEST(what_cannot_be_sent_ends_the_link)
{
    struct rig *rig = rig_new();

    for (int step = AT_AUTH; step <= AT_STREAM; step++) {
        rig->no_memory = false;
        get_to(rig, step);
        rig->no_memory = true;
        if (step == AT_AUTH || step == AT_PORT) {
            hear(rig, "+OK\r\n");
        } else if (step == AT_HELLO) {
            hear(rig, "+BLOOMERY 1 " PRIMARY_ID " -\r\n");
        } else if (step == AT_PSYNC) {
            hear(rig, "+CONTINUE " HISTORY " " KEY_TEXT "\r\n");
        } else {
            hear(rig, "+GETACK\r\n+GETACK\r\n");
        }
        assert_false(rig->linked);
        assert_false(replica_is_connected(rig->replica));
    }
    rig_free(rig);
}
