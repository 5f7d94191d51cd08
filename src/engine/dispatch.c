/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All commands go the same way. Dispatch gathers a run from the batch, checks
 * the request (admit_request), enters the gate and asks for admission
 * (admit_now). It reserves space for the effects and locks the stripes. The
 * row's functions execute the run. Dispatch hands over the effects and notices,
 * unlocks the stripes and leaves the gate. Commands that MULTI queues stop
 * after admission; commands with LOCK_SELF, such as EXEC, take their locks
 * themselves. The clock is read once a batch, and whenever runs are counted.
 */
#include "engine/dispatch.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/longest.h"
#include "base/mem.h"
#include "engine/admit.h"
#include "engine/effect.h"
#include "engine/execute.h"
#include "engine/lock_set.h"
#include "engine/observe.h"
#include "engine/refusal.h"
#include "engine/rights.h"
#include "engine/route.h"
#include "engine/run.h"
#include "engine/txn.h"
#include "engine/window.h"
#include "net/loop.h"
#include "net/pending.h"
#include "push/tracking.h"

enum { MANY_WORDS = 1024 };

struct worker *
dispatch_new_worker(struct service *service, unsigned index)
{
    struct worker *worker = mem_zalloc(sizeof(*worker));

    worker->service = service;
    worker->index = index;
    worker->stats = stats_slot(service->stats, index);
    worker->request = mem_zalloc(sizeof(*worker->request));
    worker->window = mem_alloc(sizeof(*worker->window));
    worker->request->worker = worker;
    worker->request->service = service;
    worker->request->keyspace = service->keyspace;
    return worker;
}

void
dispatch_free_worker(struct worker *worker)
{
    if (worker != NULL) {
        buf_free(&worker->arena);
        stage_fini(&worker->stage);
        notice_list_fini(&worker->notices);
        mem_free(worker->request);
        mem_free(worker->window);
        mem_free(worker);
    }
}

/* ---- a window, its locks held ------------------------------------------- */

/* Executes a run, or only its beginning: lowers run->count to what was done. A
 * single command goes to the handler, which is faster. ERR_AGAIN: paused. */
static enum err
run_locked(struct request *req, struct run *run)
{
    uint32_t done = run->many && run->count > 1
                        ? run->command->many(req, run->argv, run->count)
                        : 0;
    enum err err = OK;

    if (done > 0) {
        observe_read(req);
    } else {
        err = execute_locked(req);
        done = 1;
    }
    if (run->count > 1) {
        run_note_change(req, run, req->dirty > 0);
    }
    run->count = done;
    return err;
}

/* Returns whether a window continues after a run that had `count` commands
 * before it was executed. Counts the runs that are not counted yet if the next
 * run has another row, if they may have taken long, or if they are many.
 */
static bool
goes_on(struct request *req, struct window *window, uint32_t done,
        uint32_t count)
{
    enum { TOGETHER = 8, HOLD_NS = 100 * 1000 };
    struct worker *worker = req->worker;
    struct longest_span held = worker->held;

    if (done == window->count || window->run[done - 1].count < count ||
        req->reply->buf->len >= LOOP_FLUSH_BYTES) {
        return false;
    }
    if (req->dirty > 0 || done - window->counted == TOGETHER ||
        window->run[done].command != req->command) {
        execute_count(req, &window->run[window->counted],
                      done - window->counted);
        window->counted = done;
        if (worker->now_ns - held.since_ns >= HOLD_NS && !worker->alone) {
            return false;
        }
        worker->held = held;
    }
    return true;
}

/* Executes the runs of a window, in order, until goes_on() ends it. */
__attribute__((noinline)) static void
run_several(struct request *req, struct window *window)
{
    uint32_t done = 0;
    uint32_t count;

    ahead_fetch(&window->ahead, req->keyspace);
    do {
        struct run *run = &window->run[done];

        execute_prepare(req, run, 0);
        req->key = window->ahead.key[done];
        count = run->count;
        CHECK(run_locked(req, run) != ERR_AGAIN);
        done++;
    } while (goes_on(req, window, done, count));
    req->key.seen = 0; /* the locks end here: the entry may change */
    window->count = done;
}

