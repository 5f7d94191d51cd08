/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Three passes. The first reads stamps and the manifest. The second checks all
 * increments in memory (journal/verify.h). After it we know where the journal
 * ends, which of the two states is newer, and that nothing will be refused
 * after hours of loading. The third loads. Increments are mapped, but each is
 * read once before that, so that a bad sector causes an error with an offset,
 * and does not kill the process.
 */
#include "persist/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "journal/group.h"
#include "journal/verify.h"
#include "snapshot/insert.h"

enum { PATH_BYTES = 512 };

/* A file with a snapshot: the one in dir, or the journal's base. */
struct image {
    int fd; /* -1: there is none */
    uint64_t bytes;
    struct snapshot_stamp stamp;
    char path[PATH_BYTES]; /* for messages */
};

struct run {
    const struct recover_options *options;
    char *reason;
    size_t reason_size;
    struct image snapshot, base;
    bool has_journal;
    struct verify_file *files; /* the increments, mapped */
    struct verify_result verified;
    struct recover_result result;
};

/* ---- reasons ------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool
refuse(struct run *run, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(run->reason, run->reason_size, format, args);
    va_end(args);
    return false;
}

static bool
refuse_image(struct run *run, const struct image *image,
             const struct snapshot_error *error)
{
    switch (error->status) {
    case SNAPSHOT_NEWER:
        return refuse(run, "%s: %s A newer server wrote it: start that one.",
                      image->path, error->text);
    case SNAPSHOT_SECRET:
        return refuse(run,
                      "%s: %s Put back the hash-secret-file of the server that "
                      "wrote it, or copy it to hash-secrets in dir, named by "
                      "its fingerprint. If it is lost, --without-secret and "
                      "the fingerprint leave such filters out, for good.",
                      image->path, error->text);
    case SNAPSHOT_IO:
        return refuse(run, "%s: cannot be read at offset %" PRIu64 ": %s.",
                      image->path, error->offset, strerror(error->error));
    case SNAPSHOT_NOMEM:
        return refuse(run, "%s: not enough memory at offset %" PRIu64 ".",
                      image->path, error->offset);
    default:
        return refuse(run,
                      "%s: damaged at offset %" PRIu64 ", record %" PRIu64
                      ". %s Run bloomery-check verify %s, and bloomery-check "
                      "salvage to copy what is intact.",
                      image->path, error->offset, error->record, error->text,
                      image->path);
    }
}

static void
increment_path(const struct run *run, uint32_t index, char *ret_path)
{
    char name[MANIFEST_FILE_NAME_MAX];

    manifest_increment_name(run->result.manifest.increments[index].number,
                            name);
    (void)snprintf(ret_path, PATH_BYTES, "%s/%s", run->options->journal_dir,
                   name);
}

/* ---- what there is ------------------------------------------------------- */

/* Opens a snapshot file. If the file is missing, image->fd stays -1. Any other
 * error is refused. */
static bool
open_image(struct run *run, int dir_fd, const char *dir, const char *name,
           struct image *image)
{
    struct snapshot_error error = { 0 };
    int code;

    (void)snprintf(image->path, sizeof(image->path), "%s/%s", dir, name);
    code = file_open(dir_fd, name, &image->fd);
    if (code == ENOENT) {
        image->fd = -1;
        return true;
    }
    if (code != 0) {
        image->fd = -1;
        return refuse(run, "%s: cannot be opened: %s.", image->path,
                      strerror(code));
    }
    code = file_size(image->fd, &image->bytes);
    if (code != 0) {
        return refuse(run, "%s: cannot be read: %s.", image->path,
                      strerror(code));
    }
    return snapshot_read_stamp(image->fd, &image->stamp, &error) ==
               SNAPSHOT_OK ||
           refuse_image(run, image, &error);
}

static bool
load_manifest(struct run *run)
{
    const char *dir = run->options->journal_dir;
    char why[512] = "";

    if (run->options->journal_fd < 0) {
        return true;
    }
    switch (manifest_load(run->options->journal_fd, &run->result.manifest, why,
                          sizeof(why))) {
    case MANIFEST_OK:
        run->has_journal = true;
        return true;
    case MANIFEST_MISSING:
        return true;
    case MANIFEST_UNFINISHED:
        run->result.journal_unfinished = true;
        return true;
    case MANIFEST_NEWER:
        return refuse(run,
                      "%s/" MANIFEST_NAME ": %s. A newer server wrote "
                      "it: start that one.",
                      dir, why);
    case MANIFEST_DAMAGED:
        return refuse(run,
                      "%s/" MANIFEST_NAME ": damaged: %s. Run bloomery-check "
                      "verify %s, or move that directory away to start from "
                      "the snapshot alone.",
                      dir, why, dir);
    default:
        return refuse(run, "%s/" MANIFEST_NAME ": %s.", dir, why);
    }
}

