/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cuts the bytes of an AOF or a replication stream into commands and applies
 * them. It knows the offset behind the last whole command, from which a broken
 * stream can continue.
 */
#pragma once

#include "load/load_apply.h"
#include "proto/stream.h"

struct load_stream {
    struct load_apply *apply;
    const char *name; /* name of the file or server, for messages */
    struct stream stream;
    struct stream_pool *pool;
    struct batch batch;
    char first;      /* first byte of the command that is unfinished */
    uint64_t read;   /* offset of the next byte that arrives */
    uint64_t offset; /* offset behind the last whole command */
};

void load_stream_begin(struct load_stream *stream, struct load_apply *apply,
                       const char *name, uint64_t offset);
void load_stream_end(struct load_stream *stream);

/* Applies the whole commands; keeps the beginning of the last one. False: the
 * tool must stop; the reason was printed. */
bool load_stream_feed(struct load_stream *stream, struct slice bytes);
