/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each type of value: what is read, how it is shown, what is refused and in
 * which words. The words of plain options are those that Redis 7.0.15 answers,
 * those of bf.* valkey-bloom's.
 */
#include "conf/conf_value.h"

#include "../test.h"
#include "conf/conf.h"

struct accepted {
    const char *name, *text, *shown;
};

struct refused {
    const char *name, *text, *why;
};

#define FOUR_RULES    "1 1 2 2 3 3 4 4"
#define SIXTEEN_RULES FOUR_RULES " " FOUR_RULES " " FOUR_RULES " " FOUR_RULES

static const struct accepted accepted[] = {
    { "protected-mode", "YES", "yes" },
    { "protected-mode", "no", "no" },
    { "appendonly", "No", "no" },
    { "maxmemory", "64mb", "67108864" },
    { "maxmemory", "1K", "1000" },
    { "maxmemory", "9223372036854775807", "9223372036854775807" },
    { "unixsocketperm", "0660", "660" },
    { "loglevel", "WARNING", "warning" },
    { "loglevel", "nothing", "nothing" },
    { "bind", "  ::1\t127.0.0.1 ", "::1 127.0.0.1" },
    { "bind", "", "" },
    { "replicaof", "", "" },
    { "replicaof", "  ::1\t7379 ", "::1 7379" },
    { "slaveof", "a.example 65535", "a.example 65535" },
    { "unixsocket", "/run/bloomery/a b.sock", "/run/bloomery/a b.sock" },
    { "requirepass", "p w", "p w" },
    { "appendonly", "YES", "yes" },
    { "save", "", "" },
    { "save", "  ", "" },
    { "save", "3600 1 300 100 60 10000", "3600 1 300 100 60 10000" },
    { "save", " 900\t1  300 0 ", "900 1 300 0" },
    { "save", "1 2147483647 2147483647 0", "1 2147483647 2147483647 0" },
    { "save", SIXTEEN_RULES, SIXTEEN_RULES },
    { "dir", "/var/lib/bloomery", "/var/lib/bloomery" },
    { "dbfilename", "..a b", "..a b" },
    { "appenddirname", ".journal", ".journal" },
    { "appendfsync", "ALWAYS", "always" },
    { "appendfsync", "everysec", "everysec" },
    { "appendfsync", "no", "no" },
    { "auto-aof-rewrite-min-size", "0", "0" },
    { "journal-buffer-limit", "1mb", "1048576" },
    { "misconf-after", "0", "0" },
    { "client-output-buffer-limit", "NORMAL 1kb 0 5", "normal 1024 0 5" },
    { "client-output-buffer-limit", "normal 1 2 3 normal 4 5 6",
      "normal 4 5 6" },
    { "client-output-buffer-limit", "PubSub 32mb 8mb 60",
      "pubsub 33554432 8388608 60" },
    { "client-output-buffer-limit", "pubsub 1 2 3 normal 4 5 6 pubsub 7 8 9",
      "normal 4 5 6 pubsub 7 8 9" },
    { "client-output-buffer-limit", "replica 1 2 3", "slave 1 2 3" },
    { "client-output-buffer-limit", "pubsub 7 8 9 slave 256mb 64mb 60",
      "slave 268435456 67108864 60 pubsub 7 8 9" },
    { "bf.bloom-fp-rate", "1e-3", "1e-3" },
    { "bf.bloom-fp-rate", ".5", ".5" },
    { "bf.bloom-fp-rate", "+0.50", "+0.50" },
    { "bf.bloom-memory-usage-limit", "256mb", "268435456" },
    { "bf.bloom-memory-usage-limit", "0", "0" },
    { "bf.bloom-capacity", "9223372036854775807", "9223372036854775807" },
};