static bool
open_base(struct run *run)
{
    const struct manifest *manifest = &run->result.manifest;
    const char *dir = run->options->journal_dir;
    char name[MANIFEST_FILE_NAME_MAX];

    manifest_base_name(manifest->base_number, name);
    if (!open_image(run, run->options->journal_fd, dir, name, &run->base)) {
        return false;
    }
    if (run->base.fd < 0) {
        return refuse(run,
                      "%s: missing, but the manifest names it. Move %s away to "
                      "start from the snapshot alone.",
                      run->base.path, dir);
    }
    if (run->base.stamp.position != manifest->position ||
        run->base.stamp.sequence != manifest->sequence) {
        return refuse(run,
                      "%s: it stands at position %" PRIu64 ", sequence %" PRIu64
                      ", but the manifest says %" PRIu64 ", %" PRIu64
                      ". Run bloomery-check verify %s.",
                      run->base.path, run->base.stamp.position,
                      run->base.stamp.sequence, manifest->position,
                      manifest->sequence, dir);
    }
    return true;
}

/* ---- increments ---------------------------------------------------------- */

static bool
map_increment(struct run *run, uint32_t index)
{
    const struct manifest_increment *increment =
        &run->result.manifest.increments[index];
    struct verify_file *file = &run->files[index];
    char name[MANIFEST_FILE_NAME_MAX];
    char path[PATH_BYTES];
    uint64_t offset = 0;
    int fd = -1;
    int error;

    increment_path(run, index, path);
    manifest_increment_name(increment->number, name);
    error = file_open(run->options->journal_fd, name, &fd);
    if (error == ENOENT) {
        return refuse(run,
                      "%s: missing, but the manifest names it. Run "
                      "bloomery-check verify %s.",
                      path, run->options->journal_dir);
    }
    if (error == 0) { /* bytes after the closed part do not count */
        error = file_read_and_map(
            fd, increment->closed ? (size_t)increment->bytes : SIZE_MAX,
            &file->data, &offset);
    }
    file_close(fd);
    file->closed = increment->closed;
    file->bytes = increment->bytes;
    return error == 0 ||
           refuse(run, "%s: cannot be read at offset %" PRIu64 ": %s.", path,
                  offset, strerror(error));
}

static bool
map_increments(struct run *run)
{
    uint32_t count = run->result.manifest.count;

    if (count > 0) {
        run->files = mem_try_zalloc(count * sizeof(*run->files));
        if (run->files == NULL) {
            return refuse(run, "Not enough memory.");
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!map_increment(run, i)) {
            return false;
        }
    }
    return true;
}

static bool
refuse_damage(struct run *run)
{
    const struct verify_result *verified = &run->verified;
    const char *dir = run->options->journal_dir;
    const char *why = run->files[verified->file].closed
                          ? "and the manifest says that it was synced"
                      : verified->behind.durable_sequence >= verified->expected
                          ? "and a later seal says that it was synced"
                          : "which no crash leaves behind";
    char path[PATH_BYTES];
    char what[VERIFY_TEXT_MAX];

    increment_path(run, verified->file, path);
    verify_describe(verified, what, sizeof(what));
    if (verified->cause == VERIFY_NEWER) {
        return refuse(run, "%s: %s.", path, what);
    }
    if (verified->cause == VERIFY_FIRST_LINE) {
        return refuse(run, "%s: %s. Run bloomery-check verify %s.", path, what,
                      dir);
    }
    return refuse(run,
                  "%s: %s, %s. %" PRIu64 " groups (%" PRIu64
                  " bytes) behind it are intact, nothing was changed. Run "
                  "bloomery-check verify %s, and bloomery-check salvage to "
                  "copy what is intact.",
                  path, what, why, verified->behind.groups,
                  verified->behind.bytes, dir);
}

/* Finds where the journal ends, and whether it may end there. */
static bool
verify(struct run *run)
{
    const struct manifest *manifest = &run->result.manifest;
    const struct verify_result *verified = &run->verified;
    char path[PATH_BYTES];
    char what[VERIFY_TEXT_MAX];

    switch (verify_increments(run->files, manifest->count, manifest->position,
                              manifest->sequence, &run->verified)) {
    case VERIFY_OK:
        return true;
    case VERIFY_CUT:
        increment_path(run, verified->file, path);
        verify_describe(verified, what, sizeof(what));
        (void)snprintf(
            run->result.cut, sizeof(run->result.cut),
            "%.100s: %s; %" PRIu64 " bytes, %" PRIu64 " groups of them intact",
            path, what, verified->behind_bytes, verified->behind.groups);
        return true;
    default:
        return refuse_damage(run);
    }
}

