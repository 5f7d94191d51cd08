/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any text as the commands of a log: a line is a command, its words as those of
 * an inline command, and a line "-" ends a group. The groups are executed as at
 * a start. Whatever they leave, a snapshot of it is read back as the same keys
 * and filters, as a file of effects that follow a copy is too.
 */
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "check/check_world.h"
#include "core/codec.h"
#include "core/collision.h"
#include "core/parts.h"
#include "journal/group.h"
#include "keyspace/scan.h"
#include "snapshot/snapshot_whole.h"
#include "target.h"

#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

enum {
    TEXT_MAX = 8192,
    DIGITS_MAX = 5, /* of a figure that may cost memory */
    BYTES_MAX = 1 << 20,
    REASON_MAX = 256,
    BEGIN = 100
};

/* ---- from lines to groups ------------------------------------------------ */

/* Whether the command makes a filter that is too large for a test. */
static bool
is_costly(const struct slice *words, size_t count)
{
    static const char digits[] = "0123456789";

    for (size_t i = 1; i < count; i++) {
        size_t len = 0;

        while (len < words[i].len && words[i].data[len] != '\0' &&
               strchr(digits, words[i].data[len]) != NULL) {
            len++;
        }
        if (len > DIGITS_MAX && !slice_is_word(words[i - 1], "incarnation") &&
            !slice_is_word(words[i - 1], "pxat")) {
            return words[0].len > 4 && slice_fold(words[0].data[0]) == 'b';
        }
    }
    return false;
}

/* Cuts the next group off the text. False: there is none. */
static bool
next_group(struct slice *text, struct buf *ret_commands)
{
    ret_commands->len = 0;
    return fuzz_next_group(text, is_costly, ret_commands);
}

/* ---- what a world has ---------------------------------------------------- */

struct state {
    uint64_t keys, bytes, hash; /* hash: does not depend on the order */
};

static bool
on_key(void *ctx, uint32_t db, const struct entry *entry, uint64_t expires_at)
{
    struct state *state = ctx;
    const struct bloom *bloom = &entry->bloom;
    struct slice name = entry_name(entry);
    const uint64_t front[] = { db, expires_at, entry->incarnation };
    uint64_t hash = XXH3_64bits_withSeed(front, sizeof(front), name.len);
    uint64_t len = codec_dump_bytes(bloom);

    state->keys++;
    state->bytes += len;
    hash = XXH3_64bits_withSeed(name.data, name.len, hash);
    if (len <= BYTES_MAX) {
        uint8_t *dump = mem_alloc((size_t)len);

        codec_dump(bloom, 0, dump);
        hash = XXH3_64bits_withSeed(dump, (size_t)len, hash);
        mem_free(dump);
    }
    state->hash += hash;
    return true;
}

static struct state
state_of(struct check_world *world)
{
    struct state state = { 0 };

    CHECK(keyspace_each(check_world_keyspace(world), on_key, &state));
    return state;
}

/* ---- executing ----------------------------------------------------------- */

/* Executes at most so many groups; cuts them off the text. One that fails may
 * have been executed in part. Returns their number. */
static unsigned
execute(struct check_world *world, struct slice *text, unsigned most)
{
    struct buf commands = { 0 };
    unsigned count = 0;
    char why[REASON_MAX];

    while (count < most && next_group(text, &commands)) {
        why[0] = '\0';
        CHECK(check_world_execute(world, buf_slice(&commands), why,
                                  sizeof(why)) ||
              why[0] != '\0');
        count++;
    }
    buf_free(&commands);
    return count;
}

/* ---- snapshots ----------------------------------------------------------- */

struct file {
    struct snapshot_writer *writer;
    int fd;
    uint64_t end; /* position */
};

static void
open_file(struct file *file)
{
    *file = (struct file){ .writer = snapshot_writer_new(),
                           .fd = memfd_create("snapshot", MFD_CLOEXEC) };
    CHECK(file->writer != NULL && file->fd >= 0);
}

static bool
load_file(struct file *file, struct state *ret_state)
{
    struct check_world *world = check_world_new();
    char why[REASON_MAX] = "";
    bool ok = check_world_load(world, file->fd, false, why, sizeof(why));

    CHECK(ok == (why[0] == '\0'));
    *ret_state = state_of(world);
    check_world_free(world);
    file_close(file->fd);
    snapshot_writer_free(file->writer);
    return ok;
}