static enum err
lock_and_run(struct request *req, struct window *window,
             const struct lock_set *locks)
{
    struct worker *worker = req->worker;
    enum err err = OK;

    lock_set_lock(locks, worker);
    if (window->count > 1) {
        run_several(req, window);
    } else {
        err = run_locked(req, window->run);
    }
    effect_close_run(worker, locks, &window->run[window->count - 1]);
    observe_close(worker);
    lock_set_unlock(locks, worker);
    return err;
}

/* Answers a run of writes under the shared lock, if all of it changes nothing.
 * False: nothing was done. */
static bool
run_unchanged(struct request *req, struct run *run, struct lock_set *locks)
{
    struct worker *worker = req->worker;
    uint32_t known;

    locks->exclusive = false;
    lock_set_lock(locks, worker);
    known = run->command->known(req, run->argv, run->count);
    if (known > 0) {
        observe_read(req);
        effect_close(worker, locks, false, NULL);
        observe_close(worker);
    } else {
        run_note_change(req, run, true);
    }
    lock_set_unlock(locks, worker);
    locks->exclusive = true;
    if (known > 0) {
        run->count = known;
    }
    return known > 0;
}

/* ---- the way through ----------------------------------------------------- */

enum outcome {
    ADMITTED, /* for the caller to queue or to run */
    ANSWERED, /* refused or queued: there is nothing to count */
    RAN,
    PAUSED
};

/* Does the long part of a command before its locks are taken. False: it has
 * paused. */
static bool
prepare(struct request *req)
{
    command_prepare_fn prepare_fn = req->command->prepare;

    return prepare_fn == NULL || req->obey || !request_may_pause(req) ||
           prepare_fn(req);
}

/* Finds the key and the locks of a run. */
static inline void
find_locks(const struct request *req, const struct run *run,
           struct key *ret_key, struct lock_set *locks)
{
    const struct command *command = run->command;
    struct slice name;

    if (command->keys.first > 0 && run->argc > 1) {
        name = run->argv[command->keys.first];
        *ret_key = key_named(name, req->session->db);
    }
    if (command->keys.first == 1 && command->keys.last == 1 &&
        command->lock == LOCK_KEYS) { /* the key is hashed already */
        locks->exclusive |= (command->flags & CMD_WRITE) != 0;
        lock_set_add_stripe(locks, keyspace_stripe_of(ret_key->hash));
    } else {
        lock_set_add(locks, command, run->argv, run->argc);
    }
}

/* Finds the keys and the locks of a window. */
__attribute__((noinline)) static void
find_all_locks(struct request *req, struct window *window,
               struct lock_set *locks)
{
    struct ahead *ahead = &window->ahead;

    for (uint32_t i = 0; i < window->count; i++) {
        find_locks(req, &window->run[i], &ahead->key[i], locks);
        keyspace_prefetch_stripe(req->keyspace, ahead->key[i].hash);
        ahead->run[i] = &window->run[i];
    }
    ahead->count = window->count;
    req->key = ahead->key[0]; /* the window may end behind its first run */
}

/* Does what can be done before the lock, so that other loops wait for it less
 * long. */
static void
make_ready(struct request *req, const struct run *run)
{
    command_ready_fn ready = run->command->ready;

    if (ready != NULL && !req->worker->alone &&
        keyspace_is_shared(req->keyspace)) {
        ready(req, run->argv, run->count);
    }
}

/* Executes an admitted window. ERR_AGAIN: it has paused. Another error: the
 * caller refuses the first command with it. */
static enum err
run_admitted(struct request *req, struct window *window, struct lock_set *locks)
{
    struct run *run = window->run;
    enum err err = OK;

    if (!prepare(req)) {
        return ERR_AGAIN;
    }
    if (window->count > 1) {
        window_admit(req, window);
    }
    if (run->count > 1 && window->count == 1 && run_changes_nothing(req, run) &&
        run_unchanged(req, run, locks)) {
        return OK;
    }
    if (locks->exclusive || (run->command->flags & CMD_WRITE) != 0) {
        err = effect_open_runs(req->worker, run, window->count);
    }
    if (err == OK && run->count > 1 && window->count == 1) {
        make_ready(req, run);
    }
    if (err == OK && lock_and_run(req, window, locks) == ERR_AGAIN) {
        err = ERR_AGAIN;
    }
    return err;
}