/* ---- loading ------------------------------------------------------------- */

/* Takes the place of insert_filter when the snapshot is only checked. */
static bool
look_at(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct insert *insert = ctx;
    unsigned databases = keyspace_databases(insert->keyspace);

    bloom_fini(bloom, insert->env);
    (void)snprintf(insert->why, sizeof(insert->why),
                   "a key of database %u, but the option databases is %u",
                   (unsigned)record->db, databases);
    return record->db < databases;
}

static bool
read_image(struct run *run, const struct image *image, bool check)
{
    struct insert insert = { .keyspace = run->options->keyspace,
                             .env = run->options->env,
                             .completion = run->options->completion,
                             .threads =
                                 keyspace_threads(run->options->keyspace) };
    struct snapshot_visitor visitor = { .filter = look_at, .ctx = &insert };
    struct snapshot_error error = { 0 };
    enum snapshot_status status;

    if (!check) {
        visitor = insert_visitor(&insert);
    }
    status = snapshot_read(image->fd, run->options->env, &visitor,
                           run->options->progress, &error);
    insert_fini(&insert);
    if (status == SNAPSHOT_STOPPED) {
        return refuse(run, "%s: %s, at offset %" PRIu64 ", record %" PRIu64 ".",
                      image->path, insert.why, error.offset, error.record);
    }
    return status == SNAPSHOT_OK || refuse_image(run, image, &error);
}

static bool
load_image(struct run *run, const struct image *image)
{
    return read_image(run, image, false);
}

static void
advance(struct run *run, uint64_t bytes)
{
    if (run->options->progress != NULL) {
        atomic_fetch_add_explicit(&run->options->progress->bytes, bytes,
                                  memory_order_relaxed);
    }
}

/* Begins the history that the loaded file names. */
static void
begin_history(struct run *run, const char *id)
{
    static const char zeros[] = "0000000000000000000000000000000000000000";

    run->result.without_id =
        !history_is_id(slice_of(id)) || strcmp(id, zeros) == 0;
    if (run->options->history != NULL) {
        history_begin(run->options->history,
                      run->result.without_id ? NULL : id);
    }
}

/* Drops the history that the log recorded, since it continues an unknown one.
 */
static void
forget_history(const struct run *run)
{
    if (run->result.without_id && run->options->history != NULL) {
        history_begin(run->options->history, NULL);
    }
}

static void
store_position(const struct run *run)
{
    if (run->options->position != NULL) {
        *run->options->position = run->result.position;
    }
}

/* Returns advice for a group that is intact but cannot be executed; NULL: there
 * is none. */
static const char *
advice(const char *why)
{
    if (strstr(why, "hash-secret-file") != NULL) {
        return "If the secret is lost, --without-secret and the fingerprint "
               "leave such filters out, for good";
    }
    if (strstr(why, err_text(ERR_DB_RANGE)) != NULL) {
        return "The server that wrote it had more databases: raise the option "
               "databases";
    }
    return NULL;
}

static bool
refuse_group(struct run *run, uint32_t index, uint64_t offset, const char *why)
{
    const char *helps = advice(why);
    char path[PATH_BYTES];

    increment_path(run, index, path);
    return refuse(run,
                  "%s: group %" PRIu64 " at offset %" PRIu64
                  " cannot be executed: %s. %s%s.",
                  path, run->result.manifest.sequence + run->result.groups + 1,
                  offset, why,
                  helps != NULL ? helps : "Run bloomery-check verify ",
                  helps != NULL ? "" : run->options->journal_dir);
}

static bool
replay_increment(struct run *run, uint32_t index)
{
    const struct verify_file *file = &run->files[index];
    const struct recover_replay *replay = run->options->replay;
    uint64_t offset = GROUP_FIRST_LINE_BYTES;
    struct group group;
    char why[512] = "it changed while it was read";

    advance(run, offset);
    while (offset < file->end) {
        store_position(run);
        if (group_read(file->data, file->first.key, offset, &group) !=
                GROUP_OK ||
            !replay->group(replay->ctx, group.commands, why, sizeof(why))) {
            return refuse_group(run, index, offset, why);
        }
        advance(run, group.end - offset);
        run->result.position += group.end - offset;
        offset = group.end;
        run->result.groups++;
    }
    return true;
}

/* Closes all increments at the end of their valid part. An increment without
 * groups is kept as well: as long as the manifest names it, no other file may
 * have its number. */
