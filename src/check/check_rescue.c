/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies filter by filter, so it needs the memory of the largest one. Only a
 * snapshot that was written while clients went on is first loaded as a whole.
 */
#include "check/check_rescue.h"

#include "base/mem.h"
#include "check/check_world.h"
#include "core/bloom.h"
#include "snapshot/snapshot_whole.h"

#include <errno.h>

struct rescue {
    struct check *check;
    struct snapshot_writer *writer;
    struct check_advance advance; /* progress of the writer */
    uint64_t position;
    int error;
};

static bool
on_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct rescue *rescue = ctx;
    struct snapshot_record copy = *record;

    copy.copied_at = rescue->position;
    rescue->error = snapshot_add(rescue->writer, &copy, bloom);
    bloom_fini(bloom, NULL);
    check_snapshot_advance(rescue->check, &rescue->advance);
    return rescue->error == 0;
}

/* Returns 0 or errno. */
static int
copy_filters(struct rescue *rescue, int fd)
{
    struct snapshot_visitor visitor = { .filter = on_filter,
                                        .passed_over = check_snapshot_leave_out,
                                        .ctx = rescue };
    struct snapshot_error error = { 0 };
    enum snapshot_status status =
        snapshot_read(fd, NULL, &visitor, NULL, &error);

    if (status == SNAPSHOT_OK || status == SNAPSHOT_STOPPED) {
        return rescue->error;
    }
    return error.error != 0           ? error.error
           : status == SNAPSHOT_NOMEM ? ENOMEM
                                      : EBADMSG;
}

/* Writes filters one by one. */
static int
rescue_filters(struct rescue *rescue, int fd,
               const struct check_snapshot *found,
               const struct snapshot_stamp *written, int out)
{
    uint32_t databases = found->databases > 0 ? found->databases : 1;
    int error = snapshot_begin(rescue->writer, written, databases, out,
                               &rescue->advance.progress);

    if (error == 0) {
        error = copy_filters(rescue, fd);
    }
    return error == 0 ? snapshot_end(rescue->writer, written) : error;
}

/* Loads the snapshot and writes the result. The load completes the filters with
 * the effects that the file still has. */
static int
rescue_world(struct rescue *rescue, int fd, struct check_snapshot *found,
             const struct snapshot_stamp *written, int out)
{
    struct check_world *world = check_world_new();
    char why[512] = "";
    int error = EBADMSG;

    if (check_world_load(world, fd, true, why, sizeof(why))) {
        found->keys = keyspace_count_keys(check_world_keyspace(world));
        if (check_world_left_out(world) > 0) {
            tool_complain(&rescue->check->tool, CHECK_DAMAGED,
                          "%llu deleted items of deletable filters may still "
                          "be found, since their adds may be lost",
                          (unsigned long long)check_world_left_out(world));
        }
        error = snapshot_write(rescue->writer, check_world_keyspace(world),
                               written, out, &rescue->advance.progress);
    }
    check_world_free(world);
    return error;
}

bool
check_rescue(struct check_made *made, int fd, struct check_snapshot *found,
             const char *to)
{
    struct rescue rescue = { .check = made->check,
                             .writer = snapshot_writer_new(),
                             .position = found->stamp.position };
    struct snapshot_stamp written = found->stamp;
    int out;
    int error;

    CHECK(rescue.writer != NULL);
    if (!check_make_file(made, to, &out)) {
        snapshot_writer_free(rescue.writer);
        return false;
    }
    written.keys = found->keys;
    /* The copy may differ from what its history has at this position. Without
     * an id, no replica continues from it. */
    memset(written.history, '0', SNAPSHOT_HISTORY_BYTES);
    error = check_snapshot_is_walked(found)
                ? rescue_world(&rescue, fd, found, &written, out)
                : rescue_filters(&rescue, fd, found, &written, out);
    snapshot_writer_free(rescue.writer);
    if (error != 0) {
        tool_complain(&made->check->tool, CHECK_UNREADABLE,
                      "%s: cannot be written: %s", to, strerror(error));
    }
    return check_make_done(made, out, to) && error == 0;
}
