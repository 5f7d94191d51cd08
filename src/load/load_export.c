/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A filter of a server is fetched by BF.SCANDUMP and put together in memory,
 * and only then written, so that the file has no filter whose pieces do not
 * belong together. Files of a server are loaded whole (check_world.h). Of each
 * filter the new file has
 *
 *   SELECT <database>                    before the first one of a database
 *   BF.LOADCHUNK <key> <iterator> <bytes>   several, the header first
 *   or BF.LOAD <key> <payload>              for valkey-bloom
 *   or RESTORE <key> 0 <payload>            for a filter that ages
 *   PEXPIREAT <key> <ms>                 if it has a time to live
 */
#include "load/load_export.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/num.h"
#include "check/check_world.h"
#include "core/bloom.h"
#include "core/env.h"
#include "core/payload.h"
#include "core/stream.h"
#include "core/valkeybloom.h"
#include "keyspace/scan.h"
#include "load/load_report.h"
#include "load/load_scan.h"
#include "proto/reply.h"
#include "tools/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 3, PIECE_BYTES = 1024 * 1024 };

/* Begins the error of BF.SCANDUMP for a filter that has to come by DUMP. */
static const char ages[] = "ERR a filter that ages";

struct exporting {
    struct load *load;
    struct load_scan source;
    struct bloom_env env;
    const char *path;
    FILE *file;
    struct map seen; /* names of the database that were visited */
    uint64_t seen_db, written_db;
    bool has_db; /* written_db is selected in the file */
    uint64_t found, written, other, gone, refused, expired;
};

/* ---- the file ------------------------------------------------------------ */

static bool
fail_path(struct exporting *exporting)
{
    tool_complain(&exporting->load->tool, LOAD_UNREADABLE, "%s: %s",
                  exporting->path, strerror(errno));
    return false;
}

/* Returns whether the open file has data, which would be overwritten. */
static bool
has_data(int fd)
{
    struct stat stat;

    return fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size > 0;
}

/* Opens the output: a new file, a pipe, or a link such as /dev/stdout. What it
 * leads to may be a file without data. */
static bool
open_file(struct exporting *exporting)
{
    struct stat stat;
    int fd = open(exporting->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  S_IRUSR | S_IWUSR);

    if (fd < 0 && errno == EEXIST && lstat(exporting->path, &stat) == 0 &&
        !S_ISREG(stat.st_mode)) {
        fd = open(exporting->path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && has_data(fd)) {
            (void)close(fd);
            fd = -1;
            errno = EEXIST;
        }
    }
    exporting->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    return exporting->file != NULL || fail_path(exporting);
}

static bool
close_file(struct exporting *exporting)
{
    bool ok = fflush(exporting->file) == 0;

    if (ok && fsync(fileno(exporting->file)) != 0) {
        ok = errno == EINVAL || errno == ENOTSUP; /* a pipe */
    }
    if (!ok) {
        (void)fail_path(exporting);
    }
    return (fclose(exporting->file) == 0 || fail_path(exporting)) && ok;
}

static bool
write_words(struct exporting *exporting, const struct slice *words,
            size_t count)
{
    struct buf buf = { 0 };
    struct reply reply = { &buf, 2 };
    bool ok;

    buf_reset(&buf, SIZE_MAX);
    reply_array(&reply, count);
    for (size_t i = 0; i < count; i++) {
        reply_bulk(&reply, words[i]);
    }
    if (buf.failed) {
        errno = ENOMEM;
    }
    ok =
        !buf.failed && fwrite(buf.data, 1, buf.len, exporting->file) == buf.len;
    buf_free(&buf);
    return ok || fail_path(exporting);
}

static bool
write_number(struct exporting *exporting, const char *command,
             const struct slice *key, uint64_t number)
{
    char digits[NUM_U64_MAX];
    struct slice words[3] = { slice_of(command) };
    size_t count = 1;

    if (key != NULL) {
        words[count++] = *key;
    }
    words[count++] = (struct slice){ digits, num_format_u64(number, digits) };
    return write_words(exporting, words, count);
}

