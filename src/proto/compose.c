/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/compose.h"

#include "base/err.h"
#include "proto/reply.h"

void
compose_command(struct buf *out, const struct slice *words, size_t count)
{
    struct reply reply = { out, 2 };

    CHECK(count > 0);
    reply_array(&reply, count);
    for (size_t i = 0; i < count; i++) {
        reply_bulk(&reply, words[i]);
    }
}

size_t
login_words(unsigned protocol, struct slice user, struct slice password,
            struct slice ret_words[LOGIN_WORDS_MAX])
{
    bool hello = protocol != LOGIN_ANY_PROTOCOL;
    size_t count = 0;

    if (hello) {
        CHECK(protocol == 3);
        ret_words[count++] = slice_lit("HELLO");
        ret_words[count++] = slice_lit("3");
    }
    if (password.data == NULL) {
        return count;
    }
    ret_words[count++] = slice_lit("AUTH");
    if (user.len > 0) {
        ret_words[count++] = user;
    } else if (hello) {
        ret_words[count++] = slice_lit("default");
    }
    ret_words[count++] = password;
    return count;
}

bool
compose_login(struct buf *out, struct slice user, struct slice password)
{
    struct slice words[LOGIN_WORDS_MAX];

    if (password.len == 0) {
        return false;
    }
    compose_command(out, words,
                    login_words(LOGIN_ANY_PROTOCOL, user, password, words));
    return true;
}
