/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For a journal, salvage loads the intact filters of the base and executes the
 * intact groups whose sequences rise. The result is one new base at the
 * position where the log ended, so that no older snapshot looks newer. If data
 * is lost that an intact snapshot beside the journal may have, the snapshot is
 * loaded instead of the base. For a single increment, the intact groups get new
 * seals without gaps between their sequences.
 */
#include "check/check_salvage.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "check/check_beside.h"
#include "check/check_chain.h"
#include "check/check_gap.h"
#include "check/check_rescue.h"
#include "check/check_world.h"
#include "core/keyed.h"
#include "snapshot/left_out.h"
#include "snapshot/snapshot_whole.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct salvage {
    struct check *check;
    struct check_made made;
    struct check_journal *journal;
    /* About the groups to salvage, counted before anything is written. */
    uint64_t groups, bytes, end_position, end_sequence;
    uint64_t keys, failed; /* for a journal: keys, and commands that failed */
    uint64_t kept;         /* for a journal: deletions left out */
    struct check_snapshot snapshot; /* the snapshot that was salvaged last */
    char snapshot_path[CHECK_PATH_MAX];
    size_t snapshots;
    bool lost, guessed;     /* something was lost; the manifest was guessed */
    uint64_t lost_up_to;    /* the log position where the last loss ends */
    bool has_base;          /* guessing a manifest has found a base */
    bool nothing_to_add_to; /* no manifest could be guessed */
};

/* ---- snapshots ----------------------------------------------------------- */

static void
show_snapshot(struct check *check, const char *out,
              const struct check_snapshot *found)
{
    check_card_begin(check, out, "snapshot", CHECK_STATE_INTACT);
    check_card_number(check, "keys", found->keys);
    if (found->has_stamp && found->stamp.keys >= found->keys) {
        check_card_number(check, "lost_keys", found->stamp.keys - found->keys);
    }
    check_card_number(check, "damaged_places", found->lost_stretches);
    check_card_number(check, "damaged_bytes", found->lost_bytes);
    check_card_end(check);
}

/* Reads the whole snapshot. False if nothing of it can be salvaged. */
static bool
look_whole(struct check *check, int fd, const char *path,
           struct check_snapshot *ret_found)
{
    check_snapshot_look(check, fd, true, ret_found);
    if (!ret_found->whole || ret_found->state != CHECK_STATE_INTACT) {
        check_snapshot_complain(check, path, ret_found);
    }
    return ret_found->whole && ret_found->state != CHECK_STATE_NEWER;
}

static bool
salvage_snapshot(void *ctx, const char *path, const char *out)
{
    struct salvage *salvage = ctx;
    struct check *check = salvage->check;
    struct check_snapshot found;
    uint64_t bytes = 0;
    int fd = -1;
    bool ok;

    if (!check_file_open(check, path, &fd)) {
        return false;
    }
    (void)!file_size(fd, &bytes);
    tool_bar_begin(&check->tool, TOOL_UNIT_MIB, 2 * bytes);
    ok = look_whole(check, fd, path, &found) &&
         check_rescue(&salvage->made, fd, &found, out);
    tool_bar_end(&check->tool);
    file_close(fd);
    if (ok) {
        show_snapshot(check, out, &found);
        salvage->lost |= found.lost_stretches > 0;
        salvage->snapshot = found;
        salvage->snapshots++;
        (void)snprintf(salvage->snapshot_path, sizeof(salvage->snapshot_path),
                       "%s", path);
    }
    return ok;
}

/* ---- increments ---------------------------------------------------------- */

struct sealer {
    struct salvage *salvage;
    struct group_file line;
    struct group_hash *hash;
    const char *path;
    int fd;
    uint64_t sequence, bytes; /* sequence of the last group, file's size */
};

