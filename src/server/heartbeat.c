/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loops answer the mails of one beat until the next one. A loop that hangs
 * is noticed within two beats. The watchdog waits for two beats since it was
 * last fed, so it acts one beat after that.
 */
#include "server/heartbeat.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "base/systemd.h"
#include "server/server_state.h"

/* Answers a mail, on the loop. */
static void
on_mail(struct loop *loop, void *ptr, uint64_t number)
{
    _Atomic uint64_t *answered = ptr;

    (void)loop;
    atomic_store(answered, number);
}

/* Returns the index of a loop that has not answered, 0 if all have. */
static unsigned
find_silent(const struct server *server)
{
    const struct heartbeat *beat = &server->heartbeat;

    for (unsigned i = 1; i < server->threads; i++) {
        if (atomic_load(&beat->answered[i]) != beat->asked) {
            return i;
        }
    }
    return 0;
}

/* Sends a mail to each loop. If a mailbox is full, its loop hangs, and stays
 * silent. */
static void
ask_loops(struct server *server)
{
    struct heartbeat *beat = &server->heartbeat;

    beat->asked++;
    for (unsigned i = 1; i < server->threads; i++) {
        (void)!mailbox_post(&server->loops[i].mailbox, on_mail,
                            &beat->answered[i], beat->asked);
    }
}

/* Returns whether this beat comes so late that loop 0, perhaps with the whole
 * process, stood still: nobody could answer. */
static bool
is_late(struct heartbeat *beat)
{
    uint64_t now_ns = clock_mono_ns();
    uint64_t passed_ns = now_ns - beat->beat_ns;

    beat->beat_ns = now_ns;
    return passed_ns >
           systemd_watchdog_interval_ms() * 1000000 + RUN_CLOCK_STEP_NS;
}

static void
on_beat(uv_timer_t *timer)
{
    struct server *server = timer->data;
    unsigned silent = find_silent(server);
    bool journal = journal_answers(persist_journal(server->persist));

    if (is_late(&server->heartbeat) || (silent == 0 && journal)) {
        (void)systemd_notify("WATCHDOG=1");
    } else {
        log_error("server", "did not feed the watchdog",
                  "reason=\"%s gives no sign of life\" loop=%u",
                  silent > 0 ? "an event loop" : "a thread of the journal",
                  silent);
    }
    ask_loops(server);
}

void
heartbeat_init(struct server *server)
{
    server->heartbeat.answered =
        mem_zalloc(server->threads * sizeof(*server->heartbeat.answered));
}

void
heartbeat_start(struct server *server)
{
    uv_timer_t *timer = &server->heartbeat.timer;
    uint64_t every_ms = systemd_watchdog_interval_ms();

    CHECK(uv_timer_init(&server->loops[0].uv, timer) == 0);
    timer->data = server;
    if (every_ms == 0) {
        return;
    }
    (void)systemd_notify("WATCHDOG=1");
    (void)journal_answers(persist_journal(server->persist));
    ask_loops(server);
    server->heartbeat.beat_ns = clock_mono_ns();
    CHECK(uv_timer_start(timer, on_beat, every_ms, every_ms) == 0);
}

void
heartbeat_fini(struct server *server)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): no thread is left */
    mem_free((void *)(uintptr_t)server->heartbeat.answered);
    server->heartbeat.answered = NULL;
}
