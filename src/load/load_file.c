/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file is read once, in order, so it may also be a pipe. The manifest of a
 * directory of Redis 7 has lines such as
 *
 *   file appendonly.aof.1.base.rdb seq 1 type b
 *   file appendonly.aof.2.incr.aof seq 2 type i
 *
 * with one base at most, increments in ascending order, and files of type h,
 * which are history.
 */
#include "load/load_file.h"

#include "base/file.h"
#include "base/mem.h"
#include "load/load_report.h"
#include "load/load_stream.h"
#include "load/load_ttl.h"
#include "proto/inline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES = 256 * 1024,
    PATH_BYTES = 4096,
    MANIFEST_BYTES = 1024 * 1024,
    LINE_WORDS_MAX = 32,
    RDB_MARK_BYTES = 6, /* VALKEY, or REDIS and a digit */
};

struct file {
    struct load *load;
    const char *path;
    int fd;
    uint64_t read; /* bytes */
    bool failed;
    bool last; /* the last file of the AOF, which a crash may have cut */
    char *bytes;
};

struct loading {
    struct load *load;
    struct load_target target;
    struct load_apply apply;
};

/* ---- files --------------------------------------------------------------- */

static bool
open_file(struct file *file, struct load *load, const char *path)
{
    struct stat status;

    *file = (struct file){ .load = load, .path = path };
    file->fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO)
                                      : open(path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &status) != 0) {
        tool_complain(&load->tool, LOAD_UNREADABLE, "%s: cannot be opened: %s",
                      path, strerror(errno));
        file_close(file->fd);
        return false;
    }
    file->bytes = mem_alloc(READ_BYTES);
    tool_bar_begin(&load->tool, TOOL_UNIT_MIB,
                   S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0);
    return true;
}

static void
close_file(struct file *file)
{
    tool_bar_end(&file->load->tool);
    file_close(file->fd);
    mem_free(file->bytes);
}

/* Reads the next bytes, behind the first `kept` bytes of the buffer. */
static bool
next_behind(struct file *file, size_t kept, struct slice *ret_bytes)
{
    ssize_t got;

    do {
        got = read(file->fd, file->bytes + kept, READ_BYTES - kept);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        tool_complain(&file->load->tool, LOAD_UNREADABLE,
                      "%s: cannot be read at offset %" PRIu64 ": %s",
                      file->path, file->read, strerror(errno));
        file->failed = true;
    }
    if (got <= 0) {
        return false;
    }
    file->read += (uint64_t)got;
    tool_bar_add(&file->load->tool, (uint64_t)got);
    *ret_bytes = (struct slice){ file->bytes, kept + (size_t)got };
    return true;
}

/* rdb_source: reads the next bytes. */
static bool
next(void *ctx, struct slice *ret_bytes)
{
    return next_behind(ctx, 0, ret_bytes);
}

/* ---- RDB ----------------------------------------------------------------- */

/* Reads an RDB whose first bytes are in the file's buffer already. */
struct resumed {
    struct file *file;
    struct slice first;
};

static bool
next_resumed(void *ctx, struct slice *ret_bytes)
{
    struct resumed *resumed = ctx;

    if (resumed->first.len > 0) {
        *ret_bytes = resumed->first;
        resumed->first.len = 0;
        return true;
    }
    return next(resumed->file, ret_bytes);
}

/* Restores the filters of an RDB and prints what it held. *ret_rest is what
 * follows it in the file's buffer. */
static bool
read_rdb(struct loading *loading, struct file *file, struct slice first,
         struct slice *ret_rest)
{
    struct resumed resumed = { file, first };
    const struct rdb_source source = { next_resumed, &resumed };
    const struct rdb_visitor visitor = { load_target_on_filter,
                                         &loading->target,
                                         (size_t)loading->load->value_bytes };
    struct rdb_result result;
    bool ok = rdb_read(&source, &visitor, &result);

    if (!ok && result.status != RDB_STOPPED && !file->failed) {
        tool_complain(&loading->load->tool, LOAD_UNREADABLE,
                      "%s: at offset %" PRIu64 ": %s", file->path,
                      result.offset, result.why);
    }
    ok = load_target_drain(&loading->target) && ok;
    load_report_begin(loading->load, slice_of(file->path));
    load_rdb_report(&result);
    load_create_version(&loading->apply.rule, slice_of(result.product));
    *ret_rest = result.rest;
    return ok;
}

/* ---- AOF ----------------------------------------------------------------- */

/* Complains if the file ends within a command or a transaction. False: it is
 * not the last file. */
