/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as what `bloomery-load aof` reads: a byte of options, two bytes
 * length of a manifest and the manifest, two bytes length of the file "a" and
 * the file, and then the file "b"; without a manifest "a" is the AOF, or the
 * RDB of `bloomery-load rdb`. A model stands for the server,
 * in the place of load/load_target.c. The tool touches only keys that it
 * brought, its transactions are balanced, and the bytes of "a" mean the same
 * however they are cut.
 */
#include "base/err.h"
#include "base/mem.h"
#include "load/load_file.h"
#include "load/load_stream.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { VALUE_BYTES = 1 << 16, BYTEWISE_MAX = 4096, PATH_BYTES = 64 };

/* ---- the model of the server --------------------------------------------- */

static struct {
    struct map brought; /* names that the tool may touch, of all databases */
    bool multi;
    struct buf log; /* of all commands */
} server;

static char mark_ours, mark_spared;

bool
load_target_open(struct load *load, struct load_target *ret_target)
{
    memset(ret_target, 0, sizeof(*ret_target));
    ret_target->load = load;
    server.multi = false;
    server.log.len = 0;
    return true;
}

void
load_target_close(struct load_target *target)
{
    for (size_t i = 0; i < LOAD_DATABASES_MAX; i++) {
        map_free(&target->keys[i]);
    }
    map_free(&server.brought);
}

enum load_key
load_target_key(const struct load_target *target, uint64_t db, struct slice key)
{
    const char *mark = map_find(&target->keys[db], key);

    return mark == NULL         ? LOAD_KEY_UNKNOWN
           : mark == &mark_ours ? LOAD_KEY_OURS
                                : LOAD_KEY_SPARED;
}

bool
load_target_forget(struct load_target *target, uint64_t db, struct slice key)
{
    return map_remove(&target->keys[db], key) != NULL;
}

/* The server has keys that begin with "s", and breaks off at one that begins
 * with "x". */
bool
load_target_claim(struct load_target *target, uint64_t db, struct slice key,
                  bool *ret_go)
{
    bool spared = key.len > 0 && key.data[0] == 's';

    CHECK(db < LOAD_DATABASES_MAX);
    if (key.len > 0 && key.data[0] == 'x') {
        return false;
    }
    *ret_go = !spared;
    CHECK(map_put(&target->keys[db], key, spared ? &mark_spared : &mark_ours));
    CHECK(spared || map_put(&server.brought, key, &mark_ours));
    return true;
}

/* Balances MULTI, and checks the key of what is no part of a transaction. */
static void
check_command(struct slice key, struct slice word)
{
    if (slice_is_word(word, "multi")) {
        CHECK(!server.multi);
        server.multi = true;
    } else if (slice_is_word(word, "exec") || slice_is_word(word, "discard")) {
        CHECK(server.multi);
        server.multi = false;
    } else if (!slice_is_word(word, "swapdb")) {
        CHECK(map_find(&server.brought, key) != NULL);
    }
}

bool
load_target_command(struct load_target *target, uint64_t db, struct slice key,
                    const struct slice *words, size_t count)
{
    (void)target;
    CHECK(db < LOAD_DATABASES_MAX && count > 0);
    check_command(key, words[0]);
    buf_append(&server.log, &db, sizeof(db));
    buf_append_item(&server.log, key);
    for (size_t i = 0; i < count; i++) {
        buf_append_item(&server.log, words[i]);
    }
    CHECK(!server.log.failed);
    return true;
}

/* Puts nothing off, as for a file without times to live. */
uint64_t
load_target_put_off(struct load_target *target, uint64_t at_ms)
{
    (void)target;
    return at_ms;
}

bool
load_target_make(struct load_target *target, uint64_t db, struct slice key,
                 const struct buf *value)
{
    const struct slice words[] = { slice_lit("RESTORE"), buf_slice(value) };

    CHECK(value->len > 0);
    return load_target_command(target, db, key, words, 2);
}

bool
load_target_add(struct load_target *target, uint64_t db, struct slice key,
                const struct slice *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct slice words[] = { slice_lit("BF.ADD"), items[i] };

        CHECK(load_target_command(target, db, key, words, 2));
    }
    return true;
}

bool
load_target_note_piece(struct load_target *target, uint64_t db,
                       struct slice key)
{
    (void)target;
    (void)key;
    CHECK(db < LOAD_DATABASES_MAX);
    return true;
}

bool
load_target_check_pieces(struct load_target *target)
{
    return !target->stopped;
}

bool
load_target_on_filter(void *ctx, const struct rdb_filter *filter)
{
    struct load_target *target = ctx;
    uint8_t footer[RDB_FOOTER_BYTES];
    bool go;

    CHECK(filter->value.len <= VALUE_BYTES && filter->key.len <= VALUE_BYTES);
    if (filter->value.len > 0) {
        CHECK(rdb_payload_is_filter(filter->value));
        rdb_put_footer(filter->value, filter->module, footer);
    }
    return filter->db < LOAD_DATABASES_MAX &&
           load_target_claim(target, filter->db, filter->key, &go);
}

