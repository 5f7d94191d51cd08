/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots without data are told at a change and each minute, and their return
 * once.
 */
#include "sidecar/sidecar_report.h"

#include "../capture.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/view.h"

enum { MINUTE_MS = 60 * 1000 };

/* Looks, and expects a line with this text; "": none. */
static void
look(struct sidecar_report *report, struct cluster_view *view, unsigned missing,
     unsigned silent, uint64_t now_ms, const char *wanted)
{
    struct capture output;

    view->count[SLOT_MISSING] = missing;
    view->silent = silent;
    capture_begin(&output, STDERR_FILENO);
    sidecar_report_look(report, view, now_ms);
    (void)capture_end(&output);
    if (wanted[0] == '\0') {
        assert_string_equal("", output.text);
    }
    assert_contains(output.text, wanted);
}

static struct cluster_view *
view_of(unsigned owned)
{
    struct cluster_view *view = mem_zalloc(sizeof(*view));

    view->topology = mem_zalloc(sizeof(*view->topology));
    view->owned = owned;
    log_set_level(LOG_INFO);
    return view;
}

static void
view_drop(struct cluster_view *view)
{
    mem_free(view->topology);
    mem_free(view);
}

TEST(changes_are_told_and_then_each_minute)
{
    struct sidecar_report report = { .missing = 0 };
    struct cluster_view *view = view_of(100);

    look(&report, view, 0, 0, 1000, "");
    look(&report, view, 7, 0, 1999, ""); /* too soon: perhaps a start */
    look(&report, view, 7, 0, 2000, "slots=7 of=100 silent_servers=0");
    look(&report, view, 7, 0, 2000 + MINUTE_MS - 1, "");
    look(&report, view, 7, 0, 2000 + MINUTE_MS, "slots=7");
    look(&report, view, 8, 0, 2000 + MINUTE_MS + 999, "");
    look(&report, view, 8, 0, 2000 + MINUTE_MS + 1000, "slots=8");
    look(&report, view, 0, 0, 70000, "all slots have their data again");
    look(&report, view, 0, 0, 70000 + MINUTE_MS, "");
    view_drop(view);
}

TEST(the_help_is_the_one_that_fits)
{
    struct sidecar_report report = { .missing = 0 };
    struct cluster_view *view = view_of(100);

    look(&report, view, 1, 0, 5000, "bring the server back that had the data");
    look(&report, view, 1, 2, 10000, "start the silent servers");
    view->fallen = 1;
    look(&report, view, 2, 2, 20000, "CLUSTER BUMPEPOCH at the node");
    view_drop(view);
}

TEST(before_the_first_view_there_is_nothing_to_tell)
{
    struct sidecar_report report = { .missing = 3 };
    struct capture output;

    log_set_level(LOG_INFO);
    capture_begin(&output, STDERR_FILENO);
    sidecar_report_look(&report, NULL, 5000);
    assert_contains(capture_end(&output), "all slots have their data again");
    assert_int_equal(0, report.missing);
    EXPECT_OUTPUT(STDERR_FILENO, sidecar_report_look(&report, NULL, 9000), "");
}
