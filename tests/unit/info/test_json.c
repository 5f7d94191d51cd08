/* SPDX-License-Identifier: BSD-3-Clause
 *
 * JSON, value by value.
 */
#include "info/json.h"

#include "../test.h"

TEST(json_has_commas_where_they_belong)
{
    struct buf text = { 0 };
    struct json to = { .text = &text };

    json_open(&to, NULL, '{');
    json_count(&to, "a", UINT64_MAX);
    json_open(&to, "b", '[');
    json_close(&to, ']');
    json_open(&to, "c", '[');
    json_open(&to, NULL, '{');
    json_count(&to, "d", 1);
    json_close(&to, '}');
    json_bool(&to, NULL, true);
    json_null(&to, NULL);
    json_close(&to, ']');
    json_number(&to, "e", 0.0125);
    json_bool(&to, "f", false);
    json_close(&to, '}');
    buf_append(&text, "", 1);
    assert_string_equal(text.data,
                        "{\"a\":18446744073709551615,\"b\":[],\"c\":[{\"d\":1}"
                        ",true,null],\"e\":0.0125,\"f\":false}");
    buf_free(&text);
}

TEST(json_texts_may_be_any_bytes)
{
    struct buf text = { 0 };
    struct json to = { .text = &text };

    json_text(&to, NULL,
              (struct slice){ "a\"\\\n\0\x7f\xc3\xa4</script>", 17 });
    buf_append(&text, "", 1);
    assert_string_equal(
        text.data, "\"a\\\"\\\\\\\\\\\\x0a\\\\x00\\\\x7f\\\\xc3\\\\xa4</script>"
                   "\"");
    buf_free(&text);
}

TEST(no_two_texts_look_alike)
{
    struct buf byte = { 0 };
    struct buf spelled = { 0 };

    json_append_quoted(&byte, slice_lit("\x01"));
    json_append_quoted(&spelled, slice_lit("\\x01"));
    assert_false(slice_equal(buf_slice(&byte), buf_slice(&spelled)));
    buf_free(&byte);
    buf_free(&spelled);
}
