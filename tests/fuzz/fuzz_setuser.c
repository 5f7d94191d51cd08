/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any words as those of ACL SETUSER. What is accepted is written as an aclfile
 * that makes the same users again, who may do the same: the text cannot add a
 * user, lose one, or refuse to load.
 *
 * Input: words, each with its length in a byte before it. The first word of a
 * user is its name; the length 255 ends a user.
 */
#include "../unit/access/write_help.h"
#include "access/users_file.h"
#include "base/err.h"
#include "base/mem.h"
#include "command/rows.h"
#include "target.h"

#include <string.h>

enum { END = 255, WORDS_MAX = 64, ASKED = 3 /* words of a command */ };

static size_t
take_words(struct slice *input, struct slice *ret_words)
{
    size_t count = 0;

    while (input->len > 0 && count < WORDS_MAX) {
        size_t len = (unsigned char)input->data[0];

        input->data++;
        input->len--;
        if (len == END) {
            break;
        }
        len = len < input->len ? len : input->len;
        ret_words[count++] = (struct slice){ input->data, len };
        input->data += len;
        input->len -= len;
    }
    return count;
}

static void
set_users(struct users *users, struct slice input)
{
    struct slice words[WORDS_MAX];

    while (input.len > 0) {
        struct user_refusal refusal = { 0 };
        size_t count = take_words(&input, words);

        if (count > 0 && user_name_is_valid(words[0])) {
            (void)!users_set(users, words[0], words + 1, count - 1, &refusal);
        }
        buf_wipe(&refusal.words);
    }
}

/* Both users answer each command about pieces of the input in the same way. */
static void
check_same(const struct user *one, const struct user *other, struct slice text)
{
    struct slice words[ASKED];

    CHECK(slice_equal(user_name(one), user_name(other)));
    for (size_t i = 0; i < ASKED; i++) {
        size_t from = text.len * i / ASKED;

        words[i] = (struct slice){ text.data + from,
                                   text.len * (i + 1) / ASKED - from };
    }
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        struct permission_query query = { command_at(id), words, ASKED,
                                          id % 16 };
        size_t at = 0;
        size_t other_at = 0;

        CHECK(user_check(one, &query, &at) ==
              user_check(other, &query, &other_at));
        CHECK(at == other_at);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = { (const char *)data, size };
    struct users_draft draft = { 0 };
    struct buf text = { 0 }, errors = { 0 };
    struct users *users;
    struct user **list;
    size_t count = 0;

    command_table_init(command_rows);
    users = users_new();
    set_users(users, input);
    CHECK(write_all(users, &text, &errors) && errors.len == 0);
    CHECK(users_file_read(users, "f", buf_slice(&text), &draft, &errors));
    list = users_sorted(users, &count);
    CHECK(list != NULL && count == draft.count);
    for (size_t i = 0; i < count; i++) {
        check_same(list[i], draft.list[i], input);
    }
    mem_free(list);
    users_draft_free(&draft);
    users_free(users);
    buf_free(&text);
    return 0;
}

/* ---- inputs -------------------------------------------------------------- */

static const char *const pieces[] = {
    "~",           "&",      "%R~",  "%W~",   "%RW~",   "*",    "k",
    ")",           "(",      " ",    "\t",    "\n",     "\r",   "\v",
    "+",           "-",      "@all", "@read", "@write", "get",  "|",
    "select",      "client", "id",   "on",    "reset",  "db=",  "0,1",
    "allkeys",     "nopass", ">p",   "#",     "alldbs", "\x01", "resetdbs",
    "allchannels", "user x", "?",    "[",     "\\",     "",     "resetkeys",
};

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    size_t len = 0;

    (void)max;
    for (uint64_t words = 1 + fuzz_next(&random) % 12; words > 0; words--) {
        size_t begin = len++;

        if (fuzz_next(&random) % 6 == 0) {
            to[begin] = END;
            continue;
        }
        for (uint64_t n = 1 + fuzz_next(&random) % 4; n > 0; n--) {
            const char *piece =
                pieces[fuzz_next(&random) % (sizeof(pieces) / sizeof(*pieces))];

            memcpy(to + len, piece, strlen(piece));
            len += strlen(piece);
        }
        to[begin] = (uint8_t)(len - begin - 1);
    }
    return len;
}