static const struct refused refused[] = {
    { "protected-mode", "true", "argument must be 'yes' or 'no'" },
    { "protected-mode", "", "argument must be 'yes' or 'no'" },
    { "appendonly", "maybe", "argument must be 'yes' or 'no'" },
    { "timeout", "abc", "argument couldn't be parsed into an integer" },
    { "timeout", "1.5", "argument couldn't be parsed into an integer" },
    { "timeout", "+1", "argument couldn't be parsed into an integer" },
    { "timeout", " 1", "argument couldn't be parsed into an integer" },
    { "timeout", "1kb", "argument couldn't be parsed into an integer" },
    { "timeout", "99999999999999999999",
      "argument couldn't be parsed into an integer" },
    { "timeout", "-1", "argument must be between 0 and 2147483647 inclusive" },
    { "maxmemory", "-1", "argument must be a memory value" },
    { "maxmemory", "12qb", "argument must be a memory value" },
    { "maxmemory", "1.5gb", "argument must be a memory value" },
    { "maxmemory", "9223372036854775808",
      "argument must be between 0 and 9223372036854775807 inclusive" },
    { "proto-max-bulk-len", "1",
      "argument must be between 1048576 and 536870912 inclusive" },
    { "unixsocketperm", "778",
      "argument couldn't be parsed as an octal number" },
    { "unixsocketperm", "", "argument couldn't be parsed as an octal number" },
    { "unixsocketperm", "7777777777777777777777777777",
      "argument couldn't be parsed as an octal number" },
    { "unixsocketperm", "1000",
      "argument must be between 0 and 777 inclusive" },
    { "loglevel", "foo",
      "argument(s) must be one of the following: debug, verbose, notice, "
      "warning, nothing" },
    { "maxmemory-policy", "allkeys",
      "argument(s) must be one of the following: volatile-lru, volatile-lfu, "
      "volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, "
      "allkeys-random, noeviction" },
    { "bind", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
      "Too many bind addresses specified." },
    { "slave-priority", "-1",
      "argument must be between 0 and 2147483647 inclusive" },
    { "min-slaves-max-lag", "x",
      "argument couldn't be parsed into an integer" },
    { "replicaof", "host", "argument must be a host and a port" },
    { "replicaof", "host 0", "argument must be a host and a port" },
    { "replicaof", "host 65536", "argument must be a host and a port" },
    { "replicaof", "host port", "argument must be a host and a port" },
    { "slaveof", "no two", "argument must be a host and a port" },
    { "slaveof", "host 1 2", "argument must be a host and a port" },
    { "save", "3600", "Invalid save parameters" },
    { "save", "3600 1 300", "Invalid save parameters" },
    { "save", "0 1", "Invalid save parameters" },
    { "save", "-1 1", "Invalid save parameters" },
    { "save", "1 -1", "Invalid save parameters" },
    { "save", "1 x", "Invalid save parameters" },
    { "save", "2147483648 1", "Invalid save parameters" },
    { "save", "1 2147483648", "Invalid save parameters" },
    { "save", "60 99999999999999999999", "Invalid save parameters" },
    { "save", SIXTEEN_RULES " 5 5", "at most 16 pairs of save parameters" },
    { "latency-tracking-info-percentiles", "50 x",
      "Invalid latency-tracking-info-percentiles parameters" },
    { "latency-tracking-info-percentiles", "nan",
      "latency-tracking-info-percentiles parameters should sit between "
      "[0.0,100.0]" },
    { "latency-tracking-info-percentiles", "-0.1",
      "latency-tracking-info-percentiles parameters should sit between "
      "[0.0,100.0]" },
    { "latency-tracking-info-percentiles",
      "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2",
      "at most 32 percentiles" },
    { "dir", "", "dir can't be empty" },
    { "dbfilename", "", "dbfilename can't be empty" },
    { "dbfilename", "a/b", "dbfilename can't be a path, just a filename" },
    { "dbfilename", "..", "dbfilename can't be a path, just a filename" },
    { "appenddirname", "", "appenddirname can't be empty" },
    { "appenddirname", "/", "appenddirname can't be a path, just a dirname" },
    { "appenddirname", ".", "appenddirname can't be a path, just a dirname" },
    { "appendfsync", "sometimes",
      "argument(s) must be one of the following: everysec, always, no" },
    { "journal-buffer-limit", "1048575",
      "argument must be between 1048576 and 1099511627776 inclusive" },
    { "client-output-buffer-limit", "",
      "Wrong number of arguments in buffer limit configuration." },
    { "client-output-buffer-limit", "normal 1 2",
      "Wrong number of arguments in buffer limit configuration." },
    { "client-output-buffer-limit", "foo 1 2 3",
      "Invalid client class specified in buffer limit configuration." },
    { "client-output-buffer-limit", "normal a 1 2",
      "Error in hard, soft or soft_seconds setting in buffer limit "
      "configuration." },
    { "client-output-buffer-limit", "normal 1mb 1kb -1",
      "Error in hard, soft or soft_seconds setting in buffer limit "
      "configuration." },
    { "bf.bloom-capacity", "0",
      "argument must be between 1 and 9223372036854775807 inclusive" },
    { "bf.bloom-capacity", "9223372036854775808",
      "argument couldn't be parsed into an integer" },
    { "bf.bloom-capacity", "1mb",
      "argument couldn't be parsed into an integer" },
    { "bf.bloom-expansion", "4294967296",
      "argument must be between 0 and 4294967295 inclusive" },
    { "bf.bloom-memory-usage-limit", "-1",
      "argument must be between 0 and 9223372036854775807 inclusive" },
    { "bf.bloom-memory-usage-limit", "many",
      "argument couldn't be parsed into an integer" },
    { "bf.bloom-fp-rate", "0", "ERR (0 < error rate range < 1)" },
    { "bf.bloom-fp-rate", "1", "ERR (0 < error rate range < 1)" },
    { "bf.bloom-fp-rate", "nan", "ERR (0 < error rate range < 1)" },
    { "bf.bloom-fp-rate", "0.99999999999999999",
      "ERR (0 < error rate range < 1)" },
    { "bf.bloom-fp-rate", "0.01f", "Invalid floating-point value" },
    { "bf.bloom-fp-rate", "", "Invalid floating-point value" },
    { "bf.bloom-tightening-ratio", "1",
      "ERR (0 < tightening ratio range < 1)" },
    { "bf.bloom-use-random-seed", "false", "argument must be 'yes' or 'no'" },
    { "bf-error-rate", "x", "Invalid value for `bf-error-rate`" },
    { "bf-error-rate", "nan", "Invalid value for `bf-error-rate`" },
    { "bf-error-rate", "1",
      "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)" },
    { "bf-initial-size", "05", "Invalid value for `bf-initial-size`" },
    { "bf-initial-size", "0",
      "Value for `bf-initial-size` must be in the range [1, 1073741824]" },
    { "bf-expansion-factor", "32769",
      "Value for `bf-expansion-factor` must be in the range [0, 32768]" },
};

