/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measures the gain of several loops on several CPUs, without sockets. Like a
 * loop, each thread parses prebuilt requests, and its own worker executes them,
 * over one keyspace. Each thread is pinned to its own CPU. So two CPUs can be
 * measured on a machine of two, where a client would need one of them.
 *
 * Each figure comes from short windows in turn: without locks (a server of one
 * loop), one thread, two threads, and so on. A control window follows each of
 * them, in which the same threads only hash private memory. It shows the speed
 * of that many threads on this machine at that moment. Time in which a thread
 * was ready but another process had its CPU does not count. Ratios are taken
 * within a round. Medians use the rounds without much disturbance, if there are
 * enough; the windows are short to make that likely. The program prints one
 * logfmt line for each workload, pipeline and number of threads. `relative` is
 * the ratio that would result if the control scaled with the number of threads.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "access/table.h"
#include "base/clock.h"
#include "base/mem.h"
#include "command/rows.h"
#include "digits.h"
#include "engine/dispatch.h"
#include "proto/stream.h"
#include "scale_options.h"
#include "scale_world.h"

enum {
    ROUNDS_MIN = 5,         /* undisturbed; with fewer, all count */
    COUNTS_MAX = 9,         /* of threads: no locks, 1, 2, 4, ... 64, all */
    COMMAND_MAX = 64,       /* bytes of one */
    NAMES = 10000,          /* of small filters */
    NEW_CAPACITY = 4000000, /* emptied before each window */
    NEW_APART = 1 << 26,    /* between the items of two threads */
    CONTROL_BYTES = 16384,
    WARMUP_BATCHES = 50,
    LEAD_COMMANDS = 20000, /* of all together before each window */
    LOOK_NS = 50000        /* between two looks whether they are done */
};

enum world_kind { WITHOUT_LOCKS, WITH_LOCKS, WORLDS };

struct place {
    struct worker *worker;
    struct session *session;
};

struct tally {
    uint64_t commands, ones;
    uint64_t wall_ns, cpu_ns;
    uint64_t wait_ns; /* of that: ready, and no CPU was free */
};

struct feeder {
    pthread_t thread;
    unsigned index;
    struct place place[WORLDS];
    struct stream stream;
    struct stream_pool *pool;
    struct batch batch;
    struct buf out;
    char *requests; /* one batch */
    size_t command_bytes, key_at, item_at;
    unsigned char *memory; /* of the control */
    uint64_t random;
    uint32_t next_item;
    struct tally tally;
};

/* What the feeder threads do next; they read it between barriers. */
struct turn {
    const struct workload *workload; /* NULL: the control */
    enum world_kind world;
    unsigned pipeline;
    unsigned first, threads; /* feeders first, first + 1, ... of all */
    uint64_t batches;        /* 0: until stop */
    uint64_t lead;           /* commands of each before it is measured */
    bool over;
};

struct result {
    double rate, cpu_ns, wait, ones;
    double control, control_wait;
};

static struct world *worlds[WORLDS];
static struct feeder *feeders[THREADS_MAX];
static struct turn turn;
static pthread_barrier_t begin, end;
static _Alignas(64) atomic_bool stop;
static _Alignas(64) atomic_uint leading; /* feeders not yet measured */

/* By number of threads and round. */
static struct result seen[COUNTS_MAX][ROUNDS_MAX];
static unsigned rounds;

static const double UNDISTURBED = 0.02; /* of the time spent waiting */

/* ---- requests ------------------------------------------------------------ */

static void
build_requests(struct feeder *feeder, const char *command, unsigned pipeline)
{
    char one[COMMAND_MAX];
    int len = snprintf(one, sizeof(one),
                       "*3\r\n$%zu\r\n%s\r\n$9\r\nk00000000\r\n$12\r\n"
                       "item00000000\r\n",
                       strlen(command), command);

    CHECK(len > 0 && (size_t)len < sizeof(one));
    feeder->command_bytes = (size_t)len;
    feeder->item_at = (size_t)len - 2 - DIGITS;
    feeder->key_at = feeder->item_at - strlen("\r\n$12\r\nitem") - DIGITS;
    for (unsigned i = 0; i < pipeline; i++) {
        memcpy(feeder->requests + i * feeder->command_bytes, one, (size_t)len);
    }
}

/* Keys are numbers: 0 and 1, then one for each thread, then the many filters.
 */