static bool
write_chunk(struct exporting *exporting, struct slice key, uint64_t iterator,
            struct slice data)
{
    char digits[NUM_U64_MAX];
    const struct slice words[] = {
        slice_lit("BF.LOADCHUNK"),
        key,
        { digits, num_format_u64(iterator, digits) },
        data,
    };

    return write_words(exporting, words, 4);
}

static bool
write_chunks(struct exporting *exporting, struct slice key,
             const struct bloom *bloom)
{
    size_t most = payload_header_bytes(bloom);
    char *data = mem_alloc(most > PIECE_BYTES ? most : PIECE_BYTES);
    size_t len = payload_put_header(bloom, data);
    bool ok = write_chunk(exporting, key, 1, (struct slice){ data, len });
    uint64_t left;

    for (uint64_t at = 0; ok && (left = stream_left(bloom, at)) > 0;
         at += len) {
        len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        stream_read(bloom, at, len, data);
        ok = write_chunk(exporting, key, at + len + 1,
                         (struct slice){ data, len });
    }
    mem_free(data);
    return ok;
}

static bool
write_load(struct exporting *exporting, struct slice key,
           const struct bloom *bloom)
{
    struct rdb_out out = { .to = NULL };
    struct slice words[] = { slice_lit("BF.LOAD"), key, { "", 0 } };
    uint8_t *payload;
    bool ok;

    valkeybloom_put_load(bloom, &out);
    payload = mem_try_alloc((size_t)out.len);
    if (payload == NULL) {
        errno = ENOMEM;
        return fail_path(exporting);
    }
    out = (struct rdb_out){ .to = payload };
    valkeybloom_put_load(bloom, &out);
    words[2] = (struct slice){ (const char *)payload, (size_t)out.len };
    ok = write_words(exporting, words, 3);
    mem_free(payload);
    return ok;
}

static bool
write_restore(struct exporting *exporting, struct slice key,
              const struct bloom *bloom)
{
    size_t len = (size_t)bloom_dump_bytes(bloom);
    char *payload = mem_try_alloc(len);
    struct slice words[] = {
        slice_lit("RESTORE"), key, slice_lit("0"), { payload, len }
    };
    bool ok;

    if (payload == NULL) {
        errno = ENOMEM;
        return fail_path(exporting);
    }
    bloom_dump(bloom, payload);
    ok = write_words(exporting, words, 4);
    mem_free(payload);
    return ok;
}

static bool
write_filter(struct exporting *exporting, struct slice key,
             const struct bloom *bloom, uint64_t expires_at_ms)
{
    bool ok =
        exporting->has_db && exporting->written_db == exporting->source.db;

    if (!ok) {
        ok = write_number(exporting, "SELECT", NULL, exporting->source.db);
        exporting->has_db = true;
        exporting->written_db = exporting->source.db;
    }
    ok = ok && (exporting->load->product == LOAD_FOR_VALKEYBLOOM
                    ? write_load(exporting, key, bloom)
                : bloom_kind(bloom) == BLOOM_AGEING
                    ? write_restore(exporting, key, bloom)
                    : write_chunks(exporting, key, bloom));
    exporting->written += ok;
    return ok && (expires_at_ms == 0 ||
                  write_number(exporting, "PEXPIREAT", &key, expires_at_ms));
}

/* ---- one filter ---------------------------------------------------------- */

/* The result of an attempt to fetch a filter. */
enum fetched {
    FETCHED,
    FETCHED_WHOLE, /* as FETCHED, but in one reply with all bits */
    FETCHED_PARTS, /* the pieces do not belong together */
    FETCHED_OTHER, /* the target product does not have this layout */
    FETCHED_REFUSED,
    FETCHED_GONE,
    FETCHED_STOP
};