static void
expect_shown(const struct conf_row *row, const union conf_value *value,
             const char *shown)
{
    struct buf text = { 0 };

    conf_value_format(row, value, &text);
    buf_append(&text, "", 1);
    assert_string_equal(text.data, shown);
    buf_free(&text);
}

TEST(accepted_values_are_shown_and_read_back)
{
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        const struct conf_row *row = conf_find(slice_of(accepted[i].name));
        union conf_value value;
        union conf_value again;
        struct conf_error error = { .text = "" };

        assert_non_null(row);
        assert_true(
            conf_value_parse(row, slice_of(accepted[i].text), &value, &error));
        expect_shown(row, &value, accepted[i].shown);
        assert_true(
            conf_value_parse(row, slice_of(accepted[i].shown), &again, &error));
        assert_true(conf_value_equal(row, &value, &again));
        expect_shown(row, &again, accepted[i].shown);
        conf_value_free(row, &value);
        conf_value_free(row, &again);
    }
}

TEST(refused_values_have_a_reason)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const struct conf_row *row = conf_find(slice_of(refused[i].name));
        union conf_value value;
        struct conf_error error = { .text = "" };

        assert_non_null(row);
        if (conf_value_parse(row, slice_of(refused[i].text), &value, &error)) {
            fail_msg("%s: %s was taken", refused[i].name, refused[i].text);
        }
        assert_string_equal(error.text, refused[i].why);
    }
}