static uint32_t
pick_key(struct feeder *feeder, enum keys keys)
{
    switch (keys) {
    case KEY_OWN:
        return 2 + feeder->index;
    case KEY_MANY:
        return 2 + THREADS_MAX +
               (uint32_t)random_number(&feeder->random, NAMES);
    default:
        return keys;
    }
}

static void
fill_requests(struct feeder *feeder, const struct workload *workload,
              unsigned pipeline)
{
    char *at = feeder->requests;

    for (unsigned i = 0; i < pipeline; i++, at += feeder->command_bytes) {
        uint32_t item =
            workload->items > 0
                ? (uint32_t)random_number(&feeder->random, workload->items)
                : feeder->next_item++;

        put_digits(at + feeder->key_at, pick_key(feeder, workload->keys));
        put_digits(at + feeder->item_at, item);
    }
}

/* Parses and executes the bytes of one read, as net/conn.c does. */
static void
execute(struct feeder *feeder, const struct place *place, size_t len)
{
    static const struct parse_limits limits = { .args_max = 1024,
                                                .bulk_max = 1024,
                                                .query_max = 65536 };
    struct parse_error error;
    size_t at = 0;

    feeder->out.len = 0;
    while (at < len) {
        size_t used = 0;
        uint32_t done = 0;

        if (stream_parse(&feeder->stream, feeder->pool, &limits,
                         feeder->requests + at, len - at, &feeder->batch, &used,
                         &error) != STREAM_COMMANDS) {
            die("the requests cannot be parsed");
        }
        while (done < feeder->batch.count) {
            done = dispatch_batch(place->worker, place->session, &feeder->batch,
                                  done, UINT64_MAX, &feeder->out);
        }
        stream_done(&feeder->stream, feeder->pool);
        at += used;
    }
}

/* ---- one window ---------------------------------------------------------- */

static bool
goes_on(uint64_t batches)
{
    return turn.batches > 0
               ? batches < turn.batches
               : batches == 0 ||
                     !atomic_load_explicit(&stop, memory_order_relaxed);
}

static void
feed_batch(struct feeder *feeder, const struct place *place)
{
    fill_requests(feeder, turn.workload, turn.pipeline);
    execute(feeder, place, feeder->command_bytes * turn.pipeline);
    if (feeder->out.len != turn.pipeline * strlen(":0\r\n")) {
        die("replies of another length");
    }
}

static void
feed(struct feeder *feeder)
{
    const struct place *place = &feeder->place[turn.world];

    for (uint64_t batches = 0; goes_on(batches); batches++) {
        feed_batch(feeder, place);
        for (size_t at = 1; turn.batches > 0 && at < feeder->out.len; at += 4) {
            feeder->tally.ones += feeder->out.data[at] == '1';
        }
        feeder->tally.commands += turn.pipeline;
    }
}

/* Warms the caches with the same work. */
static void
lead_in(struct feeder *feeder)
{
    if (turn.workload != NULL) {
        build_requests(feeder, turn.workload->command, turn.pipeline);
        feeder->next_item = feeder->index * NEW_APART;
        for (uint64_t done = 0; done < turn.lead; done += turn.pipeline) {
            feed_batch(feeder, &feeder->place[turn.world]);
        }
    }
    (void)atomic_fetch_sub(&leading, 1);
}

static void
hash_memory(struct feeder *feeder)
{
    for (uint64_t batches = 0; goes_on(batches); batches++) {
        feeder->random =
            XXH3_64bits_withSeed(feeder->memory, CONTROL_BYTES, feeder->random);
        feeder->tally.commands++;
    }
}

/* Returns how long this thread was ready to run but did not run. */
static uint64_t
waited_ns(void)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    unsigned long long run_ns = 0;
    unsigned long long wait_ns = 0;

    if (file != NULL) {
        if (fscanf(file, "%llu %llu", &run_ns, &wait_ns) != 2) {
            wait_ns = 0;
        }
        (void)fclose(file);
    }
    return wait_ns;
}

static void
take_part(struct feeder *feeder)
{
    uint64_t wait_ns;
    uint64_t wall_ns;
    uint64_t cpu_ns;

    lead_in(feeder);
    feeder->tally = (struct tally){ 0 };
    wait_ns = waited_ns();
    wall_ns = clock_mono_ns();
    cpu_ns = clock_thread_cpu_ns();
    if (turn.workload != NULL) {
        feed(feeder);
    } else {
        hash_memory(feeder);
    }
    feeder->tally.cpu_ns = clock_thread_cpu_ns() - cpu_ns;
    feeder->tally.wall_ns = clock_mono_ns() - wall_ns;
    feeder->tally.wait_ns = waited_ns() - wait_ns;
}

