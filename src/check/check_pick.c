/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/check_pick.h"

#include "base/file.h"
#include "base/mem.h"
#include "check/check_chain.h"
#include "check/check_snapshot.h"

#include <stdio.h>

/* Finds where a journal ends in the log. An unfinished one does not count. */
static bool
find_journal(struct check *check, const char *path, bool *ret_counts,
             uint64_t *ret_position)
{
    struct check_journal *journal = mem_zalloc(sizeof(*journal));
    char why[512] = "";
    bool ok = true;

    *ret_counts = false;
    switch (check_journal_open(check, path, journal, why, sizeof(why))) {
    case JOURNAL_FOUND:
        check_chain_scan(check, journal, NULL, NULL);
        *ret_counts = true;
        *ret_position = journal->position;
        check_journal_close(journal);
        break;
    case JOURNAL_UNFINISHED:
        break;
    default:
        tool_complain(&check->tool, CHECK_USAGE,
                      "%s: nobody knows how new it is (%s): name the snapshot "
                      "or the journal",
                      path, why);
        ok = false;
    }
    mem_free(journal);
    return ok;
}

static bool
find_snapshot(struct check *check, const char *path, uint64_t *ret_position)
{
    struct check_snapshot snapshot;
    int fd = -1;

    if (!check_file_open(check, path, &fd)) {
        return false;
    }
    check_snapshot_look(check, fd, false, &snapshot);
    file_close(fd);
    if (!snapshot.has_stamp) {
        tool_complain(&check->tool, CHECK_USAGE,
                      "%s: is damaged, so nobody knows how new it is: name the "
                      "snapshot or the journal",
                      path);
        return false;
    }
    *ret_position = snapshot.stamp.position;
    return true;
}

/* At equal positions a start loads the journal (persist/recover.h). */
static bool
pick_newer(struct check *check, const struct check_data *data,
           enum check_kind *ret_kind, char *ret_path)
{
    char snapshot[CHECK_PATH_MAX];
    uint64_t journal_at = 0;
    uint64_t snapshot_at = 0;
    bool counts = false;

    if (!check_file_join(check, data->path, data->journal, ret_path) ||
        !check_file_join(check, data->path, data->snapshots[0], snapshot) ||
        !find_journal(check, ret_path, &counts, &journal_at) ||
        !find_snapshot(check, snapshot, &snapshot_at)) {
        return false;
    }
    *ret_kind = CHECK_KIND_JOURNAL;
    if (!counts || snapshot_at > journal_at) {
        *ret_kind = CHECK_KIND_SNAPSHOT;
        memcpy(ret_path, snapshot, sizeof(snapshot));
    }
    tool_complain(&check->tool, 0,
                  "%s: has a snapshot and a journal; reading the newer one, "
                  "the %s",
                  data->path,
                  *ret_kind == CHECK_KIND_JOURNAL ? "journal" : "snapshot");
    return true;
}

static bool
pick_of_data(struct check *check, const struct check_data *data,
             enum check_kind *ret_kind, char *ret_path)
{
    bool has_journal = data->journal[0] != '\0';

    if (data->count > 1) {
        tool_complain(&check->tool, CHECK_USAGE,
                      "%s: holds several snapshots: name one, or the journal",
                      data->path);
        return false;
    }
    if (has_journal && data->count > 0) {
        return pick_newer(check, data, ret_kind, ret_path);
    }
    *ret_kind = has_journal ? CHECK_KIND_JOURNAL : CHECK_KIND_SNAPSHOT;
    return check_file_join(check, data->path,
                           has_journal ? data->journal : data->snapshots[0],
                           ret_path);
}

bool
check_pick_state(struct check *check, const char *path,
                 enum check_kind *ret_kind, char *ret_path)
{
    struct check_data *data;
    bool ok;

    if (!check_file_kind(check, path, ret_kind)) {
        return false;
    }
    if (*ret_kind == CHECK_KIND_UNKNOWN || *ret_kind == CHECK_KIND_MANIFEST) {
        tool_complain(&check->tool, CHECK_USAGE,
                      "%s: is no snapshot and no journal; its directory may "
                      "be one",
                      path);
        return false;
    }
    if (*ret_kind != CHECK_KIND_DATA) {
        (void)snprintf(ret_path, CHECK_PATH_MAX, "%s", path);
        return true;
    }
    data = mem_zalloc(sizeof(*data));
    ok = check_file_list(check, path, data) &&
         pick_of_data(check, data, ret_kind, ret_path);
    mem_free(data);
    return ok;
}
