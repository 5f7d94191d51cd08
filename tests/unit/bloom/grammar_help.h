/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words in, properties out: what the tests of the two grammars share. Include
 * after rig.h.
 */
#pragma once

#include "bloom/grammar_valkey.h"

#include "command/rows.h"
/* One request, never run. */
struct asked {
    struct slice argv[32];
    struct request req;
    struct bloom_insert insert;
};

/* Words between single blanks; two make an empty word, <seed> is the seed. */
static inline struct asked *
ask(struct rig *rig, enum command_id id, const char *text)
{
    static struct asked asked;

    asked = (struct asked){ .req = { .command = &command_rows[id],
                                     .service = &rig->service,
                                     .worker = rig->worker,
                                     .session = &rig->session,
                                     .argv = asked.argv } };
    for (;;) {
        size_t len = strcspn(text, " ");
        struct slice word = { text, len };

        if (slice_equal(word, slice_lit("<seed>"))) {
            word =
                (struct slice){ (const char *)fixed_seed, sizeof(fixed_seed) };
        }
        asked.argv[asked.req.argc++] = word;
        if (text[len] == '\0') {
            break;
        }
        text += len + 1;
    }
    asked.insert.params =
        (struct bloom_params){ .struct_size = sizeof(struct bloom_params),
                               .capacity = 1,
                               .error_rate = 0.125,
                               .tightening = 0.5,
                               .expansion = 9 };
    return &asked;
}