static bool
is_mine(const struct feeder *feeder)
{
    unsigned place = feeder->index + opt.threads - turn.first;

    return place % opt.threads < turn.threads;
}

static void *
run_feeder(void *arg)
{
    struct feeder *feeder = arg;

    for (;;) {
        pthread_barrier_wait(&begin);
        if (turn.over) {
            return NULL;
        }
        if (is_mine(feeder)) {
            take_part(feeder);
        }
        pthread_barrier_wait(&end);
    }
}

/* Runs in both worlds, between windows. */
static void
call(struct slice line)
{
    struct feeder *feeder = feeders[0];

    memcpy(feeder->requests, line.data, line.len);
    for (int w = 0; w < WORLDS; w++) {
        execute(feeder, &feeder->place[w], line.len);
        if (!slice_equal(buf_slice(&feeder->out), slice_lit("+OK\r\n"))) {
            die("a filter could not be made");
        }
    }
}

static void
reserve(uint32_t key, unsigned capacity)
{
    char line[COMMAND_MAX];

    (void)snprintf(line, sizeof(line), "BF.RESERVE k%08x 0.01 %u\r\n", key,
                   capacity);
    call(slice_of(line));
}

/* Runs the turn. The rate is that of all threads together while all have a CPU;
 * a thread without a CPU for most of the window counts little. */
static struct result
run_turn(void)
{
    struct timespec window = { .tv_nsec = (long)opt.window_ms * 1000000 };
    struct timespec look = { .tv_nsec = LOOK_NS };
    struct result result = { 0 };
    struct tally sum = { 0 };

    if (turn.workload != NULL && turn.workload->keys == KEY_NEW) {
        call(slice_lit("BF.RESET k00000001\r\n"));
    }
    turn.lead = turn.batches > 0 ? 0 : LEAD_COMMANDS / turn.threads;
    atomic_store(&leading, turn.threads);
    atomic_store(&stop, false);
    pthread_barrier_wait(&begin);
    if (turn.batches == 0) {
        while (atomic_load(&leading) > 0) {
            nanosleep(&look, NULL);
        }
        nanosleep(&window, NULL);
        atomic_store(&stop, true);
    }
    pthread_barrier_wait(&end);
    for (unsigned i = 0; i < opt.threads; i++) {
        const struct tally *tally = &feeders[i]->tally;

        if (is_mine(feeders[i])) {
            sum.commands += tally->commands;
            sum.ones += tally->ones;
            sum.cpu_ns += tally->cpu_ns;
            sum.wait_ns += tally->wait_ns;
            sum.wall_ns += tally->wall_ns;
        }
    }
    result.rate = (double)sum.commands * 1e9 * turn.threads /
                  (double)(sum.wall_ns - sum.wait_ns);
    result.cpu_ns = (double)sum.cpu_ns / (double)sum.commands;
    result.wait = (double)sum.wait_ns / (double)sum.wall_ns;
    result.ones = (double)sum.ones / (double)sum.commands;
    return result;
}

/* ---- a workload ---------------------------------------------------------- */