static enum fetched
refuse_key(struct exporting *exporting, struct slice key, const char *what,
           struct slice why)
{
    if (why.len >= 13 && memcmp(why.data, "ERR not found", 13) == 0) {
        return FETCHED_GONE;
    }
    tool_complain(&exporting->load->tool, LOAD_INCOMPLETE,
                  "key '%.*s' of database %" PRIu64 ": %s%.*s",
                  slice_shown(key), key.data, exporting->source.db, what,
                  resp_shown(why), why.data);
    return FETCHED_REFUSED;
}

static bool
is_wanted(const struct exporting *exporting, const struct bloom *bloom)
{
    enum bloom_kind kind = bloom_kind(bloom);

    switch (exporting->load->product) {
    case LOAD_FOR_REDISBLOOM:
        return kind == BLOOM_REDISBLOOM;
    case LOAD_FOR_VALKEYBLOOM:
        return kind == BLOOM_VALKEYBLOOM;
    default:
        return true;
    }
}

/* Fetches an ageing filter, which cannot come in chunks. */
static enum fetched
fetch_dump(struct exporting *exporting, struct slice key,
           struct bloom **ret_bloom)
{
    const struct slice words[] = { slice_lit("DUMP"), key };
    struct slice reply;

    load_link_send(&exporting->source.link, words, 2);
    if (!load_link_reply(&exporting->source.link, &reply)) {
        return FETCHED_STOP;
    }
    if (resp_is_error(reply)) {
        return refuse_key(exporting, key, "", resp_text(reply));
    }
    reply = resp_text(reply);
    if (reply.len == 0) {
        return FETCHED_GONE;
    }
    if (bloom_load(reply.data, reply.len, &exporting->env, ret_bloom) !=
        BLOOM_OK) {
        return refuse_key(exporting, key, "the source sent a bad dump",
                          slice_lit(""));
    }
    return is_wanted(exporting, *ret_bloom) ? FETCHED_WHOLE : FETCHED_OTHER;
}

/* Makes the filter from its header, without bits, and keeps the header. A
 * filter that ages comes whole. */
static enum fetched
fetch_header(struct exporting *exporting, struct slice key, struct buf *header,
             struct bloom **ret_bloom)
{
    struct slice data;
    uint64_t iterator;
    enum bloom_status status;

    if (!load_scan_piece(&exporting->source, key, 0, &iterator, &data)) {
        return FETCHED_STOP;
    }
    if (iterator == UINT64_MAX) {
        return !exporting->load->scandump && data.len >= sizeof(ages) - 1 &&
                       memcmp(data.data, ages, sizeof(ages) - 1) == 0
                   ? fetch_dump(exporting, key, ret_bloom)
                   : refuse_key(exporting, key, "", data);
    }
    buf_reset(header, SIZE_MAX);
    buf_append_slice(header, data);
    status =
        payload_read_header(data.data, data.len, &exporting->env, ret_bloom);
    if (status == BLOOM_OK) {
        return is_wanted(exporting, *ret_bloom) ? FETCHED : FETCHED_OTHER;
    }
    return refuse_key(exporting, key,
                      status == BLOOM_LIMIT || status == BLOOM_NOMEM
                          ? "it is larger than --max-value, or than the memory"
                          : "the source sent a bad header",
                      slice_lit(""));
}

