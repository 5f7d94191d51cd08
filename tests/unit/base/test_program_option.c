/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options of programs: which row a word names, and which values it takes.
 */
#include "base/program_option.h"

#include "../test.h"

#include <string.h>

struct values {
    bool on;
    const char *text;
    uint64_t number, bytes;
};

/* Returns the name of the option that the word sets; "": none, "!": it refuses
 * the value. */
static const char *
read_word(struct values *values, const char *word, const char *next)
{
    const struct program_option list[] = {
        { "--on", PROGRAM_OPTION_ON, 0, &values->on, 0, 0 },
        { "--text", PROGRAM_OPTION_TEXT, 0, &values->text, 0, 0 },
        { "--number", PROGRAM_OPTION_NUMBER, 0, &values->number, 2, 9 },
        { "--numbers", PROGRAM_OPTION_BYTES, 0, &values->bytes, 1, 1 << 20 },
        { NULL, PROGRAM_OPTION_ON, 0, NULL, 0, 0 },
    };
    const char *value = "?";
    const struct program_option *option =
        program_option_find(list, word, &value);

    if (option->name == NULL) {
        assert_null(value);
        return "";
    }
    return program_option_set(option, value != NULL ? value : next)
               ? option->name
               : "!";
}

TEST(a_word_names_its_option_with_or_without_a_value)
{
    struct values values = { .on = false };

    assert_string_equal("--on", read_word(&values, "--on", ""));
    assert_true(values.on);
    assert_string_equal("--text", read_word(&values, "--text=a=b", "c"));
    assert_string_equal("a=b", values.text);
    assert_string_equal("--text", read_word(&values, "--text=", "c"));
    assert_string_equal("", values.text);
    assert_string_equal("--text", read_word(&values, "--text", "c"));
    assert_string_equal("c", values.text);
    assert_string_equal("--numbers", read_word(&values, "--numbers=1mb", ""));
    assert_int_equal(1 << 20, values.bytes);
    assert_string_equal("--number", read_word(&values, "--number=9", ""));
    assert_int_equal(9, values.number);
}

TEST(other_words_name_none)
{
    static const char *const words[] = { "",        "--",     "--o",
                                         "--once",  "-on",    "on",
                                         "--text-", "--Text", "--number2=3" };
    struct values values = { .on = false };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        assert_string_equal("", read_word(&values, words[i], "1"));
    }
    assert_false(values.on);
}

TEST(values_out_of_range_or_of_another_kind_change_nothing)
{
    static const char *const words[] = {
        "--number=1",  "--number=10",  "--number=",          "--number=-2",
        "--number=3x", "--numbers=0",  "--numbers=2mb",      "--numbers=1zb",
        "--number=1k", "--numbers=-1", "--number=4294967298"
    };
    struct values values = { .number = 7, .bytes = 7 };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        assert_string_equal("!", read_word(&values, words[i], ""));
        assert_int_equal(7, values.number);
        assert_int_equal(7, values.bytes);
    }
}