bool
load_target_drain(struct load_target *target)
{
    return !target->stopped;
}

void
load_target_refuse(struct load_target *target, uint64_t db, struct slice key,
                   const char *format, ...)
{
    (void)key;
    (void)format;
    CHECK(db < LOAD_DATABASES_MAX);
    tool_raise(&target->load->tool, LOAD_INCOMPLETE);
}

void
load_target_report(const struct load_target *target)
{
    CHECK(target->load != NULL);
}

/* ---- files --------------------------------------------------------------- */

static char directory[] = "/tmp/fuzz_aof.XXXXXX";

static const char *
path_of(const char *name)
{
    static char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static void
remove_all(void)
{
    (void)unlink(path_of("m.manifest"));
    (void)unlink(path_of("a"));
    (void)unlink(path_of("b"));
    (void)rmdir(directory);
}

/* What the tool prints is of no interest. */
static void
set_up(void)
{
    static bool done;

    if (!done) {
        CHECK(mkdtemp(directory) != NULL);
        (void)atexit(remove_all);
        stdout = fopen("/dev/null", "we");
        CHECK(stdout != NULL);
    }
    done = true;
}

static void
write_file(const char *name, struct slice bytes)
{
    FILE *file = fopen(path_of(name), "wbe");

    CHECK(file != NULL);
    CHECK(bytes.len == 0 ||
          fwrite(bytes.data, 1, bytes.len, file) == bytes.len);
    CHECK(fclose(file) == 0);
}

static struct slice
take_counted(struct slice *bytes)
{
    struct slice taken = { bytes->data, 0 };

    if (bytes->len >= 2) {
        taken = (struct slice){ bytes->data + 2,
                                (size_t)((uint8_t)bytes->data[0] |
                                         (uint8_t)bytes->data[1] << 8) };
        bytes->len -= 2;
        taken.len = taken.len < bytes->len ? taken.len : bytes->len;
        bytes->data += 2 + taken.len;
        bytes->len -= taken.len;
    }
    return taken;
}

/* ---- the tool ------------------------------------------------------------ */

enum { ONE_DB = 1, AS_RDB = 2 }; /* options */

static struct load
new_load(unsigned options)
{
    return (struct load){ .tool = { .name = "fuzz" },
                          .value_bytes = VALUE_BYTES,
                          .db = (options & ONE_DB) != 0 ? 0 : LOAD_DB_ALL };
}

static void
read_files(const char *path, unsigned options)
{
    struct load load = new_load(options);
    FILE *errors = stderr;

    stderr = stdout;
    ((options & AS_RDB) != 0 ? load_rdb : load_aof)(&load, path);
    stderr = errors;
}

/* Feeds pieces of so many bytes; the log of the server shows what they meant.
 */
static bool
feed(struct slice bytes, size_t step, unsigned options, struct buf *ret_log)
{
    static struct load_target target;
    struct load load = new_load(options);
    struct load_apply apply = { .target = &target };
    struct load_stream stream;
    FILE *errors = stderr;
    bool ok = load_target_open(&load, &target);

    stderr = stdout;
    load_stream_begin(&stream, &apply, "fuzz", 0);
    for (size_t at = 0; ok && at < bytes.len; at += step) {
        size_t len = bytes.len - at < step ? bytes.len - at : step;
        char *copy = mem_alloc(len);

        memcpy(copy, bytes.data + at, len);
        ok = load_stream_feed(&stream, (struct slice){ copy, len });
        mem_free(copy);
    }
    CHECK(stream.offset <= bytes.len);
    ok = load_apply_end(&apply) && ok;
    CHECK(!server.multi);
    load_stream_end(&stream);
    load_target_close(&target);
    stderr = errors;
    buf_append_slice(ret_log, buf_slice(&server.log));
    return ok;
}

static void
check_cuts(struct slice bytes, unsigned options)
{
    struct buf whole = { 0 };
    bool ok = feed(bytes, bytes.len > 0 ? bytes.len : 1, options, &whole);

    for (size_t step = bytes.len <= BYTEWISE_MAX ? 1 : 100; step < 2000;
         step = 7 * step + 4) {
        struct buf cut = { 0 };

        CHECK(feed(bytes, step, options, &cut) == ok);
        CHECK(slice_equal(buf_slice(&whole), buf_slice(&cut)));
        buf_free(&cut);
    }
    buf_free(&whole);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice left = { (const char *)data + 1, size - 1 };
    struct slice manifest, a;
    unsigned options;

    if (size == 0) {
        return 0;
    }
    options = data[0];
    manifest = take_counted(&left);
    a = take_counted(&left);
    set_up();
    write_file("a", a);
    if (manifest.len > 0) {
        write_file("m.manifest", manifest);
        write_file("b", left);
        read_files(directory, options & ONE_DB);
        (void)unlink(path_of("m.manifest"));
    } else {
        read_files(path_of("a"), options);
        check_cuts(a, options);
    }
    buf_free(&server.log);
    server.log = (struct buf){ 0 };
    return 0;
}