/* Fetches all bits of a filter, and then its header once more to compare it. */
static enum fetched
fetch_bits(struct exporting *exporting, struct slice key,
           const struct buf *header, struct bloom *bloom)
{
    uint64_t last = 1;
    struct slice data;
    uint64_t iterator;
    bool changed;

    for (;;) {
        if (!load_scan_piece(&exporting->source, key, last, &iterator, &data)) {
            return FETCHED_STOP;
        }
        if (iterator == UINT64_MAX) {
            return refuse_key(exporting, key, "", data);
        }
        if (iterator == 0) {
            break;
        }
        if (iterator <= last || iterator - last != data.len ||
            stream_write(
                bloom, &exporting->env,
                &(struct stream_chunk){ last - 1, data.data, data.len }, false,
                &changed) != STREAM_OK) {
            return FETCHED_PARTS;
        }
        last = iterator;
    }
    if (!load_scan_piece(&exporting->source, key, 0, &iterator, &data)) {
        return FETCHED_STOP;
    }
    return !bloom_is_incomplete(bloom) && slice_equal(data, buf_slice(header))
               ? FETCHED
               : FETCHED_PARTS;
}

static enum fetched
fetch(struct exporting *exporting, struct slice key, struct bloom **ret_bloom)
{
    struct buf header = { 0 };
    enum fetched fetched = FETCHED_PARTS;

    for (int i = 0; i < ATTEMPTS && fetched == FETCHED_PARTS; i++) {
        bloom_free(*ret_bloom, &exporting->env);
        *ret_bloom = NULL;
        fetched = fetch_header(exporting, key, &header, ret_bloom);
        if (fetched == FETCHED) {
            fetched = fetch_bits(exporting, key, &header, *ret_bloom);
        }
    }
    buf_free(&header);
    return fetched;
}

static bool
export_one(struct exporting *exporting, struct slice key)
{
    int64_t at_ms = -2;
    struct bloom *bloom = NULL;
    enum fetched fetched = FETCHED_GONE;
    uint64_t expires_at_ms;
    bool ok = true;

    if (!load_scan_expiry(&exporting->source, key, &at_ms)) {
        return false;
    }
    expires_at_ms = at_ms >= 0 ? (uint64_t)at_ms : 0;
    if (at_ms != -2) {
        fetched = fetch(exporting, key, &bloom);
    }
    switch (fetched) {
    case FETCHED:
    case FETCHED_WHOLE:
        ok = write_filter(exporting, key, bloom, expires_at_ms);
        break;
    case FETCHED_PARTS:
        (void)refuse_key(
            exporting, key,
            "clients write to it all the time: export it when they "
            "pause",
            slice_lit(""));
        exporting->refused++;
        break;
    case FETCHED_STOP:
        ok = false;
        break;
    case FETCHED_OTHER:
        exporting->other++;
        break;
    case FETCHED_REFUSED:
        exporting->refused++;
        break;
    case FETCHED_GONE:
        exporting->gone++;
    }
    bloom_free(bloom, &exporting->env);
    return ok;
}

/* ---- all filters --------------------------------------------------------- */

static bool
visit(void *ctx)
{
    static char seen;
    struct exporting *exporting = ctx;
    struct slice key;
    size_t at = 0;

    if (exporting->seen_db != exporting->source.db) {
        map_free(&exporting->seen);
        exporting->seen_db = exporting->source.db;
    }
    while (buf_next_item(&exporting->source.names, &at, &key)) {
        if (map_find(&exporting->seen, key) != NULL) {
            continue;
        }
        if (!map_put(&exporting->seen, key, &seen)) {
            errno = ENOMEM;
            return fail_path(exporting);
        }
        exporting->found++;
        if (!export_one(exporting, key)) {
            return false;
        }
        tool_bar_add(&exporting->load->tool, 1);
    }
    return true;
}

static void
report_export(const struct exporting *exporting, bool ok)
{
    struct tool *tool = &exporting->load->tool;

    load_report_begin(exporting->load, slice_of(exporting->load->from.address));
    load_report_number("filters found", exporting->found);
    load_report_number("filters exported", exporting->written);
    load_report_number("of other layouts", exporting->other);
    load_report_number("refused", exporting->refused);
    load_report_number("gone meanwhile", exporting->gone);
    load_report_number("expired", exporting->expired);
    if (exporting->other > 0) {
        tool_complain(tool, LOAD_INCOMPLETE,
                      "%" PRIu64 " filters have another layout, which this "
                      "product cannot read: fill new ones there from your "
                      "items",
                      exporting->other);
    }
    if (!ok) {
        tool_complain(tool, LOAD_INCOMPLETE,
                      "stopped: the file is not complete");
    }
}