static bool
check_end(struct loading *loading, const struct file *file,
          const struct load_stream *stream)
{
    struct tool *tool = &loading->load->tool;

    if (stream->offset == file->read && !loading->apply.multi) {
        return true;
    }
    if (!file->last) {
        tool_complain(tool, LOAD_UNREADABLE,
                      "%s: ends within a command or transaction (offset "
                      "%" PRIu64 "), and is not the last file",
                      file->path, stream->offset);
        return false;
    }
    tool_complain(tool, LOAD_INCOMPLETE,
                  "%s: ends within a command or transaction (offset %" PRIu64
                  "), which is left out, as a server would at its start",
                  file->path, stream->offset);
    return true;
}

static bool
read_commands(struct loading *loading, struct file *file, struct slice bytes)
{
    struct load_stream stream;
    bool ok = true;

    load_stream_begin(&stream, &loading->apply, file->path,
                      file->read - bytes.len);
    do {
        ok = load_stream_feed(&stream, bytes);
    } while (ok && next(file, &bytes));
    ok = ok && !file->failed && check_end(loading, file, &stream) &&
         load_apply_end(&loading->apply) && load_target_drain(&loading->target);
    load_stream_end(&stream);
    return ok;
}

/* Reads RDB_MARK_BYTES bytes, or fewer if the file ends before: a pipe may hand
 * out one at a time. */
static bool
read_start(struct file *file, struct slice *ret_bytes)
{
    *ret_bytes = slice_lit("");
    while (ret_bytes->len < RDB_MARK_BYTES &&
           next_behind(file, ret_bytes->len, ret_bytes)) {
    }
    return !file->failed;
}

static bool
is_rdb(struct slice bytes)
{
    return bytes.len >= RDB_MARK_BYTES &&
           (memcmp(bytes.data, "REDIS", 5) == 0 ||
            memcmp(bytes.data, "VALKEY", RDB_MARK_BYTES) == 0);
}

/* Reads one AOF, with the RDB in front if it has one. */
static bool
read_aof(struct loading *loading, const char *path, bool last)
{
    struct file file;
    struct slice bytes;
    bool ok;

    if (!open_file(&file, loading->load, path)) {
        return false;
    }
    file.last = last;
    ok = read_start(&file, &bytes);
    if (ok && is_rdb(bytes)) {
        ok = read_rdb(loading, &file, bytes, &bytes);
    }
    ok = ok && read_commands(loading, &file, bytes);
    close_file(&file);
    return ok;
}

/* ---- a directory of Redis 7 ---------------------------------------------- */

/* Finds the only manifest of a directory. */
static bool
find_manifest(struct load *load, const char *path, char *ret_path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    unsigned found = 0;

    if (dir == NULL) {
        tool_complain(&load->tool, LOAD_UNREADABLE, "%s: cannot be opened: %s",
                      path, strerror(errno));
        return false;
    }
    while ((entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name);

        if (len > 9 && strcmp(entry->d_name + len - 9, ".manifest") == 0 &&
            snprintf(ret_path, PATH_BYTES, "%s/%s", path, entry->d_name) <
                PATH_BYTES) {
            found++;
        }
    }
    (void)closedir(dir);
    if (found != 1) {
        tool_complain(&load->tool, LOAD_USAGE,
                      "%s: holds %s: name the directory appendonlydir, or a "
                      "file",
                      path, found == 0 ? "no manifest" : "several manifests");
    }
    return found == 1;
}

struct manifest_reading {
    struct loading *loading;
    const char *path;
    struct slice left;
    uint64_t number; /* of the line */
    uint64_t sequence;
    bool begun; /* a base or increment was read */
};

static bool
complain_line(const struct manifest_reading *reading, const char *what)
{
    tool_complain(&reading->loading->load->tool, LOAD_UNREADABLE,
                  "%s: line %" PRIu64 " %s", reading->path, reading->number,
                  what);
    return false;
}

/* Returns whether no other file of the data follows in the manifest. */
static bool
is_last(struct slice left)
{
    return memmem(left.data, left.len, " type i", 7) == NULL &&
           memmem(left.data, left.len, " type b", 7) == NULL;
}

static bool
read_named(struct manifest_reading *reading, struct slice name)
{
    const char *slash = strrchr(reading->path, '/');
    char path[PATH_BYTES];
    int len;

    if (memchr(name.data, '/', name.len) != NULL ||
        memchr(name.data, '\0', name.len) != NULL) {
        return complain_line(reading, "names a file elsewhere");
    }
    len = snprintf(path, sizeof(path), "%.*s%.*s",
                   slash != NULL ? (int)(slash + 1 - reading->path) : 0,
                   reading->path, (int)name.len, name.data);
    if (len < 0 || len >= (int)sizeof(path)) {
        return complain_line(reading, "has too long a name");
    }
    return read_aof(reading->loading, path, is_last(reading->left));
}

