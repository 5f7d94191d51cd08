/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each file and each directory gets one card.
 */
#include "check/check_verify.h"

#include "base/file.h"
#include "base/mem.h"
#include "check/check_chain.h"
#include "check/check_file.h"
#include "check/check_snapshot.h"
#include "check/check_world.h"

#include <stdio.h>

struct check_whole
check_verify_snapshot(struct check *check, int fd, const char *path, bool whole)
{
    struct check_snapshot snapshot;
    uint64_t bytes = 0;

    (void)!file_size(fd, &bytes);
    tool_bar_begin(&check->tool, whole ? TOOL_UNIT_MIB : TOOL_UNIT_NONE, bytes);
    check_snapshot_look(check, fd, whole, &snapshot);
    tool_bar_end(&check->tool);
    check_snapshot_show(check, path, &snapshot);
    return (struct check_whole){ .known = snapshot.has_stamp,
                                 .position = snapshot.stamp.position,
                                 .keys = snapshot.keys,
                                 .state = snapshot.state };
}

static struct check_whole
verify_snapshot(struct check *check, const char *path, bool whole)
{
    struct check_whole state = { .state = CHECK_STATE_UNREADABLE };
    int fd = -1;

    if (check_file_open(check, path, &fd)) {
        state = check_verify_snapshot(check, fd, path, whole);
        file_close(fd);
    }
    return state;
}

static void
verify_increment(struct check *check, const char *path)
{
    struct check_journal *journal = mem_zalloc(sizeof(*journal));

    check->filters_unknown = true;
    if (check_journal_open_single(check, path, journal)) {
        tool_bar_begin(&check->tool, TOOL_UNIT_MIB,
                       check_journal_bytes(journal));
        check_chain_scan(check, journal, NULL, NULL);
        tool_bar_end(&check->tool);
        check_journal_show(check, journal);
        check_journal_close(journal);
    }
    mem_free(journal);
}

/* ---- manifests ----------------------------------------------------------- */

static void
show_manifest(struct check *check, const char *path,
              const struct manifest *manifest)
{
    char name[MANIFEST_FILE_NAME_MAX];
    uint32_t closed = 0;

    for (uint32_t i = 0; i < manifest->count; i++) {
        closed += manifest->increments[i].closed;
    }
    check_card_begin(check, path, "manifest", CHECK_STATE_INTACT);
    check_card_number(check, "version", MANIFEST_VERSION);
    check_card_number(check, "generation", manifest->generation);
    manifest_base_name(manifest->base_number, name);
    check_card_text(check, "base", name);
    check_card_number(check, "position", manifest->position);
    check_card_number(check, "sequence", manifest->sequence);
    check_card_number(check, "increments", manifest->count);
    check_card_number(check, "closed_increments", closed);
    if (manifest->count > 0) {
        manifest_increment_name(manifest->increments[0].number, name);
        check_card_text(check, "oldest", name);
        manifest_increment_name(
            manifest->increments[manifest->count - 1].number, name);
        check_card_text(check, "newest", name);
    }
    check_card_end(check);
}

static void
verify_manifest(struct check *check, const char *path)
{
    struct manifest *manifest = mem_zalloc(sizeof(*manifest));
    enum manifest_status status;
    struct check_map map = { 0 };
    char why[512] = "";
    uint64_t bytes = 0;
    int fd = -1;

    check->filters_unknown = true;
    if (!check_file_open(check, path, &fd)) {
        mem_free(manifest);
        return;
    }
    (void)!file_size(fd, &bytes);
    if (check_file_map(check, fd, SIZE_MAX, path, &map)) {
        status = manifest_parse(map.bytes, manifest, why, sizeof(why));
        if (status == MANIFEST_OK) {
            show_manifest(check, path, manifest);
        } else {
            check_card_begin(check, path, "manifest",
                             status == MANIFEST_NEWER ? CHECK_STATE_NEWER
                                                      : CHECK_STATE_DAMAGED);
            check_card_number(check, "bytes", bytes);
            check_card_text(check, "problem", why);
            check_card_end(check);
        }
        check_file_unmap(&map);
    }
    file_close(fd);
    mem_free(manifest);
}

