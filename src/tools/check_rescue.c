/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies filter by filter, so it needs the memory of the largest one.
 */
#include "tools/check_rescue.h"

#include "base/mem.h"
#include "persist/snapshot.h"

#include <errno.h>

struct rescue {
    struct check *check;
    struct snapshot_writer *writer;
    struct check_advance advance; /* of the writer */
    int error;
};

static bool
on_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct rescue *rescue = ctx;

    rescue->error = snapshot_add(rescue->writer, record, bloom);
    bloom_free(bloom, NULL);
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

bool
check_rescue(struct check_made *made, int fd,
             const struct check_snapshot *found, const char *to)
{
    struct rescue rescue = { .check = made->check,
                             .writer = snapshot_writer_new() };
    struct snapshot_stamp written = found->stamp;
    uint32_t databases = found->databases > 0 ? found->databases : 1;
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
    error = snapshot_begin(rescue.writer, &written, databases, out,
                           &rescue.advance.progress);
    if (error == 0) {
        error = copy_filters(&rescue, fd);
    }
    if (error == 0) {
        error = snapshot_end(rescue.writer, &written);
    }
    snapshot_writer_free(rescue.writer);
    if (error != 0) {
        tool_complain(&made->check->tool, CHECK_UNREADABLE,
                      "%s: cannot be written: %s", to, strerror(error));
    }
    return check_make_done(made, out, to) && error == 0;
}