/* Refuses the first command of a window. If its slot is the reason, refuses all
 * commands of the first run, since they have the same key. */
static void
refuse_first(struct request *req, struct window *window, enum err err)
{
    window->count = 1;
    if (route_is_refusal(err)) {
        req->worker->runs_routed = 1;
    } else {
        window->run[0].count = 1;
    }
    for (uint32_t i = 0; i < window->run[0].count; i++) {
        execute_refuse(req, err);
    }
}

/* Enters the gate, and executes the window or refuses its first command. A
 * command that is to be queued, or has LOCK_SELF, is only admitted. */
static enum outcome
enter(struct request *req, struct window *window, bool queues)
{
    struct worker *worker = req->worker;
    bool runs = !queues && req->command->lock != LOCK_SELF;
    struct lock_set locks;
    enum err err;

    lock_set_init(&locks);
    if (window->count > 1) {
        find_all_locks(req, window, &locks);
    } else if (runs) {
        find_locks(req, window->run, &req->key, &locks);
    } else {
        req->key.name.data = NULL; /* tells route.c that no key is hashed */
    }
    lock_set_enter(&locks, worker);
    err = admit_now(req);
    if (err == OK && runs) {
        err = run_admitted(req, window, &locks);
    }
    lock_set_leave(&locks, worker);
    if (__builtin_expect(err == OK, 1)) {
        return runs ? RAN : ADMITTED;
    }
    if (err == ERR_AGAIN) {
        return PAUSED;
    }
    refuse_first(req, window, err);
    return ANSWERED;
}

/* ---- many names ---------------------------------------------------------- */

/* A command that counts its names one by one, and has so many that their
 * stripes would be locked for too long, is executed as several commands of
 * fewer names, each with its own effect. This is its state between two of them,
 * while other connections have their turn. */
struct splitting {
    size_t at;       /* argv position of the next name */
    uint64_t rights; /* the rights with which all names were checked */
    int64_t counted;
};

enum { NAMES_AT_ONCE = 1000 };

static bool
is_split(const struct request *req, bool queues)
{
    return req->command->splits && req->argc > NAMES_AT_ONCE + 1 && !queues &&
           !req->obey;
}

/* Executes the names from splitting->at on, as many as fit into argv. */
static enum outcome
run_piece(struct request *req, struct splitting *splitting, struct slice *argv)
{
    size_t left = req->argc - splitting->at;
    size_t count = left < NAMES_AT_ONCE ? left : NAMES_AT_ONCE;
    struct window *window = req->worker->window;
    struct run whole = window->run[0];
    const struct slice *all = req->argv;
    size_t argc = req->argc;
    bool in_place = req->worker->in_place;
    enum outcome outcome;

    argv[0] = all[0];
    memcpy(argv + 1, all + splitting->at, count * sizeof(*argv));
    window->run[0] = run_of(req->command, 1, argv, count + 1);
    execute_prepare(req, window->run, 0);
    req->counted = splitting->counted;
    req->rights = splitting->rights;
    req->worker->in_place = false; /* argv is no command of the batch */
    outcome = enter(req, window, false);
    req->worker->in_place = in_place;
    window->run[0] = whole;
    req->argv = all;
    req->argc = argc;
    if (outcome == RAN) {
        splitting->at += count;
        splitting->counted = req->counted;
    }
    return outcome;
}

/* Checks the names of all pieces before the first one is executed, and again if
 * the rules have changed since. */
static enum err
check_all_names(struct request *req, uint64_t *ret_rights)
{
    struct lock_set none;
    enum err err = OK;

    req->key.name.data = NULL; /* as in enter() */
    lock_set_init(&none);
    lock_set_enter(&none, req->worker);
    if (rights_are_limited(req->session)) {
        err = rights_check(req);
    }
    if (err == OK && route_is_on(req)) {
        err = route_check(req);
    }
    *ret_rights = rights_now(req->session);
    lock_set_leave(&none, req->worker);
    return err;
}

/* Makes the state of a split command. NULL without memory. */
static struct splitting *
begin_splitting(struct request *req, uint64_t rights)
{
    struct splitting *splitting = mem_try_zalloc(sizeof(*splitting));

    if (splitting != NULL) {
        splitting->at = 1;
        splitting->rights = rights;
        request_pause(req, splitting, mem_free);
    }
    return splitting;
}