static void
check_snapshot(struct check_world *world)
{
    static const struct snapshot_stamp stamp = { .position = BEGIN };
    struct state state = state_of(world);
    struct state read;
    struct file file;

    if (state.bytes > BYTES_MAX) {
        return;
    }
    open_file(&file);
    CHECK(snapshot_write(file.writer, check_world_keyspace(world), &stamp,
                         file.fd, NULL) == 0);
    CHECK(load_file(&file, &read));
    CHECK(read.keys == state.keys && read.bytes == state.bytes);
    CHECK(read.hash == state.hash);
}

/* Says of each second piece that it includes the effects. */
static void
add_in_pieces(struct file *file, const struct snapshot_record *record,
              const struct bloom *bloom)
{
    enum {
        PIECE_BYTES = 9 * BLOOM_LINE_BYTES /* whole blocks of each region */,
        PIECES_MAX = BYTES_MAX / PIECE_BYTES
    };
    static uint64_t positions[PIECES_MAX];
    uint8_t *head = mem_alloc(CODEC_HEAD_BYTES_MAX);
    size_t len = codec_put_head(bloom, record->incarnation, head);
    const struct layer *layers = bloom_layers_const(bloom);
    size_t count = 0;
    const uint8_t *lines;
    size_t bytes;

    CHECK(snapshot_put_head(file->writer, record,
                            (struct slice){ (const char *)head, len }) == 0);
    for (uint32_t i = 0; (lines = bloom_layer_lines(bloom, i, &bytes)) != NULL;
         i++) {
        size_t step = collision_piece_bytes(&layers[i], PIECE_BYTES);

        CHECK(snapshot_put_lines(file->writer, lines, bytes) == 0);
        for (size_t at = 0; at < bytes; at += step) {
            CHECK(count < PIECES_MAX);
            positions[count] = count % 2 == 0 ? BEGIN : file->end;
            count++;
        }
    }
    CHECK(snapshot_put_pieces(file->writer, PIECE_BYTES, positions, count) ==
          0);
    mem_free(head);
}

static bool
add_copy(void *ctx, uint32_t db, const struct entry *entry, uint64_t expires_at)
{
    struct file *file = ctx;
    const struct snapshot_record record = { .name = entry_name(entry),
                                            .db = db,
                                            .expires_at_ms = expires_at,
                                            .incarnation = entry->incarnation,
                                            .copied_at = BEGIN };

    if (bloom_kind(&entry->bloom) == BLOOM_DELETABLE) {
        add_in_pieces(file, &record, &entry->bloom);
    } else {
        CHECK(snapshot_add(file->writer, &record, &entry->bloom) == 0);
    }
    return true;
}

/* Writes the groups from BEGIN on, or only finds their end. */
static void
put_effects(struct file *file, struct slice text, bool writes,
            struct snapshot_stamp *ret_end)
{
    struct buf commands = { 0 };

    *ret_end = (struct snapshot_stamp){ .position = BEGIN };
    while (next_group(&text, &commands)) {
        const struct snapshot_effects effects = { .position = ret_end->position,
                                                  .sequence =
                                                      ret_end->sequence + 1,
                                                  .commands =
                                                      buf_slice(&commands) };

        if (commands.len == 0) {
            continue;
        }
        CHECK(!writes || snapshot_put_effects(file->writer, &effects) == 0);
        ret_end->position += commands.len + GROUP_SEAL_BYTES;
        ret_end->sequence++;
    }
    buf_free(&commands);
}

static void
check_completion(struct check_world *world, struct slice rest)
{
    static const struct snapshot_stamp begin = { .position = BEGIN };
    const struct keyspace *keyspace = check_world_keyspace(world);
    struct snapshot_stamp end;
    struct state state;
    struct file file;

    if (state_of(world).bytes > BYTES_MAX) {
        return;
    }
    open_file(&file);
    put_effects(&file, rest, false, &end);
    file.end = end.position;
    CHECK(snapshot_begin(file.writer, &begin, keyspace_databases(keyspace),
                         file.fd, NULL) == 0);
    CHECK(keyspace_each(keyspace, add_copy, &file));
    put_effects(&file, rest, true, &end);
    CHECK(snapshot_end(file.writer, &end) == 0);
    (void)load_file(&file, &state); /* effects of no server may fail */
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    struct check_world *world;
    unsigned groups;

    if (size > TEXT_MAX) {
        return 0;
    }
    world = check_world_new();
    groups = execute(world, &text, UINT32_MAX);
    check_snapshot(world);
    check_world_free(world);

    world = check_world_new();
    text = (struct slice){ (const char *)data, size };
    (void)execute(world, &text, groups / 2);
    check_completion(world, text);
    check_world_free(world);
    return 0;
}
