/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directories as a server leaves them.
 */
#include "recover_help.h"

void
place_open(struct place *place)
{
    memset(place, 0, sizeof(*place));
    (void)snprintf(place->dir, sizeof(place->dir), "/tmp/recover-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    (void)snprintf(place->journal_dir, sizeof(place->journal_dir), "%s/journal",
                   place->dir);
    assert_int_equal(file_open_dir(place->dir, false, &place->dir_fd), 0);
    assert_int_equal(
        file_open_dir(place->journal_dir, true, &place->journal_fd), 0);
    place->env = test_env();
}

static void
remove_all(int dir_fd)
{
    DIR *dir = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY));
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        (void)unlinkat(dir_fd, entry->d_name, 0);
    }
    (void)closedir(dir);
}

void
place_close(struct place *place)
{
    keyspace_free(place->ks);
    remove_all(place->journal_fd);
    remove_all(place->dir_fd);
    file_close(place->journal_fd);
    file_close(place->dir_fd);
    assert_int_equal(rmdir(place->journal_dir), 0);
    assert_int_equal(rmdir(place->dir), 0);
    for (uint32_t i = 0; i < INCREMENTS; i++) {
        buf_free(&place->logs[i]);
    }
}

/* ---- files --------------------------------------------------------------- */

void
put_file(int dir_fd, const char *name, struct slice content)
{
    int fd;

    assert_int_equal(file_create(dir_fd, name, &fd), 0);
    assert_int_equal(file_write(fd, content.data, content.len), 0);
    file_close(fd);
}

void
put_image(int dir_fd, const char *name, const struct keyspace *ks,
          uint64_t position, uint64_t sequence)
{
    struct keyspace *empty = ks == NULL ? test_keyspace(1) : NULL;
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp stamp = test_stamp();
    int fd;

    stamp.position = position;
    stamp.sequence = sequence;
    assert_non_null(writer);
    assert_int_equal(file_create(dir_fd, name, &fd), 0);
    assert_int_equal(
        snapshot_write(writer, ks != NULL ? ks : empty, &stamp, fd, NULL), 0);
    file_close(fd);
    snapshot_writer_free(writer);
    if (empty != NULL) {
        keyspace_free(empty);
    }
}

void
put_image_of(int dir_fd, const char *name, const char *id)
{
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp stamp = { .position = 1000, .sequence = 100 };
    struct keyspace *ks = test_keyspace(1);
    int fd;

    (void)snprintf(stamp.history, sizeof(stamp.history), "%s", id);
    assert_int_equal(file_create(dir_fd, name, &fd), 0);
    assert_int_equal(snapshot_write(writer, ks, &stamp, fd, NULL), 0);
    file_close(fd);
    snapshot_writer_free(writer);
    keyspace_free(ks);
}

void
put_manifest(struct place *place)
{
    assert_int_equal(manifest_store(place->journal_fd, &place->manifest), 0);
}

void
put_increments(struct place *place)
{
    char name[MANIFEST_FILE_NAME_MAX];

    for (uint32_t i = 0; i < INCREMENTS; i++) {
        manifest_increment_name(2 + i, name);
        put_file(place->journal_fd, name, buf_slice(&place->logs[i]));
    }
}

uint64_t
log_bytes(const struct place *place)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < INCREMENTS; i++) {
        bytes += place->logs[i].len - GROUP_FIRST_LINE_BYTES;
    }
    return bytes;
}

void
put_journal(struct place *place)
{
    place->manifest = (struct manifest){ .generation = 7,
                                         .base_number = 1,
                                         .position = 1000,
                                         .sequence = 100,
                                         .count = INCREMENTS };
    for (uint32_t i = 0; i < INCREMENTS; i++) {
        struct buf *log = &place->logs[i];

        log->len = 0;
        log_first_line(log, LOG_KEY + i);
        for (uint64_t n = i * PER_INCREMENT; n < (i + 1) * PER_INCREMENT; n++) {
            place->begins[n] = log->len;
            log_group(log, LOG_KEY + i, 101 + n, 101 + n - 2, 1);
        }
        place->manifest.increments[i] =
            (struct manifest_increment){ .number = 2 + i };
    }
    place->manifest.increments[0].closed = true;
    place->manifest.increments[0].bytes = place->logs[0].len;
    put_image(place->journal_fd, "base-1", NULL, 1000, 100);
    put_increments(place);
    put_manifest(place);
}

void
damage(int dir_fd, const char *name, uint64_t offset)
{
    int fd = openat(dir_fd, name, O_RDWR);
    char byte;

    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
}

/* ---- running ------------------------------------------------------------- */

static bool
replay_group(void *ctx, struct slice commands, char *ret_reason,
             size_t reason_size)
{
    struct place *place = ctx;
    const char *item =
        memmem(commands.data, commands.len, "item-", strlen("item-"));
    uint64_t sequence;

    assert_non_null(item);
    sequence = strtoull(item + strlen("item-"), NULL, 10);
    if (place->last_sequence != 0) {
        assert_int_equal(sequence, place->last_sequence + 1);
    }
    place->last_sequence = sequence;
    if (place->groups == 0 && place->note != NULL) {
        history_go_on(&place->history, place->note, place->position);
    }
    place->positions[place->groups++] = place->position;
    if (place->groups == place->fail_at) {
        (void)snprintf(ret_reason, reason_size, "this one is made to fail");
        return false;
    }
    return true;
}

bool
recover(struct place *place)
{
    struct recover_replay replay = { .group = replay_group, .ctx = place };
    struct recover_options options = {
        .dir_fd = place->dir_fd,
        .journal_fd = place->journal_fd,
        .snapshot_name = SNAPSHOT_NAME,
        .dir = place->dir,
        .journal_dir = place->journal_dir,
        .env = &place->env,
        .replay = &replay,
        .history = &place->history,
        .position = &place->position,
        .progress = &place->progress,
        .total_bytes = &place->total_bytes,
    };

    if (place->ks != NULL) {
        keyspace_free(place->ks);
    }
    place->ks = test_keyspace(1);
    options.keyspace = place->ks;
    place->progress = (struct snapshot_progress){ 0 };
    place->groups = 0;
    place->last_sequence = 0;
    place->reason[0] = '\0';
    mem_fail_at(place->refuse_nth);
    return recover_run(&options, &place->result, place->reason,
                       sizeof(place->reason));
}

void
assert_refused(struct place *place, const char *file, const char *what)
{
    if (recover(place)) {
        fail_msg("loaded, and not refused for %s: %s", file, what);
    }
    if (strstr(place->reason, file) == NULL ||
        strstr(place->reason, what) == NULL) {
        fail_msg("no %s and %s in: %s", file, what, place->reason);
    }
}

void
assert_from_journal(struct place *place, uint64_t groups)
{
    const struct recover_result *result = &place->result;
    uint64_t bytes = 0;

    if (!recover(place)) {
        fail_msg("refused: %s", place->reason);
    }
    assert_true(result->from_journal && result->has_manifest);
    assert_false(result->from_snapshot || result->journal_stale);
    assert_int_equal(result->groups, groups);
    assert_int_equal(place->groups, groups);
    assert_int_equal(result->sequence, 100 + groups);
    for (uint32_t i = 0; i < result->manifest.count; i++) {
        assert_true(result->manifest.increments[i].closed);
        bytes += result->manifest.increments[i].bytes - GROUP_FIRST_LINE_BYTES;
    }
    assert_int_equal(result->position, 1000 + bytes);
    assert_int_equal(place->progress.bytes, place->total_bytes);
}