/* ---- journals ------------------------------------------------------------ */

/* Returns whether the base is the one of the manifest. */
static bool
base_fits(const struct check_journal *journal,
          const struct check_snapshot *base)
{
    return base->has_stamp &&
           base->stamp.position == journal->manifest.position &&
           base->stamp.sequence == journal->manifest.sequence;
}

static struct check_whole
show_journal(struct check *check, const struct check_journal *journal,
             const struct check_snapshot *base)
{
    enum check_state state =
        base->state > journal->state ? base->state : journal->state;
    bool fits = base_fits(journal, base);

    if (base->has_stamp && !fits) {
        state = state > CHECK_STATE_DAMAGED ? state : CHECK_STATE_DAMAGED;
    }
    check_card_begin(check, journal->path, "journal", state);
    check_card_number(check, "bytes", check_journal_bytes(journal));
    check_card_number(check, "generation", journal->manifest.generation);
    check_card_number(check, "increments", journal->count);
    check_card_number(check, "groups", journal->groups);
    check_card_number(check, "position", journal->position);
    check_card_number(check, "sequence", journal->sequence);
    check_card_time(check, "last_time", journal->last_ms);
    if (base->has_stamp && !fits) {
        check_card_format(
            check, "problem",
            "the base is not the one of the manifest: position %llu and "
            "sequence %llu instead of %llu and %llu",
            (unsigned long long)base->stamp.position,
            (unsigned long long)base->stamp.sequence,
            (unsigned long long)journal->manifest.position,
            (unsigned long long)journal->manifest.sequence);
    }
    check_card_end(check);
    return (struct check_whole){ .known = base->has_stamp,
                                 .position = journal->position,
                                 .state = state };
}

/* Executes the groups of a chain, since a start refuses groups that fail.
 * Returns how many keys result. */
static uint64_t
execute_journal(struct check *check, struct check_journal *journal,
                struct check_snapshot *base)
{
    struct check_world *world = check_world_new();
    uint64_t keys;
    char why[512] = "";

    if (!check_world_load_journal(world, check, journal, why, sizeof(why))) {
        base->state = check_card_failure(why);
        (void)snprintf(base->error.text, sizeof(base->error.text), "%s", why);
    }
    keys = keyspace_count_keys(check_world_keyspace(world));
    check_world_free(world);
    return keys;
}

struct check_whole
check_verify_journal(struct check *check, const char *path,
                     struct check_journal *journal, bool whole)
{
    struct check_whole state;
    struct check_snapshot base;
    char manifest[CHECK_PATH_MAX];
    uint64_t keys;

    if (check_file_join(check, path, MANIFEST_NAME, manifest)) {
        show_manifest(check, manifest, &journal->manifest);
    }
    tool_bar_begin(&check->tool, TOOL_UNIT_MIB, check_journal_bytes(journal));
    check_snapshot_look(check, journal->base_fd, whole, &base);
    check_chain_scan(check, journal, NULL, NULL);
    keys = base.keys;
    if (check->reads_only) {
        check->filters_unknown = true;
    } else if (whole && base.state == CHECK_STATE_INTACT &&
               journal->groups > 0 && journal->state <= CHECK_STATE_TORN) {
        keys = execute_journal(check, journal, &base);
    }
    tool_bar_end(&check->tool);
    check_snapshot_show(check, journal->base_path, &base);
    check_journal_show(check, journal);
    state = show_journal(check, journal, &base);
    state.keys = keys;
    return state;
}

static struct check_whole
verify_journal(struct check *check, const char *path, bool whole)
{
    struct check_whole state = { .state = CHECK_STATE_UNREADABLE };
    struct check_journal *journal = mem_zalloc(sizeof(*journal));
    char why[512] = "";

    switch (check_journal_open(check, path, journal, why, sizeof(why))) {
    case JOURNAL_FOUND:
        state = check_verify_journal(check, path, journal, whole);
        check_journal_close(journal);
        break;
    case JOURNAL_UNFINISHED:
        check_card_begin(check, path, "journal", CHECK_STATE_INTACT);
        check_card_format(check, "note", "the manifest: %s", why);
        check_card_end(check);
        state = (struct check_whole){ .unfinished = true };
        break;
    case JOURNAL_BROKEN:
        check_card_begin(check, path, "journal", CHECK_STATE_DAMAGED);
        check_card_format(check, "problem", "the manifest: %s", why);
        check_card_format(check, "remedy", "bloomery-check salvage %s OUT",
                          path);
        check_card_end(check);
        state.state = CHECK_STATE_DAMAGED;
        break;
    default:
        break;
    }
    mem_free(journal);
    return state;
}