static bool
put_first_line(struct sealer *sealer, const struct group_file *like)
{
    char line[GROUP_FIRST_LINE_BYTES];

    sealer->line = *like;
    random_bytes(&sealer->line.key, sizeof(sealer->line.key));
    group_write_first_line(&sealer->line, line);
    sealer->bytes = sizeof(line);
    return check_make_write(&sealer->salvage->made, sealer->fd, sealer->path,
                            (struct slice){ line, sizeof(line) });
}

static bool
put_group(struct sealer *sealer, const struct group *group)
{
    struct check_made *made = &sealer->salvage->made;
    struct group_seal seal = group->seal;
    char text[GROUP_SEAL_BYTES];

    seal.durable_sequence = sealer->sequence;
    seal.sequence = ++sealer->sequence;
    group_hash_begin(sealer->hash, sealer->line.key);
    group_hash_add(sealer->hash, group->commands.data, group->commands.len);
    group_write_seal(sealer->hash, sealer->line.key, &seal, text);
    sealer->bytes += group->commands.len + sizeof(text);
    tool_bar_add(&made->check->tool, group->commands.len + sizeof(text));
    return check_make_write(made, sealer->fd, sealer->path, group->commands) &&
           check_make_write(made, sealer->fd, sealer->path,
                            (struct slice){ text, sizeof(text) });
}

/* Returns whether the end is what a crash leaves, with no intact group. */
static bool
has_torn_end(const struct salvage *salvage)
{
    return salvage->journal->state == CHECK_STATE_TORN &&
           salvage->journal->after.groups == 0;
}

/* Notes a loss before this offset of the present increment. */
static void
lose_up_to(struct salvage *salvage, uint64_t offset)
{
    salvage->lost = true;
    salvage->lost_up_to =
        salvage->end_position + offset - GROUP_FIRST_LINE_BYTES;
}

/* Counts the groups to salvage, whose sequences are higher than *after. Then
 * *after is the sequence of the last one. */
static void
count_increment(struct salvage *salvage,
                const struct check_increment *increment, uint64_t *after)
{
    struct group group;
    uint64_t at = 0;
    uint64_t end = GROUP_FIRST_LINE_BYTES;
    uint64_t due = *after + 1;

    while (check_chain_next_intact(increment, &at, &group)) {
        if (group.begin != end) {
            lose_up_to(salvage, group.begin);
        }
        end = group.end;
        if (group.seal.sequence <= *after) {
            continue;
        }
        if (group.seal.sequence != due && due != 1) {
            lose_up_to(salvage, group.begin);
        }
        due = group.seal.sequence + 1;
        *after = group.seal.sequence;
        salvage->groups++;
        salvage->bytes += group.end - group.begin;
        tool_bar_add(&salvage->check->tool, group.end - group.begin);
    }
    if (increment->file->closed && increment->file->bytes > end) {
        end = increment->file->bytes;
    }
    if ((end != increment->map.bytes.len && !has_torn_end(salvage)) ||
        increment->line_status != GROUP_OK) {
        lose_up_to(salvage, end > increment->map.bytes.len
                                ? end
                                : increment->map.bytes.len);
    }
    salvage->end_position += end - GROUP_FIRST_LINE_BYTES;
    salvage->end_sequence = *after;
}

/* Writes the groups that count_increment counted. */
static bool
write_increment(struct salvage *salvage,
                const struct check_increment *increment, uint64_t *after,
                struct sealer *sealer)
{
    struct group_file like = increment->file->first;
    struct group group;
    uint64_t at = 0;
    bool ok;

    sealer->salvage = salvage;
    if (increment->line_status != GROUP_OK) {
        memset(like.run_id, '0', sizeof(like.run_id) - 1);
        like.run_id[sizeof(like.run_id) - 1] = '\0';
    }
    if (!check_make_file(&salvage->made, sealer->path, &sealer->fd)) {
        return false;
    }
    sealer->hash = group_hash_new();
    ok = put_first_line(sealer, &like);
    while (ok && check_chain_next_intact(increment, &at, &group)) {
        if (group.seal.sequence > *after) {
            *after = group.seal.sequence;
            ok = put_group(sealer, &group);
        }
    }
    group_hash_free(sealer->hash);
    return check_make_done(&salvage->made, sealer->fd, sealer->path) && ok;
}