TEST(long_values_and_zero_bytes_are_refused_for_every_option)
{
    char text[CONF_LIST_MAX];
    union conf_value value;
    struct conf_error error;

    memset(text, '1', sizeof(text));
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        bool is_list = conf_table[i].type == CONF_STRINGS;
        size_t len = is_list ? CONF_LIST_MAX : CONF_VALUE_MAX;

        assert_false(conf_value_parse(
            &conf_table[i], (struct slice){ text, len }, &value, &error));
        assert_string_equal(
            error.text, is_list ? "argument must be shorter than 32768 bytes"
                                : "argument must be shorter than 1024 bytes");
        assert_false(conf_value_parse(
            &conf_table[i], (struct slice){ "no\0", 3 }, &value, &error));
        assert_string_equal(error.text,
                            "argument must not contain a zero byte");
    }
}

TEST(a_text_may_be_as_long_as_its_row_says)
{
    const struct conf_row *row = &conf_table[CONF_OPTION_unixsocket];
    char text[108];
    union conf_value value;
    struct conf_error error;

    memset(text, 'x', sizeof(text));
    assert_true(
        conf_value_parse(row, (struct slice){ text, 107 }, &value, &error));
    assert_int_equal(strlen(value.text), 107);
    conf_value_free(row, &value);
    assert_false(
        conf_value_parse(row, (struct slice){ text, 108 }, &value, &error));
    assert_string_equal(error.text, "argument must be at most 107 bytes long");
}

TEST(a_list_may_be_longer_than_other_values)
{
    const struct conf_row *row = &conf_table[CONF_OPTION_sidecar_map];
    struct buf text = { 0 };
    union conf_value value;
    struct conf_error error;

    for (unsigned i = 0; i < 256; i++) {
        buf_printf(&text,
                   "%040u=[2001:db8:0000:0000:0000:0000:0000:%04x]:7379 ", i,
                   i);
    }
    assert_true(conf_value_parse(row, buf_slice(&text), &value, &error));
    assert_int_equal(strlen(value.text) + 1, text.len);
    conf_value_free(row, &value);
    buf_append_slice(&text, slice_lit("x"));
    assert_false(conf_value_parse(row, buf_slice(&text), &value, &error));
    assert_string_equal(error.text, "argument must be at most 256 words");
    buf_free(&text);
}

TEST(an_empty_slice_may_point_nowhere)
{
    const struct conf_row *row = &conf_table[CONF_OPTION_requirepass];
    union conf_value value;
    struct conf_error error;

    assert_true(
        conf_value_parse(row, (struct slice){ NULL, 0 }, &value, &error));
    assert_string_equal(value.text, "");
    conf_value_free(row, &value);
}

TEST(percentiles_keep_their_order_and_are_shown_in_their_shortest_form)
{
    const struct conf_row *row =
        &conf_table[CONF_OPTION_latency_tracking_info_percentiles];
    union conf_value value, same;
    struct conf_error error;
    struct buf text = { 0 };

    assert_true(
        conf_value_parse(row, slice_lit(" 99.90  5e1 0 100 "), &value, &error));
    assert_int_equal(value.percentiles.count, 4);
    assert_true(value.percentiles.value[1] == 50);
    conf_value_format(row, &value, &text);
    assert_true(slice_equal(buf_slice(&text), slice_lit("99.9 50 0 100")));
    assert_true(conf_value_parse(row, buf_slice(&text), &same, &error));
    assert_true(conf_value_equal(row, &value, &same));
    assert_true(conf_value_parse(row, slice_lit(""), &same, &error));
    assert_int_equal(same.percentiles.count, 0);
    assert_false(conf_value_equal(row, &value, &same));
    buf_free(&text);
    conf_value_free(row, &value);
    conf_value_free(row, &same);
}
