/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums over the slots of measure/stats. A command that was never used has no
 * line.
 */
#include "info/info_commands.h"

#include "base/num.h"
#include "engine/dialect.h"

#include <inttypes.h>

void
info_commands_write(const struct service *service, struct buf *text)
{
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        struct stats_sum sum = stats_sum_command(service->stats, id);
        double usec = (double)sum.ns / 1000;

        if (sum.calls == 0 && sum.rejected == 0 && sum.failed == 0) {
            continue;
        }
        buf_printf(text,
                   "cmdstat_%s:calls=%" PRIu64 ",usec=%" PRIu64
                   ",usec_per_call=%.2f,rejected_calls=%" PRIu64
                   ",failed_calls=%" PRIu64 "\r\n",
                   dialect_command_name(service, command_at(id)), sum.calls,
                   sum.ns / 1000, sum.calls > 0 ? usec / (double)sum.calls : 0,
                   sum.rejected, sum.failed);
    }
}

/* Errors are counted by their first word, which is how clients tell them apart.
 */
void
info_commands_each_error(const struct service *service, info_error_fn visit,
                         void *ctx)
{
    for (unsigned i = 1; i < ERR_COUNT; i++) {
        const char *prefix = err_prefix((enum err)i);
        uint64_t sum = 0;
        bool seen = prefix[0] == '\0';

        for (unsigned j = 1; j < i && !seen; j++) {
            seen = strcmp(err_prefix((enum err)j), prefix) == 0;
        }
        for (unsigned j = i; j < ERR_COUNT && !seen; j++) {
            if (strcmp(err_prefix((enum err)j), prefix) == 0) {
                sum += stats_sum_error(service->stats, (enum err)j);
            }
        }
        if (sum > 0) {
            visit(ctx, prefix, sum);
        }
    }
}

static void
put_error(void *ctx, const char *prefix, uint64_t count)
{
    buf_printf(ctx, "errorstat_%s:count=%" PRIu64 "\r\n", prefix, count);
}

void
info_commands_write_errors(const struct service *service, struct buf *text)
{
    info_commands_each_error(service, put_error, text);
}

/* Shows the percentiles of the option latency-tracking-info-percentiles. */
void
info_commands_write_latency(const struct service *service, struct buf *text)
{
    const struct conf_percentiles *wanted =
        &service->conf->latency_tracking_info_percentiles;
    struct stats_histogram histogram;

    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        if (!stats_sum_spread(service->stats, id, &histogram)) {
            continue;
        }
        buf_printf(text, "latency_percentiles_usec_%s:",
                   dialect_command_name(service, command_at(id)));
        for (size_t i = 0; i < wanted->count; i++) {
            char percent[NUM_DOUBLE_MAX];
            size_t len = num_format_double(wanted->value[i], percent);
            uint64_t ns = stats_percentile_ns(&histogram, wanted->value[i]);

            buf_printf(text, "%sp%.*s=%.3f", i > 0 ? "," : "", (int)len,
                       percent, (double)ns / 1000);
        }
        buf_append(text, "\r\n", 2);
    }
}