static void
show_groups(struct salvage *salvage, const char *out, const char *kind)
{
    const struct group_survey *after = &salvage->journal->after;
    struct check *check = salvage->check;

    check_card_begin(check, out, kind, CHECK_STATE_INTACT);
    check_card_number(check, "groups", salvage->groups);
    check_card_number(check, "bytes", salvage->bytes);
    if (!salvage->journal->single) {
        check_card_number(check, "keys", salvage->keys);
        check_card_number(check, "failed_commands", salvage->failed);
        if (salvage->lost) {
            check_card_number(check, "deletions_left_out", salvage->kept);
        }
    }
    if (salvage->journal->state != CHECK_STATE_INTACT) {
        check_card_number(check, "groups_after_damage", after->groups);
    }
    check_card_text(check, "lost", salvage->lost ? "something" : "nothing");
    check_card_end(check);
}

static bool
salvage_increment(void *ctx, const char *path, const char *out)
{
    struct salvage *salvage = ctx;
    struct check *check = salvage->check;
    struct sealer sealer = { .path = out };
    const struct check_increment *increment;
    uint64_t after = 0;
    uint64_t first = 0;
    uint64_t at = 0;
    struct group group;
    bool ok;

    if (!check_journal_open_single(check, path, salvage->journal)) {
        return false;
    }
    increment = &salvage->journal->increments[0];
    if (increment->line_status == GROUP_NEWER) {
        tool_complain(&check->tool, CHECK_NEWER,
                      "%s: written by a newer version", path);
        return false;
    }
    tool_bar_begin(&check->tool, TOOL_UNIT_MIB,
                   3 * check_journal_bytes(salvage->journal));
    check_chain_scan(check, salvage->journal, NULL, NULL);
    if (check_chain_next_intact(increment, &at, &group)) {
        first = group.seal.sequence;
    }
    count_increment(salvage, increment, &after);
    after = 0;
    sealer.sequence = first > 0 ? first - 1 : 0;
    ok = write_increment(salvage, increment, &after, &sealer);
    tool_bar_end(&check->tool);
    if (ok) {
        show_groups(salvage, out, "increment");
    }
    return ok;
}

/* ---- a journal without a manifest ---------------------------------------- */

