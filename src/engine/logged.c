/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/logged.h"

#include "proto/scan.h"

#include <errno.h>

int
logged_fill(struct batch *batch, struct slice text, size_t *at)
{
    static const struct parse_limits limits = { .args_max = SIZE_MAX,
                                                .bulk_max = SIZE_MAX,
                                                .query_max = SIZE_MAX };

    batch_clear(batch);
    if (*at == text.len) {
        return 0;
    }
    if (scan_commands(text, &limits, batch, at) != OK) {
        return ENOMEM;
    }
    return batch->count > 0 ? 0 : EINVAL;
}

/* REPLCONF HISTORY names the history of the log that follows
 * (journal/history.h). Logs have no other REPLCONF. */
enum logged_kind
logged_kind_of(const struct command *row, const struct slice *argv, size_t argc)
{
    enum logged_kind kind = row != NULL ? row->logged : LOGGED_NEVER;
    bool fits = kind != LOGGED_HISTORY ||
                (argc > 1 && slice_is_word(argv[1], "history"));

    return fits ? kind : LOGGED_NEVER;
}

void
logged_begin(struct logged_reader *reader, struct slice text)
{
    batch_clear(&reader->batch);
    reader->text = text;
    reader->at = 0;
    reader->next = 0;
    reader->error = 0;
}

bool
logged_next(struct logged_reader *reader, struct logged *ret_logged)
{
    struct batch *batch = &reader->batch;
    const struct batch_command *bytes;
    struct logged logged;

    if (reader->next == batch->count) {
        reader->next = 0;
        reader->error = logged_fill(batch, reader->text, &reader->at);
        if (reader->error != 0 || batch->count == 0) {
            return false;
        }
    }
    bytes = &batch->command[reader->next++];
    logged.argv = &batch->argv[bytes->first];
    logged.argc = bytes->argc;
    logged.begin = bytes->begin;
    logged.end = reader->next < batch->count ? (bytes + 1)->begin : reader->at;
    logged.row = command_find(logged.argv[0]);
    if (logged.row != NULL && !command_arity_fits(logged.row, logged.argc)) {
        logged.row = NULL;
    }
    logged.kind = logged_kind_of(logged.row, logged.argv, logged.argc);
    *ret_logged = logged;
    return true;
}

void
logged_fini(struct logged_reader *reader)
{
    batch_fini(&reader->batch);
}
