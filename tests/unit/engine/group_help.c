/* SPDX-License-Identifier: BSD-3-Clause */
#include "group_help.h"

void
encode(struct buf *out, const char *text)
{
    while (*text != '\0') {
        size_t line = strcspn(text, ";");
        struct slice words[32];
        size_t argc = 0;

        for (size_t at = 0; at < line;) {
            size_t len = strcspn(text + at, " ;");

            words[argc] = (struct slice){ text + at, len };
            if (slice_equal(words[argc], slice_lit("<seed>"))) {
                words[argc] = (struct slice){ (const char *)fixed_seed,
                                              sizeof(fixed_seed) };
            }
            argc += len > 0;
            at += len + 1;
        }
        buf_printf(out, "*%zu\r\n", argc);
        for (size_t i = 0; i < argc; i++) {
            buf_printf(out, "$%zu\r\n", words[i].len);
            buf_append_slice(out, words[i]);
            buf_append(out, "\r\n", 2);
        }
        text += line + (text[line] == ';');
    }
}

uint64_t
incarnation_of(struct rig *rig, const char *name)
{
    struct key key = key_named(slice_of(name), 0);
    struct entry *entry = keyspace_find(rig->service.keyspace, &key, 0);

    return entry != NULL ? entry->incarnation : 0;
}