static int
by_number(const void *a, const void *b)
{
    const struct manifest_increment *x = a;
    const struct manifest_increment *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

static bool
number_of(const char *name, const char *prefix, uint64_t *ret_number)
{
    size_t len = strlen(prefix);

    return strncmp(name, prefix, len) == 0 &&
           slice_to_u64(slice_of(name + len), ret_number);
}

/* Chooses this base if no other base so far is further in the log. */
static bool
try_base(struct salvage *salvage, uint64_t number)
{
    struct check_journal *journal = salvage->journal;
    struct manifest *manifest = &journal->manifest;
    char name[MANIFEST_FILE_NAME_MAX];
    char path[CHECK_PATH_MAX];
    struct check_snapshot base;
    int fd = -1;

    manifest_base_name(number, name);
    if (!check_file_join(salvage->check, journal->path, name, path) ||
        !check_file_open(salvage->check, path, &fd)) {
        return false;
    }
    check_snapshot_look(salvage->check, fd, false, &base);
    file_close(fd);
    if (base.state == CHECK_STATE_NEWER) {
        check_snapshot_complain(salvage->check, path, &base);
        return false;
    }
    if (base.has_stamp &&
        (!salvage->has_base || base.stamp.position >= manifest->position)) {
        salvage->has_base = true;
        manifest->base_number = number;
        manifest->position = base.stamp.position;
        manifest->sequence = base.stamp.sequence;
    }
    return true;
}

static bool
note_name(void *ctx, const char *name)
{
    struct salvage *salvage = ctx;
    struct manifest *manifest = &salvage->journal->manifest;
    uint64_t number;

    if (number_of(name, "base-", &number)) {
        return try_base(salvage, number);
    }
    if (number_of(name, "incr-", &number)) {
        if (manifest->count == MANIFEST_INCREMENTS_MAX) {
            tool_complain(&salvage->check->tool, CHECK_DAMAGED,
                          "%s: too many increments", salvage->journal->path);
            return false;
        }
        manifest->increments[manifest->count++] =
            (struct manifest_increment){ .number = number };
    }
    return true;
}

/* Makes a manifest of all files that are named like those of a journal. */
static bool
guess_manifest(struct salvage *salvage)
{
    struct manifest *manifest = &salvage->journal->manifest;

    memset(manifest, 0, sizeof(*manifest));
    if (!check_file_each(salvage->check, salvage->journal->path, note_name,
                         salvage)) {
        return false;
    }
    if (!salvage->has_base) {
        salvage->nothing_to_add_to = true;
        tool_complain(&salvage->check->tool, CHECK_DAMAGED,
                      "%s: no base can be read, so there is nothing that the "
                      "increments could be added to",
                      salvage->journal->path);
        return false;
    }
    qsort(manifest->increments, manifest->count,
          sizeof(manifest->increments[0]), by_number);
    return true;
}

/* ---- journals ------------------------------------------------------------ */

static bool
open_journal(struct salvage *salvage, const char *path)
{
    struct check_journal *journal = salvage->journal;
    char why[512] = "";

    switch (
        check_journal_open(salvage->check, path, journal, why, sizeof(why))) {
    case JOURNAL_FOUND:
        return true;
    case JOURNAL_UNFINISHED:
    case JOURNAL_BROKEN:
        salvage->lost = salvage->guessed = true;
        tool_complain(&salvage->check->tool, CHECK_DAMAGED,
                      "%s: the manifest: %s; using all files that are named "
                      "like those of a journal instead",
                      path, why);
        return guess_manifest(salvage) &&
               check_journal_open_named(salvage->check, journal);
    default:
        return false;
    }
}

/* Executes the intact groups behind a sequence. A missing sequence is a gap. */
static void
execute_groups(struct salvage *salvage, struct check_gap *gap, uint64_t after)
{
    const struct check_journal *journal = salvage->journal;

    for (size_t i = 0; i < journal->count; i++) {
        struct group group;
        uint64_t at = 0;

        while (check_chain_next_intact(&journal->increments[i], &at, &group)) {
            if (group.seal.sequence <= after) {
                continue;
            }
            if (salvage->lost && group.seal.sequence != after + 1) {
                check_gap_open(gap);
            }
            after = group.seal.sequence;
            salvage->failed += check_gap_execute(gap, group.commands);
            tool_bar_add(&salvage->check->tool, group.end - group.begin);
        }
    }
}

/* Removes the filters whose secret is not here: they were executed with a wrong
 * key. */
static bool
leave_out(struct salvage *salvage, struct check_world *world)
{
    uint64_t count = 0;
    uint64_t other = 0;

    if (!left_out_remove(check_world_keyspace(world), 0, &count, &other)) {
        tool_complain(&salvage->check->tool, CHECK_UNREADABLE,
                      "%s: not enough memory", salvage->journal->path);
        return false;
    }
    if (count > 0) {
        tool_complain(&salvage->check->tool, CHECK_DAMAGED,
                      "%s: left out %llu keyed filters, whose secret is not "
                      "here (--hash-secret-file)",
                      salvage->journal->path, (unsigned long long)count);
        salvage->lost = true;
    }
    return true;
}

/* Returns whether the snapshot beside the journal is the better base: data is
 * lost, and the snapshot is intact, of the same log and not older. */
static bool
takes_snapshot(const struct salvage *salvage, const struct check_snapshot *base)
{
    const struct check_snapshot *snapshot = &salvage->snapshot;

    return salvage->lost && salvage->snapshots == 1 &&
           snapshot->state == CHECK_STATE_INTACT &&
           snapshot->stamp.sequence >= salvage->journal->manifest.sequence &&
           snapshot->stamp.position >= salvage->journal->manifest.position &&
           check_chain_is_of(salvage->journal, base->stamp.history,
                             snapshot->stamp.sequence, snapshot->stamp.history);
}

/* Begins with the snapshot, which has all data up to its position. */
static void
begin_with_snapshot(struct salvage *salvage)
{
    const struct snapshot_stamp *stamp = &salvage->snapshot.stamp;

    salvage->lost = salvage->guessed || salvage->lost_up_to > stamp->position;
    if (salvage->end_position < stamp->position) {
        salvage->end_position = stamp->position;
        salvage->end_sequence = stamp->sequence;
    }
    tool_complain(&salvage->check->tool, 0,
                  "%s: something is lost, which %s has", salvage->journal->path,
                  salvage->snapshot_path);
}

/* Loads the base or the snapshot. *ret_sequence: the last group in it. */
static bool
load_state(struct salvage *salvage, struct check_world *world,
           const struct check_snapshot *base, uint64_t *ret_sequence)
{
    const struct check_journal *journal = salvage->journal;
    bool takes = takes_snapshot(salvage, base);
    const char *path = takes ? salvage->snapshot_path : journal->base_path;
    char why[512] = "";
    int fd = -1;
    bool ok = (!takes || check_file_open(salvage->check, path, &fd)) &&
              check_world_load(world, takes ? fd : journal->base_fd, true, why,
                               sizeof(why));

    file_close(fd);
    if (!ok) {
        tool_complain(&salvage->check->tool, CHECK_DAMAGED, "%s: %s", path,
                      why);
    } else if (takes) {
        begin_with_snapshot(salvage);
    }
    *ret_sequence =
        takes ? salvage->snapshot.stamp.sequence : journal->manifest.sequence;
    return ok;
}

/* Loads the base, or the snapshot, and executes the groups. A command that
 * fails depends on lost data and is left out. */
static bool
execute(struct salvage *salvage, struct check_world *world,
        const struct check_snapshot *base)
{
    struct check_gap *gap;
    uint64_t sequence;
    bool ok;

    (void)keyed_accept_all(true); /* check_world_free ends this */
    if (!load_state(salvage, world, base, &sequence)) {
        return false;
    }
    gap = check_gap_new(world);
    if (base->lost_stretches > 0 && salvage->lost) {
        check_gap_open(gap);
    }
    execute_groups(salvage, gap, sequence);
    ok = leave_out(salvage, world);
    if (ok) {
        salvage->kept =
            check_gap_complain(gap, salvage->check, salvage->journal->path);
    }
    check_gap_free(gap);
    salvage->lost |= salvage->failed > 0;
    return ok;
}

/* Writes the state without a history id: it may differ from what the history
 * has at this position, so no replica may continue from it. */
static bool
write_state(struct salvage *salvage, const struct keyspace *ks,
            const struct check_snapshot *base, const char *path)
{
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp stamp = base->stamp;
    struct snapshot_progress progress = { 0 };
    int error;
    int fd;

    CHECK(writer != NULL);
    if (!check_make_file(&salvage->made, path, &fd)) {
        snapshot_writer_free(writer);
        return false;
    }
    memset(stamp.history, '0', SNAPSHOT_HISTORY_BYTES);
    stamp.position = salvage->end_position;
    stamp.sequence = salvage->end_sequence;
    stamp.keys = salvage->keys = keyspace_count_keys(ks);
    error = snapshot_write(writer, ks, &stamp, fd, &progress);
    snapshot_writer_free(writer);
    if (error != 0) {
        tool_complain(&salvage->check->tool, CHECK_UNREADABLE,
                      "%s: cannot be written: %s", path, strerror(error));
    }
    return check_make_done(&salvage->made, fd, path) && error == 0;
}

/* Writes one base with all the data, and no increment: groups could depend on
 * lost data, a snapshot loads in any case. */
static bool
write_journal(struct salvage *salvage, const char *out,
              const struct check_snapshot *base)
{
    const struct manifest *found = &salvage->journal->manifest;
    struct manifest *manifest = mem_zalloc(sizeof(*manifest));
    struct check_world *world = check_world_new();
    char name[MANIFEST_FILE_NAME_MAX];
    char path[CHECK_PATH_MAX];
    bool ok;

    manifest->generation = found->generation + 1;
    manifest->base_number = found->base_number;
    manifest->position = salvage->end_position;
    manifest->sequence = salvage->end_sequence;
    manifest_base_name(manifest->base_number, name);
    ok = check_file_join(salvage->check, out, name, path) &&
         execute(salvage, world, base) && check_make_dir(&salvage->made, out) &&
         write_state(salvage, check_world_keyspace(world), base, path) &&
         check_make_manifest(&salvage->made, out, manifest);
    check_world_free(world);
    mem_free(manifest);
    return ok;
}

static bool
salvage_journal(void *ctx, const char *path, const char *out,
                const struct check_data *data)
{
    struct salvage *salvage = ctx;
    struct check_journal *journal = salvage->journal;
    struct check_snapshot base;
    uint64_t after;
    bool ok;

    if (!open_journal(salvage, path)) {
        /* A start loads the snapshot beside the journal, so the result is
         * useful even if it is empty. */
        return salvage->nothing_to_add_to && data != NULL && data->count > 0;
    }
    tool_bar_begin(&salvage->check->tool, TOOL_UNIT_MIB,
                   4 * check_journal_bytes(journal));
    ok =
        look_whole(salvage->check, journal->base_fd, journal->base_path, &base);
    check_chain_scan(salvage->check, journal, NULL, NULL);
    if (journal->state == CHECK_STATE_NEWER) {
        check_journal_complain(salvage->check, journal);
        ok = false;
    }
    salvage->lost |= base.lost_stretches > 0;
    after = journal->manifest.sequence;
    salvage->end_sequence = after;
    salvage->end_position = journal->manifest.position;
    for (size_t i = 0; ok && i < journal->count; i++) {
        count_increment(salvage, &journal->increments[i], &after);
    }
    ok = ok && write_journal(salvage, out, &base);
    tool_bar_end(&salvage->check->tool);
    if (ok) {
        show_groups(salvage, out, "journal");
    }
    return ok;
}

static bool
salvage_beside(void *ctx, const char *path, const char *out)
{
    struct salvage *salvage = ctx;

    return check_beside_copy(&salvage->made, path, out, check_beside_salvage);
}

/* Sets the verdict, and counts the filters that a start on OUT would load. */
static void
judge_salvage(struct salvage *salvage)
{
    struct check *check = salvage->check;
    bool has_journal = salvage->journal->count > 0 || salvage->has_base;

    check->found = salvage->lost ? "something was lost" : "nothing was lost";
    check->filters_unknown = salvage->journal->single;
    check->filters =
        has_journal && salvage->end_position >= salvage->snapshot.stamp.position
            ? salvage->keys
            : salvage->snapshot.keys;
    if (salvage->lost) {
        check->worst = CHECK_STATE_DAMAGED;
        tool_raise(&check->tool, CHECK_DAMAGED);
    }
}

void
check_salvage(struct check *check, const char *path, const char *out)
{
    struct salvage salvage = {
        .check = check,
        .made = { .check = check },
        .journal = mem_zalloc(sizeof(struct check_journal)),
    };
    struct check_maker maker = {
        .snapshot = salvage_snapshot,
        .increment = salvage_increment,
        .journal = salvage_journal,
        .beside = salvage_beside,
        .refusal = "is no snapshot and no journal; its directory may be one",
        .ctx = &salvage,
    };

    salvage.journal->base_fd = -1;
    if (check_make_all(&salvage.made, path, out, &maker)) {
        judge_salvage(&salvage);
    }
    check_journal_close(salvage.journal);
    mem_free(salvage.journal);
}
