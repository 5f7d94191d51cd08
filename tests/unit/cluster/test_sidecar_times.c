/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/sidecar_times.h"

#include "../test.h"

static struct sidecar_options
usual(void)
{
    return sidecar_times_of(LEASE_MAX_MS, false, 0);
}

/* sidecar-lease-ms may be set to any. */
TEST(the_times_are_good_with_a_lease_of_any_length)
{
    for (uint64_t lease_ms = 0; lease_ms <= 3600000; lease_ms += 100) {
        for (int safe = 0; safe < 2; safe++) {
            const struct sidecar_options options =
                sidecar_times_of(lease_ms, safe != 0, 15000);

            assert_true(sidecar_times_are_good(&options));
        }
    }
}

TEST(a_time_that_is_shorter_than_what_it_waits_for_is_not)
{
    struct sidecar_options options[] = { usual(), usual(), usual(),
                                         usual(), usual(), usual() };

    options[0].silence_ms = LEASE_MAX_MS - 1; /* the lease may go on */
    options[1].await_ms = LEASE_MAX_MS / 2;   /* it is served yet */
    options[2].giving_ms = SURVEY_SOON_MS + 2 * SIDECAR_ANSWER_MS;
    options[3].fence_ms = SIDECAR_GIVING_MS;
    options[4].forget_ms = COPY_ASK_MS + SIDECAR_ANSWER_MS;
    options[5].empty_ms = SURVEY_SOON_MS;
    for (int i = 0; i < 6; i++) {
        assert_false(sidecar_times_are_good(&options[i]));
    }
}