bool
check_verify_takes_journal(const struct check_whole *snapshot,
                           const struct check_whole *journal)
{
    return journal->position >= snapshot->position;
}

/* Shows whether a start loads the snapshot or the journal. persist/recover.c
 * decides in the same way, and refuses a damaged journal. */
static void
show_data(struct check *check, const struct check_data *data,
          const struct check_whole *snapshot, const struct check_whole *journal)
{
    bool has_journal = data->journal[0] != '\0' && !journal->unfinished;
    bool has_snapshot = data->count > 0;
    enum check_state state = CHECK_STATE_INTACT;
    bool takes_journal =
        has_journal &&
        (!has_snapshot || check_verify_takes_journal(snapshot, journal));

    check->filters += takes_journal ? journal->keys : snapshot->keys;
    if (has_journal) {
        state = journal->state;
    }
    if (has_snapshot && snapshot->state > state) {
        state = snapshot->state;
    }
    check_card_begin(check, data->path, "data directory", state);
    if (!has_journal && !has_snapshot) {
        check_card_text(check, "note", "a start finds nothing to load");
    } else if (has_journal && journal->state > CHECK_STATE_TORN) {
        check_card_text(check, "note", "a start refuses the journal");
        if (journal->state == CHECK_STATE_DAMAGED) {
            check_card_format(check, "remedy", "bloomery-check salvage %s OUT",
                              data->path);
        }
    } else if ((!has_journal || journal->known) &&
               (!has_snapshot || snapshot->known)) {
        check_card_text(check, "newest",
                        takes_journal ? data->journal : data->snapshots[0]);
        check_card_number(check, "position",
                          takes_journal ? journal->position
                                        : snapshot->position);
        if (has_journal && !takes_journal) {
            check_card_text(check, "note",
                            "the snapshot stands further in the log than the "
                            "journal, which a start sets aside");
        }
    }
    check_card_end(check);
}

static void
verify_data(struct check *check, const char *path, bool whole)
{
    struct check_data *data = mem_zalloc(sizeof(*data));
    struct check_whole snapshot = { 0 };
    struct check_whole journal = { 0 };
    char inner[CHECK_PATH_MAX];

    if (check_file_list(check, path, data)) {
        for (size_t i = 0; i < data->count; i++) {
            if (check_file_join(check, path, data->snapshots[i], inner)) {
                snapshot = verify_snapshot(check, inner, whole);
            }
        }
        if (data->journal[0] != '\0' &&
            check_file_join(check, path, data->journal, inner)) {
            journal = verify_journal(check, inner, whole);
        }
        /* With several snapshots, only the server's options say which one it
         * loads. */
        if (data->count <= 1) {
            show_data(check, data, &snapshot, &journal);
        }
    }
    mem_free(data);
}

void
check_verify(struct check *check, const char *path, bool whole)
{
    enum check_kind kind;

    if (!check_file_kind(check, path, &kind)) {
        return;
    }
    switch (kind) {
    case CHECK_KIND_SNAPSHOT:
        check->filters += verify_snapshot(check, path, whole).keys;
        break;
    case CHECK_KIND_INCREMENT:
        verify_increment(check, path);
        break;
    case CHECK_KIND_MANIFEST:
        verify_manifest(check, path);
        break;
    case CHECK_KIND_JOURNAL:
        check->filters += verify_journal(check, path, whole).keys;
        break;
    case CHECK_KIND_DATA:
        verify_data(check, path, whole);
        break;
    default:
        check_card_begin(check, path, "unknown", CHECK_STATE_DAMAGED);
        check_card_text(check, "problem",
                        "neither its first bytes nor its name say what it is");
        check_card_end(check);
        break;
    }
}
