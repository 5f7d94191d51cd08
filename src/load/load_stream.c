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
apply_batch(struct load_stream *stream)
{
    const struct batch *batch = &stream->batch;

    for (uint32_t i = 0; i < batch->count; i++) {
        const struct batch_command *command = &batch->command[i];

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
    struct tool *tool = &stream->apply->target->load->tool;
    size_t bulk = (size_t)stream->apply->target->load->value_bytes;
    const struct parse_limits limits = { ARGS_MAX, bulk, 2 * bulk, false };
    size_t at = 0;

    while (at < bytes.len) {
        struct parse_error error = { OK, "" };
        size_t used = 0;
        enum stream_result result = stream_parse(
            &stream->stream, stream->pool, &limits, bytes.data + at,
            bytes.len - at, &stream->batch, &used, &error);

        if (result == STREAM_ERROR) {
            tool_complain(tool, LOAD_UNREADABLE,
                          "%s: the command at offset %" PRIu64
                          " is damaged, or longer than --max-value",
                          stream->name, stream->offset);
            return false;
        }
        at += used;
        stream->read += used;
        if (result == STREAM_MORE) {
            break;
        }
        if (!apply_batch(stream)) {
            return false;
        }
        stream->offset = stream->read;
        stream_done(&stream->stream, stream->pool);
        batch_clear(&stream->batch);
    }
    return true;
}
