/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of logfmt as members of an object, and lines that are too long.
 */
#include "base/log_json.h"

#include "../test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char head[] =
    "{\"time\":\"T\",\"level\":\"info\",\"source\":\"s\",\"event\":\"e\"";

static size_t
write_json(char *line, size_t size, const char *fields)
{
    return log_json_write(line, size,
                          &(struct log_parts){ .time = "T",
                                               .level = "info",
                                               .source = "s",
                                               .event = "e",
                                               .fields = fields });
}

static void
expect(const char *fields, const char *members)
{
    char line[1024];
    char wanted[1024];
    size_t len = write_json(line, sizeof(line) - 1, fields);

    line[len] = '\0';
    (void)snprintf(wanted, sizeof(wanted), "%s%s}", head, members);
    assert_string_equal(line, wanted);
}

TEST(fields_become_members)
{
    expect("", "");
    expect("port=7379 path=/x", ",\"port\":7379,\"path\":\"/x\"");
    expect("reason=\"two words\" n=1", ",\"reason\":\"two words\",\"n\":1");
    expect("a=\"\" b= c=\"x=y\"", ",\"a\":\"\",\"b\":\"\",\"c\":\"x=y\"");
    expect("tls-port=1  eta_s=2 ", ",\"tls-port\":1,\"eta_s\":2");
    expect("raise LimitNOFILE", ",\"detail\":\"raise LimitNOFILE\"");
    expect("a=1 and more", ",\"a\":1,\"detail\":\"and more\"");
}

TEST(only_numbers_of_json_stay_numbers)
{
    expect("a=0 b=-1 c=1.5 d=0.25", ",\"a\":0,\"b\":-1,\"c\":1.5,\"d\":0.25");
    expect("a=01 b=1. c=.5 d=- e=1e5",
           ",\"a\":\"01\",\"b\":\"1.\",\"c\":\".5\",\"d\":\"-\",\"e\":\"1e5\"");
    expect("a=1.2.3 b=\"7\" c=-0.5", ",\"a\":\"1.2.3\",\"b\":\"7\",\"c\":-0.5");
    expect("a=999999999999999 b=9999999999999999",
           ",\"a\":999999999999999,\"b\":\"9999999999999999\"");
}

TEST(quotes_inside_values_do_not_end_them)
{
    expect("reason=\"a \"b\" c\" n=1", ",\"reason\":\"a \\\"b\\\" c\",\"n\":1");
    expect("reason=\"it ends with \"b\"\"",
           ",\"reason\":\"it ends with \\\"b\\\"\"");
    expect("reason=\"cut", ",\"reason\":\"cut\"");
    expect("reason=\"back\\slash\"", ",\"reason\":\"back\\\\slash\"");
}

TEST(other_bytes_than_text_are_replaced)
{
    expect("a=\"x\ny\x01\x7f\"", ",\"a\":\"x\\u000ay\\u0001\\u007f\"");
    expect("a=\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
           ",\"a\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
    expect("a=\"\xff\xc3\"", ",\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\"");
    expect("a=\"\xc0\x80\"", ",\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\"");
    expect("a=\"\xed\xa0\x80\"",
           ",\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    expect("a=\"\xf4\x90\x80\x80\"",
           ",\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* Whether all strings end, and the object with them. */
static bool
is_whole(const char *line, size_t len)
{
    bool inside = false;

    for (size_t i = 0; i < len; i++) {
        if (inside && line[i] == '\\') {
            i++;
        } else if (line[i] == '"') {
            inside = !inside;
        } else if (!inside && line[i] == '}') {
            return i + 1 == len && line[i - 1] != ',' && line[i - 1] != ':';
        }
    }
    return false;
}

TEST(a_line_that_is_too_long_is_cut_and_whole)
{
    static const char *const fields[] = {
        "value=\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" n=12",
        "n=123456789 m=123456789 longer-name=1 name-that-is-long=\"x\"",
        "q=\"\\\\\\\\\\\\\\\\\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\" "
        "\n\n\n\n\n\n\n\n",
        "u="
        "\"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xff\xff\xff\xff\xff\xff\xff\"",
    };
    char line[1024];

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        for (size_t size = sizeof(head) + 1; size < 400; size++) {
            size_t len;

            memset(line, '#', sizeof(line));
            len = write_json(line, size, fields[i]);
            assert_true(len <= size);
            assert_int_equal('#', line[size]);
            if (!is_whole(line, len)) {
                fail_msg("%.*s", (int)len, line);
            }
        }
    }
}