/* Executes one piece of a split command. Other connections then have a turn. */
static enum outcome
run_split(struct request *req)
{
    struct splitting *splitting = request_resumed(req);
    struct buf *out = req->reply->buf;
    size_t mark = out->len;
    uint64_t rights = rights_now(req->session);
    bool checked = splitting != NULL && splitting->rights == rights;
    enum outcome outcome;
    enum err err = checked ? OK : check_all_names(req, &rights);
    struct slice *argv;

    if (err == ERR_AGAIN) {
        return PAUSED;
    }
    argv = mem_try_alloc((NAMES_AT_ONCE + 1) * sizeof(*argv));
    if (argv != NULL && splitting == NULL && err == OK) {
        splitting = begin_splitting(req, rights);
    }
    if (err != OK || argv == NULL || splitting == NULL) {
        mem_free(argv);
        execute_refuse(req, err != OK ? err : ERR_NOMEM);
        return ANSWERED;
    }
    splitting->rights = rights;
    outcome = run_piece(req, splitting, argv);
    mem_free(argv);
    if (outcome == RAN && splitting->at < req->argc) {
        out->len = mark; /* only the last count is the reply */
        return PAUSED;
    }
    return outcome;
}

/* ---- one window --------------------------------------------------------- */

/* Sends the replies gathered so far before a command that may be slow. */
static void
flush_before_slow(const struct request *req)
{
    struct loop *loop = req->worker->loop;
    bool may_be_slow =
        (req->command->flags & CMD_FAST) == 0 || req->argc > MANY_WORDS;

    if (may_be_slow && loop != NULL) {
        pending_flush(loop);
    }
}

/* Queues a checked run, or executes it with its window. */
static enum outcome
queue_or_run(struct request *req, struct window *window)
{
    bool queues;
    enum outcome outcome;
    enum err err;

    CHECK(req->command != NULL); /* admit_request has refused others */
    queues = txn_takes(req->session, req->command);
    if (!queues) {
        flush_before_slow(req);
    }
    outcome =
        is_split(req, queues) ? run_split(req) : enter(req, window, queues);
    if (outcome != ADMITTED) {
        return outcome;
    }
    if (!queues) { /* LOCK_SELF, such as EXEC */
        return execute_locked(req) == ERR_AGAIN ? PAUSED : RAN;
    }
    err = txn_queue(req);
    if (err != OK) {
        execute_refuse(req, err);
    }
    return ANSWERED;
}

/* Frees the state that a command kept between its parts, now that the command
 * has ended. It may have ended by a refusal between two parts. */
static void
end_again(struct session *session)
{
    session->worked_ns = 0;
    if (session->again != NULL) {
        session->again_free(session->again);
        session->again = NULL;
        session->again_bytes = 0;
        atomic_store(&session->blocked, SESSION_RUNS);
    }
}

/* Checks the first run of a window, as window_gather has checked the others,
 * then queues or executes the window. False: a command has paused. Runs that
 * run_gather has grouped (run->many) need no check of the request. */
static bool
execute_window(struct request *req, struct window *window)
{
    struct worker *worker = req->worker;
    const struct run *run = window->run;
    enum outcome outcome = ANSWERED;
    enum err err = run->many ? OK : admit_request(req, run->words);

    if (req->command != NULL) {
        atomic_store_explicit(&req->session->last_command,
                              command_id(req->command) + 1,
                              memory_order_relaxed);
    }
    if (err != OK) {
        window->count = 1;
        execute_refuse(req, err);
    } else {
        outcome = queue_or_run(req, window);
    }
    observe_close(worker); /* for commands that took no lock, and for EXEC */
    observe_wake(worker);
    if (outcome == PAUSED) {
        execute_count_part(req);
        return false;
    }
    if (outcome == RAN && window->counted < window->count) {
        execute_count(req, run + window->counted,
                      window->count - window->counted);
    }
    if (__builtin_expect(req->session->rights != NULL, 0)) {
        rights_forget(req->session);
    }
    if (!window_is_many(window)) {
        worker->ran_one = true;
        observe_command_ends(req);
        end_again(req->session);
        if (__builtin_expect(req->session->asking, 0)) {
            route_command_ends(req);
        }
    }
    return true;
}

