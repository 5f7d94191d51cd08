/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_stream.h"

#include <inttypes.h>

enum { ARGS_MAX = 16 * 1024 * 1024 };

void
load_stream_begin(struct load_stream *stream, struct load_apply *apply,
                  const char *name, uint64_t offset)
{
    *stream = (struct load_stream){ .apply = apply,
                                    .name = name,
                                    .pool = stream_pool_new(),
                                    .read = offset,
                                    .offset = offset };
}

void
load_stream_end(struct load_stream *stream)
{
    stream_fini(&stream->stream, stream->pool);
    stream_pool_free(stream->pool);
    batch_fini(&stream->batch);
}

static bool
refuse(const struct load_stream *stream, uint64_t offset)
{
    tool_complain(&stream->apply->target->load->tool, LOAD_UNREADABLE,
                  "%s: the command at offset %" PRIu64
                  " is damaged, or longer than --max-value",
                  stream->name, offset);
    return false;
}

/* Returns whether a command that begins so is one that a source writes: RESP,
 * or a note. Inline commands are clients' own: here, they are damage, or not an
 * AOF at all. */
static bool
is_written(char first)
{
    return first == '*' || first == '#' || first == '\r' || first == '\n';
}

/* Returns the first byte of a command, behind empty lines. */
static char
first_byte(const char *data, size_t len)
{
    size_t at = 0;

    while (at + 1 < len && (data[at] == '\r' || data[at] == '\n')) {
        at++;
    }
    return data[at];
}

/* Applies the commands of these bytes. cut: they complete a single command,
 * whose first bytes came before. */
static bool
apply_batch(struct load_stream *stream, const char *data, bool cut)
{
    const struct batch *batch = &stream->batch;

    for (uint32_t i = 0; i < batch->count; i++) {
        const struct batch_command *command = &batch->command[i];
        const char *first = cut ? &stream->first : &data[command->begin];

        if (!is_written(*first)) {
            return refuse(stream, stream->offset + command->begin);
        }
        if (!load_apply(stream->apply, batch->argv + command->first,
                        command->argc)) {
            return false;
        }
    }
    return true;
}

bool
load_stream_feed(struct load_stream *stream, struct slice bytes)
{
    size_t bulk = (size_t)stream->apply->target->load->value_bytes;
    const struct parse_limits limits = { ARGS_MAX, bulk, 2 * bulk, false };
    size_t at = 0;

    while (at < bytes.len) {
        struct parse_error error = { OK, "" };
        const char *data = bytes.data + at;
        bool cut = stream->stream.partial != NULL;
        size_t used = 0;
        enum stream_result result =
            stream_parse(&stream->stream, stream->pool, &limits, data,
                         bytes.len - at, &stream->batch, &used, &error);

        if (result == STREAM_ERROR) {
            return refuse(stream, stream->offset);
        }
        if (!cut) {
            stream->first = first_byte(data, bytes.len - at);
        }
        at += used;
        stream->read += used;
        if (result == STREAM_MORE) {
            break;
        }
        if (!apply_batch(stream, data, cut)) {
            return false;
        }
        stream->offset = stream->read;
        stream_done(&stream->stream, stream->pool);
        batch_clear(&stream->batch);
    }
    return true;
}