static int
by_value(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

static double
median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Checks the answers, with and without locks, with one thread and with all.
 * Half of the requested items are present, and there are few false positives.
 */
static void
warm_up(const struct workload *workload)
{
    bool exists = strcmp(workload->command, "BF.EXISTS") == 0;
    double least = exists ? 0.45 : workload->items > 0 ? 0 : 0.98;
    double most = exists ? 0.56 : workload->items > 0 ? 0 : 1;

    turn.batches = WARMUP_BATCHES;
    for (unsigned pass = 0; pass < 2; pass++) {
        struct result result;

        turn.world = pass == 0 ? WITHOUT_LOCKS : WITH_LOCKS;
        turn.threads = pass == 0 ? 1 : opt.threads;
        turn.first = 0;
        result = run_turn();
        if (turn.pipeline * WARMUP_BATCHES >= 800 &&
            (result.ones < least || result.ones > most)) {
            die("wrong answers");
        }
    }
    turn.batches = 0;
}

/* Sets the measured numbers of threads; 1 without locks comes first. */
static unsigned
counts_of(unsigned *ret_counts)
{
    unsigned used = 0;

    ret_counts[used++] = 1;
    for (unsigned n = 1; n < opt.threads; n *= 2) {
        ret_counts[used++] = n;
    }
    ret_counts[used++] = opt.threads;
    if (opt.only > 0) {
        ret_counts[0] = opt.only;
        used = 1;
    }
    return used;
}

/* Runs one window, and a control window with the same threads. */
static struct result
measure(const struct workload *workload, unsigned threads)
{
    struct result result;
    struct result control;

    turn.workload = workload;
    turn.threads = threads;
    result = run_turn();
    turn.workload = NULL;
    control = run_turn();
    turn.workload = workload;
    result.control = control.rate;
    result.control_wait = control.wait;
    return result;
}

static bool
is_undisturbed(const struct result *result)
{
    return result->wait < UNDISTURBED && result->control_wait < UNDISTURBED;
}

/* Computes the result of a number of threads, relative to one thread with
 * locks. */
static void
report(const struct result *one, const struct result *now, unsigned threads,
       bool locks)
{
    static double value[6][ROUNDS_MAX];
    unsigned clean = 0;
    unsigned used = 0;

    for (unsigned r = 0; r < rounds; r++) {
        clean += is_undisturbed(&one[r]) && is_undisturbed(&now[r]);
    }
    for (unsigned r = 0; r < rounds; r++) {
        if (clean >= ROUNDS_MIN &&
            !(is_undisturbed(&one[r]) && is_undisturbed(&now[r]))) {
            continue;
        }
        value[0][used] = now[r].rate;
        value[1][used] = now[r].cpu_ns;
        value[2][used] = now[r].wait;
        value[3][used] = now[r].rate / one[r].rate;
        value[4][used] = now[r].control / one[r].control;
        value[5][used] = value[3][used] / value[4][used] * threads;
        used++;
    }
    (void)printf("workload=%s pipeline=%u threads=%u locks=%s rate=%.0f "
                 "cpu_ns=%.1f waited=%.3f ratio=%.3f control=%.3f "
                 "relative=%.3f rounds=%u undisturbed=%u\n",
                 turn.workload->name, turn.pipeline, threads,
                 locks ? "yes" : "no", median(value[0], used),
                 median(value[1], used), median(value[2], used),
                 median(value[3], used), median(value[4], used),
                 median(value[5], used), rounds, clean);
    (void)fflush(stdout);
}

/* Returns true if all its windows were undisturbed. */
static bool
measure_round(const struct workload *workload, unsigned counts,
              const unsigned *count)
{
    bool undisturbed = true;

    for (unsigned i = 0; i < counts; i++) {
        unsigned c = rounds % 2 == 0 ? i : counts - 1 - i;

        turn.world = c == 0 && counts > 1 ? WITHOUT_LOCKS : WITH_LOCKS;
        turn.first = rounds / 2 % opt.threads;
        seen[c][rounds] = measure(workload, count[c]);
        undisturbed = undisturbed && is_undisturbed(&seen[c][rounds]);
    }
    rounds++;
    return undisturbed;
}

static void
measure_workload(const struct workload *workload, unsigned pipeline)
{
    unsigned count[COUNTS_MAX];
    unsigned counts = counts_of(count);
    unsigned clean = 0;
    uint64_t end_ns;

    turn.workload = workload;
    turn.pipeline = pipeline;
    warm_up(workload);
    end_ns = clock_mono_ns() + (uint64_t)opt.limit_ms * 1000000;
    rounds = 0;
    while (clean < opt.rounds && rounds < ROUNDS_MAX &&
           clock_mono_ns() < end_ns) {
        clean += measure_round(workload, counts, count);
    }
    for (unsigned c = 0; c < counts; c++) {
        report(seen[counts > 1 ? 1 : 0], seen[c], count[c],
               c > 0 || counts == 1);
    }
}

/* ---- life ---------------------------------------------------------------- */

/* Adds the items of each key, from 0 on. */
static void
add_items(uint32_t key, uint32_t items)
{
    struct feeder *feeder = feeders[0];

    build_requests(feeder, "BF.ADD", PIPELINE_MAX);
    for (uint32_t item = 0; item < items;) {
        char *at = feeder->requests;
        unsigned count = 0;

        while (count < PIPELINE_MAX && item < items) {
            put_digits(at + feeder->key_at, key);
            put_digits(at + feeder->item_at, item++);
            at += feeder->command_bytes;
            count++;
        }
        for (int w = 0; w < WORLDS; w++) {
            execute(feeder, &feeder->place[w], feeder->command_bytes * count);
        }
    }
}

static void
make_filters(void)
{
    reserve(KEY_ONE, ITEMS);
    add_items(KEY_ONE, ITEMS);
    reserve(KEY_NEW, NEW_CAPACITY);
    for (unsigned i = 0; i < opt.threads; i++) {
        reserve(2 + i, OWN_ITEMS);
        add_items(2 + i, OWN_ITEMS);
    }
    for (unsigned i = 0; i < NAMES; i++) {
        reserve(2 + THREADS_MAX + i, 2 * NAME_ITEMS);
        add_items(2 + THREADS_MAX + i, NAME_ITEMS);
    }
}

static void
start_feeders(const cpu_set_t *cpus)
{
    int cpu = -1;

    for (unsigned i = 0; i < opt.threads; i++) {
        struct feeder *feeder = mem_lines(sizeof(*feeder));

        feeder->index = i;
        feeder->random = i + 1;
        feeder->pool = stream_pool_new();
        feeder->requests = mem_lines(PIPELINE_MAX * COMMAND_MAX);
        feeder->memory = mem_lines(CONTROL_BYTES);
        for (int w = 0; w < WORLDS; w++) {
            struct place *place = &feeder->place[w];

            if (w == WITHOUT_LOCKS && i > 0) {
                *place = feeders[0]->place[w];
                continue;
            }
            place->worker = dispatch_new_worker(&worlds[w]->service, i);
            place->session = mem_lines(sizeof(*place->session));
            session_init(place->session, true);
        }
        feeders[i] = feeder;
    }
    for (unsigned i = 0; i < opt.threads; i++) {
        pthread_attr_t attr;
        cpu_set_t own;

        do { /* the next one that there is, from the first again */
            cpu = (cpu + 1) % CPU_SETSIZE;
        } while (!CPU_ISSET((size_t)cpu, cpus));
        CPU_ZERO(&own);
        CPU_SET((size_t)cpu, &own);
        CHECK(pthread_attr_init(&attr) == 0);
        CHECK(pthread_attr_setaffinity_np(&attr, sizeof(own), &own) == 0);
        CHECK(pthread_create(&feeders[i]->thread, &attr, run_feeder,
                             feeders[i]) == 0);
        CHECK(pthread_attr_destroy(&attr) == 0);
    }
}

static void
finish(void)
{
    turn.over = true;
    pthread_barrier_wait(&begin);
    for (unsigned i = 0; i < opt.threads; i++) {
        struct feeder *feeder = feeders[i];

        CHECK(pthread_join(feeder->thread, NULL) == 0);
        for (int w = i == 0 ? 0 : WITH_LOCKS; w < WORLDS; w++) {
            session_fini(feeder->place[w].session);
            mem_free_lines(feeder->place[w].session, sizeof(struct session));
            dispatch_free_worker(feeder->place[w].worker);
        }
        stream_fini(&feeder->stream, feeder->pool);
        stream_pool_free(feeder->pool);
        batch_fini(&feeder->batch);
        buf_free(&feeder->out);
        mem_free_lines(feeder->requests, PIPELINE_MAX * COMMAND_MAX);
        mem_free_lines(feeder->memory, CONTROL_BYTES);
        mem_free_lines(feeder, sizeof(*feeder));
    }
    for (int w = 0; w < WORLDS; w++) {
        world_free(worlds[w]);
    }
}

int
main(int argc, char **argv)
{
    cpu_set_t cpus;

    CHECK(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
    opt.threads = (unsigned)CPU_COUNT(&cpus);
    opt.threads = opt.threads < THREADS_MAX ? opt.threads : THREADS_MAX;
    scale_options_parse(argc, argv);
    if (sched_getscheduler(0) == SCHED_FIFO ||
        sched_getscheduler(0) == SCHED_RR) {
        die("with real-time priority its threads would keep the one that ends "
            "the windows from running, and everybody else");
    }
    if (opt.only > opt.threads) {
        die("--only: more than --threads");
    }
    (void)bloom_select_cpu(false);
    command_table_init(command_rows);
    for (int w = 0; w < WORLDS; w++) {
        worlds[w] = world_new(w == WITHOUT_LOCKS ? 1
                              : opt.threads > 1  ? opt.threads
                                                 : 2);
    }
    CHECK(pthread_barrier_init(&begin, NULL, opt.threads + 1) == 0);
    CHECK(pthread_barrier_init(&end, NULL, opt.threads + 1) == 0);
    start_feeders(&cpus);
    make_filters();
    for (int i = 0; i < WORKLOADS; i++) {
        for (unsigned p = 0; opt.wanted[i] && p < opt.pipelines; p++) {
            measure_workload(&workloads[i], opt.pipeline[p]);
        }
    }
    finish();
    return 0;
}
