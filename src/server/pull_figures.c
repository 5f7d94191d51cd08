/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What pulls have done so far, for INFO and for their owners.
 */
#include "server/pull.h"
#include "server/pull_state.h"
#include "server/server_state.h"

const char *
pull_state_name(enum pull_state state)
{
    static const char *const names[] = { "queued", "connects", "loads",
                                         "adopts", "follows",  "settles" };

    return names[state];
}

static enum pull_state
state_of(const struct pulls *pulls)
{
    if (pulls->follows && replica_is_connected(pulls->replica)) {
        return pulls->durable_at > 0 ? PULL_SETTLES : PULL_FOLLOWS;
    }
    if (pulls->adoption != NULL) {
        return PULL_ADOPTS;
    }
    return pulls->transfer != NULL ? PULL_LOADS : PULL_CONNECTS;
}

static void
describe_first(const struct pulls *pulls, struct pull_progress *progress)
{
    struct status_figures figures = { .link = STATUS_NO_LINK };

    replica_describe(pulls->replica, &figures);
    progress->state = state_of(pulls);
    progress->age_ms = replication_now_ms() - pulls->began_ms;
    progress->keys = pulls->keys;
    progress->bytes = pulls->bytes;
    progress->attempts = pulls->attempts;
    memcpy(progress->reason, figures.reason, sizeof(progress->reason));
    if (pulls->follows) {
        memcpy(progress->history, pulls->arriving.history,
               sizeof(progress->history));
        progress->position = pulls->position;
        progress->lag_bytes = replica_unread(pulls->replica);
        progress->lag_ms = pulls->lag_ms;
    }
}

size_t
pull_list(const struct server *server, struct pull_progress *ret_list,
          size_t max)
{
    const struct pulls *pulls = server->replication->pulls;
    size_t count = 0;

    for (const struct pull *pull = pulls->first; pull != NULL;
         pull = pull->next) {
        if (count < max) {
            struct pull_progress *progress = &ret_list[count];

            *progress = (struct pull_progress){ .id = pull->id,
                                                .state = PULL_QUEUED,
                                                .slots = pull->slots,
                                                .port = pull->port,
                                                .ahead = pull->ahead,
                                                .claimed = pull->claim.runs };
            memcpy(progress->host, pull->host, sizeof(progress->host));
            if (count == 0 && pulls->runs) {
                describe_first(pulls, progress);
            }
        }
        count++;
    }
    return count;
}
