/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/check_stream.h"

#include "base/file.h"
#include "base/mem.h"
#include "check/check_sums.h"
#include "tools/tar.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, END_BYTES = 2 * TAR_BLOCK };

struct check_stream {
    struct check *check;
    struct check_sums sums;
    char *piece; /* PIECE_BYTES */
};

struct check_stream *
check_stream_new(struct check *check)
{
    struct check_stream *stream;

    if (isatty(STDOUT_FILENO)) {
        tool_complain(&check->tool, CHECK_USAGE,
                      "standard output is a terminal: send the archive to a "
                      "file or a program");
        return NULL;
    }
    stream = mem_zalloc(sizeof(*stream));
    stream->check = check;
    stream->piece = mem_alloc(PIECE_BYTES);
    return stream;
}

void
check_stream_free(struct check_stream *stream)
{
    if (stream != NULL) {
        buf_free(&stream->sums.text);
        mem_free(stream->piece);
        mem_free(stream);
    }
}

static bool
send(struct check_stream *stream, const void *bytes, size_t len)
{
    int error = file_write(STDOUT_FILENO, bytes, len);

    if (error != 0) {
        tool_complain(&stream->check->tool, CHECK_UNREADABLE,
                      "standard output: cannot be written: %s",
                      strerror(error));
    }
    return error == 0;
}

static bool
send_zeros(struct check_stream *stream, size_t len)
{
    static const char zeros[END_BYTES];

    return send(stream, zeros, len);
}

static bool
send_head(struct check_stream *stream, const char *path, bool dir,
          uint64_t bytes)
{
    const size_t before = strlen(CHECK_STREAM_NAME "/");
    struct tar_entry entry = { .dir = dir, .bytes = bytes };
    char head[TAR_HEAD_MAX];

    if (strlen(path) - before >= TAR_NAME_MAX) {
        tool_complain(&stream->check->tool, CHECK_USAGE,
                      "%s: the name is too long", path + before);
        return false;
    }
    memcpy(entry.name, path + before, strlen(path) - before);
    return send(stream, head, tar_put(&entry, (uint64_t)time(NULL), head));
}

bool
check_stream_dir(struct check_stream *stream, const char *path)
{
    return strcmp(path, CHECK_STREAM_NAME) == 0 ||
           send_head(stream, path, true, 0);
}

bool
check_stream_text(struct check_stream *stream, const char *path,
                  struct slice text)
{
    check_sums_begin(&stream->sums);
    check_sums_add(&stream->sums, text);
    check_sums_end(&stream->sums, path + strlen(CHECK_STREAM_NAME "/"));
    return send_head(stream, path, false, text.len) &&
           send(stream, text.data, text.len) &&
           send_zeros(stream, tar_padding(text.len));
}

/* If a file cannot be read after its head was written, the archive ends. */
bool
check_stream_file(struct check_stream *stream, const char *path, int fd,
                  uint64_t bytes, const char *from)
{
    uint64_t done = 0;
    bool ok = send_head(stream, path, false, bytes);

    check_sums_begin(&stream->sums);
    while (ok && done < bytes) {
        size_t len =
            bytes - done < PIECE_BYTES ? (size_t)(bytes - done) : PIECE_BYTES;
        int error = file_read_at(fd, stream->piece, len, done, &len);

        if (error != 0) {
            tool_complain(&stream->check->tool, CHECK_UNREADABLE,
                          "%s: cannot be read: %s", from,
                          error == ENODATA ? "it was cut meanwhile"
                                           : strerror(error));
            return false;
        }
        check_sums_add(&stream->sums, (struct slice){ stream->piece, len });
        ok = send(stream, stream->piece, len);
        done += len;
        tool_bar_add(&stream->check->tool, len);
    }
    check_sums_end(&stream->sums, path + strlen(CHECK_STREAM_NAME "/"));
    return ok && send_zeros(stream, tar_padding(bytes));
}

bool
check_stream_end(struct check_stream *stream)
{
    struct buf sums = { 0 };
    bool ok;

    buf_exchange(&sums, &stream->sums.text);
    if (sums.failed) {
        tool_complain(&stream->check->tool, CHECK_UNREADABLE, "%s",
                      strerror(ENOMEM));
    }
    ok = !sums.failed &&
         check_stream_text(stream, CHECK_STREAM_NAME "/" CHECK_SUMS_NAME,
                           buf_slice(&sums)) &&
         send_zeros(stream, END_BYTES);
    buf_free(&sums);
    return ok;
}