static bool
read_line(struct manifest_reading *reading, const struct slice *words,
          size_t count)
{
    uint64_t sequence;

    if (count < 6 || !slice_is_word(words[0], "file") ||
        !slice_is_word(words[2], "seq") || !slice_is_word(words[4], "type") ||
        words[5].len != 1 || !slice_to_u64(words[3], &sequence)) {
        return complain_line(reading, "is not a line of a manifest");
    }
    switch (words[5].data[0]) {
    case 'h':
        return true;
    case 'b':
        if (reading->begun) {
            return complain_line(reading, "has a second base, or a late one");
        }
        break;
    case 'i':
        if (sequence <= reading->sequence) {
            return complain_line(reading, "is out of order");
        }
        reading->sequence = sequence;
        break;
    default:
        return complain_line(reading, "has an unknown type of file");
    }
    reading->begun = true;
    return read_named(reading, words[1]);
}

static bool
read_lines(struct manifest_reading *reading)
{
    bool ok = true;

    while (ok && reading->left.len > 0) {
        const char *lf = memchr(reading->left.data, '\n', reading->left.len);
        size_t len =
            lf != NULL ? (size_t)(lf - reading->left.data) : reading->left.len;
        const struct slice line = { reading->left.data, len };
        struct arena words = { 0 };

        reading->left.data += len + (lf != NULL);
        reading->left.len -= len + (lf != NULL);
        reading->number++;
        if (len > 0 && line.data[0] != '#') {
            struct slice argv[LINE_WORDS_MAX];

            ok = inline_split(line, &words) == OK &&
                 words.count <= LINE_WORDS_MAX;
            if (ok) {
                arena_slices(&words, argv);
            }
            ok = ok ? read_line(reading, argv, words.count)
                    : complain_line(reading, "has unbalanced quotes, or too "
                                             "many words");
        }
        arena_fini(&words);
    }
    return ok;
}

static bool
read_manifest(struct loading *loading, const char *path)
{
    struct manifest_reading reading = { .loading = loading, .path = path };
    char *text = mem_alloc(MANIFEST_BYTES + 1);
    size_t len = 0;
    int error = file_read_name(AT_FDCWD, path, text, MANIFEST_BYTES, &len);
    bool ok = error == 0 && len <= MANIFEST_BYTES;

    if (!ok) {
        tool_complain(&loading->load->tool, LOAD_UNREADABLE,
                      "%s: cannot be read: %s", path,
                      error != 0 ? strerror(error) : "too long");
    }
    reading.left = (struct slice){ text, ok ? len : 0 };
    ok = ok && read_lines(&reading);
    mem_free(text);
    return ok;
}

/* ---- the commands of the tool -------------------------------------------- */

static struct loading *
begin_load(struct load *load)
{
    static struct loading loading;

    loading.load = load;
    loading.apply = (struct load_apply){ .target = &loading.target };
    return load_create_begin(load, &loading.apply.rule) &&
                   load_target_open(load, &loading.target)
               ? &loading
               : NULL;
}

static void
end_load(struct loading *loading, bool ok, bool commands)
{
    ok = load_target_check_pieces(&loading->target) && ok;
    ok = load_ttl_release(&loading->target) && ok;
    if (commands) {
        load_report_begin(loading->load, slice_lit("all files"));
    }
    load_target_report(&loading->target);
    if (commands) {
        load_apply_report(&loading->apply);
    }
    if (!ok) {
        tool_complain(&loading->load->tool, LOAD_INCOMPLETE,
                      "stopped: what follows was not read");
    }
    load_target_close(&loading->target);
}

void
load_rdb(struct load *load, const char *path)
{
    struct loading *loading = begin_load(load);
    struct slice rest, more = slice_lit("");
    struct file file;
    bool ok;

    if (loading == NULL) {
        return;
    }
    ok = open_file(&file, load, path);
    if (ok) {
        ok = read_rdb(loading, &file, slice_lit(""), &rest);
        if (ok && (rest.len > 0 || next(&file, &more))) {
            tool_complain(&load->tool, LOAD_INCOMPLETE,
                          "%s: more follows behind the end of the RDB, at "
                          "offset %" PRIu64 ": bloomery-load aof reads an AOF",
                          path, file.read - rest.len - more.len);
        }
        close_file(&file);
    }
    end_load(loading, ok, false);
}

void
load_aof(struct load *load, const char *path)
{
    struct loading *loading;
    char manifest[PATH_BYTES];
    struct stat status;
    size_t len = strlen(path);
    bool named = len > 9 && strcmp(path + len - 9, ".manifest") == 0;
    bool directory = stat(path, &status) == 0 && S_ISDIR(status.st_mode);

    if (directory && !find_manifest(load, path, manifest)) {
        return;
    }
    loading = begin_load(load);
    if (loading == NULL) {
        return;
    }
    loading->target.hold_ms = UINT64_MAX;
    end_load(loading,
             directory || named
                 ? read_manifest(loading, directory ? manifest : path)
                 : read_aof(loading, path, true),
             true);
}