/* ---- from a server ------------------------------------------------------- */

static void
export_server(struct exporting *exporting)
{
    struct load *load = exporting->load;
    bool ok;

    if (!load_scan_open(load, &exporting->source)) {
        return;
    }
    if (open_file(exporting)) {
        tool_bar_begin(&load->tool, TOOL_UNIT_ITEMS, 0);
        ok = load_scan_all(&exporting->source, visit, exporting);
        tool_bar_end(&load->tool);
        ok = close_file(exporting) && ok;
        report_export(exporting, ok);
    }
    load_scan_close(&exporting->source);
}

/* ---- from files ---------------------------------------------------------- */

static bool
visit_entry(void *ctx, uint32_t db, const struct entry *entry,
            uint64_t expires_at_ms)
{
    struct exporting *exporting = ctx;
    const struct load *load = exporting->load;

    if (load->db != LOAD_DB_ALL && load->db != db) {
        return true;
    }
    exporting->source.db = db;
    exporting->found++;
    tool_bar_add(&exporting->load->tool, 1);
    if (expires_at_ms > 0 && expires_at_ms <= clock_wall_ms()) {
        exporting->expired++;
    } else if (bloom_is_incomplete(&entry->bloom)) {
        (void)refuse_key(exporting, entry_name(entry),
                         "its filter is incomplete: not all chunks came",
                         slice_lit(""));
        exporting->refused++;
    } else if (!is_wanted(exporting, &entry->bloom)) {
        exporting->other++;
    } else {
        return write_filter(exporting, entry_name(entry), &entry->bloom,
                            expires_at_ms);
    }
    return true;
}

/* Loads with the code of bloomery-check. Its exit statuses above 3
 * (LOAD_UNREADABLE) do not exist in bloomery-load. */
static bool
load_files(struct load *load, struct check_world *world)
{
    struct check check = { .tool = load->tool };
    bool ok = check_world_load_path(world, &check, load->from.address);
    int status = check.tool.status;

    check.tool.status = load->tool.status;
    load->tool = check.tool;
    tool_raise(&load->tool,
               status < LOAD_UNREADABLE ? status : LOAD_UNREADABLE);
    if (check_file_failed()) {
        tool_raise(&load->tool, LOAD_UNREADABLE);
        return false;
    }
    return ok;
}

static void
export_files(struct exporting *exporting)
{
    struct load *load = exporting->load;
    struct check_world *world = check_world_new();
    bool ok;

    (void)bloom_select_cpu(false);
    secrets_find(load->from.address);
    if (load_files(load, world) && open_file(exporting)) {
        struct keyspace *ks = check_world_keyspace(world);

        tool_bar_begin(&load->tool, TOOL_UNIT_ITEMS, 0);
        ok = keyspace_each(ks, visit_entry, exporting);
        tool_bar_end(&load->tool);
        ok = close_file(exporting) && ok;
        report_export(exporting, ok);
    }
    check_world_free(world);
}

/* Returns whether the source is a file or a directory: sockets are servers. */
static bool
is_on_disk(const char *address)
{
    struct stat found;

    return stat(address, &found) == 0 && !S_ISSOCK(found.st_mode);
}

void
load_export(struct load *load, const char *path)
{
    static struct exporting exporting;

    exporting.load = load;
    exporting.path = path;
    exporting.env = *env_or_default(NULL);
    exporting.env.size_limit_bytes = load->value_bytes;
    secrets_accept_all();
    (is_on_disk(load->from.address) ? export_files : export_server)(&exporting);
    map_free(&exporting.seen);
}