/* ---- a batch ------------------------------------------------------------- */

/* Drops the reply of a command if CLIENT REPLY asked for that. */
static void
apply_reply_mode(struct worker *worker, struct buf *out, size_t mark)
{
    struct session *session = worker->session;

    if (!worker->reply_stays && (session->reply_mode == REPLY_OFF ||
                                 session->reply_mode == REPLY_SKIP)) {
        out->len = mark;
    }
    worker->reply_stays = false;
    if (session->reply_mode == REPLY_SKIP) {
        session->reply_mode = REPLY_ON;
    } else if (session->reply_mode == REPLY_SKIP_NEXT) {
        session->reply_mode = REPLY_SKIP;
    }
}

/* While one of these is on, commands run one by one. */
static const uint64_t ONE_BY_ONE = OBSERVED_MONITOR | OBSERVED_PAUSE;

/* Returns whether the session's state lets one-item commands run together: no
 * option of the session applies to single commands, and admit_request would
 * refuse none of them. Only commands that do not run together change this
 * state. */
static bool
is_plain(const struct session *session, const struct service *service)
{
    return session->authenticated && !txn_is_open(session) &&
           !session->asking && session->reply_mode == REPLY_ON &&
           !session->subscribed &&
           (session->receiver.tracker == NULL ||
            tracking_caching(&session->receiver) == CACHING_DEFAULT) &&
           (session->obey || !refusal_is_loading(service));
}

/* Returns whether the observers of commands allow several to run together. */
static inline bool
may_group(const struct service *service)
{
    uint64_t observed = observed_by(service);

    return __builtin_expect(observed == 0, 1) ||
           ((observed & ONE_BY_ONE) == 0 &&
            !inboxes_are_crowded(service->inboxes));
}

uint32_t
dispatch_batch(struct worker *worker, struct session *session,
               const struct batch *batch, uint32_t first, uint64_t until_ns,
               struct buf *out)
{
    struct loop *loop = worker->loop;
    struct reply reply = { out, session->resp };
    struct window *window = worker->window;
    bool plain = is_plain(session, worker->service);
    uint32_t done = first;
    enum mem_claim before = mem_set_claim(MEM_FILL);

    CHECK(first <= batch->count && !worker->in_exec);
    worker->reply = &reply;
    worker->session = session;
    worker->in_place = batch->in_place;
    worker->hold = 0;
    worker->now_ns = loop != NULL && loop->executing != NULL ? loop->now_ns
                                                             : clock_mono_ns();
    session->wait = CONN_RUNS;
    session->wait_ms = 0;
    if (__builtin_expect(
            atomic_load_explicit(&session->blocked, memory_order_relaxed) ==
                SESSION_WAITS,
            0)) {
        atomic_store(&session->blocked, SESSION_RUNS);
    }
    if (session->obey) {
        worker->now_ms = 0; /* no key expires for a session that obeys */
    } else {
        worker->now_ms = clock_wall_ms_at(worker->now_ns);
        atomic_store_explicit(&session->active_ms, worker->now_ms,
                              memory_order_relaxed);
    }
    longest_turn(worker->now_ns);
    while (done < batch->count && !session->closing &&
           out->len < LOOP_FLUSH_BYTES &&
           (done == first || worker->now_ns < until_ns)) {
        size_t mark = out->len;

        window_gather(worker, batch, done, plain && may_group(worker->service));
        execute_prepare(worker->request, window->run, 0);
        if (!execute_window(worker->request, window)) {
            break;
        }
        if (!window_is_many(window)) {
            apply_reply_mode(worker, out, mark);
            reply.resp = session->resp; /* HELLO may have changed it */
            plain = is_plain(session, worker->service);
        }
        done += window_commands(window);
    }
    if (loop != NULL) {
        loop->now_ns = worker->now_ns;
    }
    CHECK(done >= first && done <= batch->count && !worker->in_exec);
    worker->reply = NULL;
    worker->session = NULL; /* it may be gone when a timer uses the worker */
    (void)mem_set_claim(before);
    return done;
}