static void
close_increments(struct run *run)
{
    struct manifest *manifest = &run->result.manifest;

    for (uint32_t i = 0; i < manifest->count; i++) {
        manifest->increments[i].closed = true;
        manifest->increments[i].bytes = run->files[i].end;
    }
}

static bool
load_journal(struct run *run)
{
    struct recover_result *result = &run->result;

    if (!load_image(run, &run->base)) {
        return false;
    }
    begin_history(run, run->base.stamp.history);
    result->position = result->manifest.position;
    for (uint32_t i = 0; i < result->manifest.count; i++) {
        if (!replay_increment(run, i)) {
            return false;
        }
    }
    close_increments(run);
    forget_history(run);
    result->from_journal = true;
    result->has_manifest = true;
    result->position = run->verified.position;
    result->sequence = run->verified.sequence;
    return true;
}

static bool
load_snapshot(struct run *run)
{
    struct recover_result *result = &run->result;

    if (!load_image(run, &run->snapshot)) {
        return false;
    }
    begin_history(run, run->snapshot.stamp.history);
    result->from_snapshot = true;
    result->position = run->snapshot.stamp.position;
    result->sequence = run->snapshot.stamp.sequence;
    return true;
}

/* ---- all of it ----------------------------------------------------------- */

static void
set_total(struct run *run, bool journal)
{
    uint64_t total = journal ? run->base.bytes : run->snapshot.bytes;

    for (uint32_t i = 0; journal && i < run->result.manifest.count; i++) {
        total += run->files[i].end;
    }
    if (run->options->total_bytes != NULL) {
        atomic_store(run->options->total_bytes, total);
    }
}

static bool
look_at_files(struct run *run)
{
    const struct recover_options *options = run->options;

    if (!open_image(run, options->dir_fd, options->dir, options->snapshot_name,
                    &run->snapshot) ||
        !load_manifest(run)) {
        return false;
    }
    return !run->has_journal ||
           (open_base(run) && map_increments(run) && verify(run));
}

static bool
load(struct run *run)
{
    struct recover_result *result = &run->result;
    bool has_snapshot = run->snapshot.fd >= 0;

    result->has_snapshot = has_snapshot;
    result->snapshot = run->snapshot.stamp;
    result->journal_position = run->verified.position;
    /* At equal positions both are the same state, but only the journal can be
     * continued. */
    if (run->has_journal &&
        (!has_snapshot ||
         run->verified.position >= run->snapshot.stamp.position)) {
        set_total(run, true);
        return load_journal(run);
    }
    result->journal_stale = run->has_journal;
    result->cut[0] = '\0';
    set_total(run, false);
    if (!has_snapshot) {
        begin_history(run, "");
        result->without_id = false;
        return true;
    }
    return load_snapshot(run);
}

/* Returns NULL without memory, with the reason. */
static struct run *
run_new(const struct recover_options *options, char *ret_reason,
        size_t reason_size)
{
    struct run *run = mem_try_zalloc(sizeof(*run));

    if (run == NULL) {
        (void)snprintf(ret_reason, reason_size, "Not enough memory.");
        return NULL;
    }
    run->options = options;
    run->reason = ret_reason;
    run->reason_size = reason_size;
    run->snapshot.fd = -1;
    run->base.fd = -1;
    return run;
}

bool
recover_run(const struct recover_options *options,
            struct recover_result *ret_result, char *ret_reason,
            size_t reason_size)
{
    struct run *run = run_new(options, ret_reason, reason_size);
    bool done;

    if (run == NULL) {
        return false;
    }
    done = look_at_files(run) && load(run);
    if (done) {
        run->result.keys = keyspace_count_keys(options->keyspace);
        *ret_result = run->result;
    }
    for (uint32_t i = 0; run->files != NULL && i < run->result.manifest.count;
         i++) {
        file_unmap(run->files[i].data);
    }
    mem_free(run->files);
    file_close(run->snapshot.fd);
    file_close(run->base.fd);
    mem_free(run);
    return done;
}

bool
recover_snapshot(const struct recover_options *options, bool check,
                 char *ret_reason, size_t reason_size)
{
    struct run *run = run_new(options, ret_reason, reason_size);
    bool done;

    if (run == NULL) {
        return false;
    }
    done = open_image(run, options->dir_fd, options->dir,
                      options->snapshot_name, &run->snapshot);
    if (done && run->snapshot.fd < 0) {
        done = refuse(run, "%s: there is no such file.", run->snapshot.path);
    }
    done = done && read_image(run, &run->snapshot, check);
    file_close(run->snapshot.fd);
    mem_free(run);
    return done;
}
