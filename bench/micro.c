/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Microbenchmark of the filter: the thread CPU time of an ADD of a new item, of
 * an EXISTS that hits and of one that misses. It measures single operations,
 * and batches of 64 whose items are hashed and prefetched first. It compares
 * them with a classic Bloom filter (double hashing of XXH3-128, optimal k, one
 * modulo per probe) in the same memory. One thread; every figure includes the
 * hash.
 *
 * Filters of up to 16 MB are filled with items. Larger ones share their memory,
 * half of whose bits are set at random, and then get items for the hits. All
 * variants take turns within a round, and the program prints the median of the
 * rounds.
 *
 *   micro [--max-mb N] [--rounds N] [--portable]
 */
#include <bloomery/bloom.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/sizing.h"

#define MIB        ((size_t)1 << 20)
#define HUGE_BYTES (2 * MIB)

enum { ROUNDS_MAX = 31, OPS_MAX = 1 << 20, CLASSIC_PROBES = 7 };
enum { FEW = 16 }; /* hashed before their lines are fetched */

static const double error_rate = 0.01; /* CLASSIC_PROBES is optimal for it */

enum op { OP_ADD, OP_HIT, OP_MISS, OP_COUNT };
enum way { WAY_CLASSIC, WAY_SINGLE, WAY_BATCH, WAY_COUNT };

/* 16 bytes: an item of usual length that costs nothing to make. */
struct key {
    uint64_t salt;
    uint64_t number;
};

struct bench {
    size_t bytes;
    unsigned char *striped; /* the lines of BLOOM */
    unsigned char *classic; /* the same memory when larger than 16 MB */
    uint64_t classic_bits;
    uint64_t ops;
    struct bloom *bloom;
    struct bloom_env env;
    bool filled; /* really, not at random */
};

static uint64_t answers; /* keeps the work alive; checked by the caller */

static void
die(const char *what)
{
    (void)fprintf(stderr, "micro: %s\n", what);
    exit(1);
}

static uint64_t
cpu_ns(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) {
        die("no thread CPU clock");
    }
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned char *
map_huge(size_t bytes)
{
    size_t want = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    unsigned char *raw = mmap(NULL, want + HUGE_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (raw == MAP_FAILED) {
        die("no memory");
    }
    raw += (HUGE_BYTES - (uintptr_t)raw % HUGE_BYTES) % HUGE_BYTES;
    (void)madvise(raw, want, MADV_HUGEPAGE);
    return raw; /* for the life of the program */
}

/* ---- the classic filter -------------------------------------------------- */

static bool
classic_contains(const struct bench *bench, const struct key *key)
{
    XXH128_hash_t hash = XXH3_128bits(key, sizeof(*key));

    for (unsigned i = 0; i < CLASSIC_PROBES; i++) {
        uint64_t bit = (hash.low64 + i * hash.high64) % bench->classic_bits;

        if ((bench->classic[bit / 8] >> (bit % 8) & 1) == 0) {
            return false;
        }
    }
    return true;
}

static bool
classic_add(const struct bench *bench, const struct key *key)
{
    XXH128_hash_t hash = XXH3_128bits(key, sizeof(*key));
    bool added = false;

    for (unsigned i = 0; i < CLASSIC_PROBES; i++) {
        uint64_t bit = (hash.low64 + i * hash.high64) % bench->classic_bits;
        unsigned char mask = (unsigned char)(1U << (bit % 8));

        added |= (bench->classic[bit / 8] & mask) == 0;
        bench->classic[bit / 8] |= mask;
    }
    return added;
}

/* ---- one timed loop each --------------------------------------------------
 */

static void
run_classic(struct bench *bench, enum op op, struct key key)
{
    for (uint64_t i = 0; i < bench->ops; i++, key.number++) {
        answers += op == OP_ADD ? classic_add(bench, &key)
                                : classic_contains(bench, &key);
    }
}

static void
add_one(struct bench *bench, struct bloom_hash hash)
{
    bool added = false;

    if (bloom_add(bench->bloom, &bench->env, hash, &added) != BLOOM_OK) {
        die("the filter is full");
    }
    answers += added;
}

static void
run_single(struct bench *bench, enum op op, struct key key)
{
    for (uint64_t i = 0; i < bench->ops; i++, key.number++) {
        struct bloom_hash hash = bloom_hash(bench->bloom, &key, sizeof(key));

        if (op == OP_ADD) {
            add_one(bench, hash);
        } else {
            answers += bloom_contains(bench->bloom, hash);
        }
    }
}

static void
run_batch(struct bench *bench, enum op op, struct key key)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool found[BLOOM_BATCH_MAX];
    size_t count = BLOOM_BATCH_MAX;

    for (uint64_t done = 0; done < bench->ops; done += count) {
        for (size_t i = 0; i < count; i++) {
            hashes[i] = bloom_hash(bench->bloom, &key, sizeof(key));
            key.number++;
            if ((i + 1) % FEW == 0) {
                bloom_prefetch_batch(bench->bloom, &hashes[i + 1 - FEW], FEW);
            }
        }
        if (op != OP_ADD) {
            bloom_contains_batch(bench->bloom, hashes, count, found);
        } else if (bloom_add_batch(bench->bloom, &bench->env, hashes, count,
                                   found, &count) != BLOOM_OK) {
            die("the filter is full");
        }
        for (unsigned i = 0; i < count; i++) {
            answers += found[i];
        }
    }
}

/* Returns nanoseconds per operation, and checks that the answers are plausible.
 */
static double
timed(struct bench *bench, enum way way, enum op op, struct key key)
{
    static void (*const run[WAY_COUNT])(struct bench *, enum op,
                                        struct key) = { run_classic, run_single,
                                                        run_batch };
    uint64_t start;
    uint64_t taken;
    double share;

    answers = 0;
    start = cpu_ns();
    run[way](bench, op, key);
    taken = cpu_ns() - start;
    share = (double)answers / (double)bench->ops;
    if (op == OP_MISS ? share > 0.03 : share < 0.98) {
        (void)fprintf(stderr, "way %d op %d: %g answered yes\n", (int)way,
                      (int)op, share);
        die("wrong answers");
    }
    return (double)taken / (double)bench->ops;
}

/* ---- set up ---------------------------------------------------------------
 */

static void *
env_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}

static void
env_free(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    free(ptr);
}

static void *
env_alloc_lines(void *ctx, size_t bytes)
{
    const struct bench *bench = ctx;

    return bytes <= bench->bytes ? bench->striped : NULL;
}

static void
env_free_lines(void *ctx, void *ptr, size_t bytes)
{
    (void)ctx;
    (void)ptr;
    (void)bytes; /* the mapping outlives its filters */
}

static void
make_bloom(struct bench *bench)
{
    struct bloom_params params = { .struct_size = sizeof(params),
                                   .error_rate = error_rate,
                                   .tightening = 0.5 };
    uint64_t lines = bench->bytes / BLOOM_LINE_BYTES;

    params.capacity =
        (uint64_t)((double)lines * (double)sizing_load(0.95 * error_rate));
    while (sizing_geometry(params.capacity, error_rate).lines > lines) {
        params.capacity--;
    }
    bloom_free(bench->bloom, &bench->env);
    if (bloom_new(&params, &bench->env, &bench->bloom) != BLOOM_OK) {
        die("cannot make the filter");
    }
}

static void
clear(struct bench *bench)
{
    memset(bench->striped, 0, bench->bytes);
    memset(bench->classic, 0, bench->bytes);
    make_bloom(bench);
}

static void
fill_at_random(struct bench *bench)
{
    void *memory = bench->striped;
    uint64_t *words = memory;
    uint64_t state = 88172645463325252U;

    for (size_t i = 0; i < bench->bytes / sizeof(*words); i++) {
        state ^= state << 13; /* xorshift64: half the bits, and fast */
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
}

/* Adds items until the filter is full, after those of the timed rounds. */
static void
fill_up(struct bench *bench)
{
    struct bloom_info info = { .struct_size = sizeof(info) };
    struct key key = { .salt = 7777 };

    bloom_get_info(bench->bloom, &info);
    for (uint64_t left = info.capacity - info.items; left > 0; left--) {
        struct bloom_hash hash = bloom_hash(bench->bloom, &key, sizeof(key));

        add_one(bench, hash);
        (void)classic_add(bench, &key);
        key.number++;
    }
}

static void
set_up(struct bench *bench, size_t bytes)
{
    struct bloom_info info = { .struct_size = sizeof(info) };

    memset(bench, 0, sizeof(*bench));
    bench->bytes = bytes;
    bench->filled = bytes <= 16 * MIB;
    bench->striped = map_huge(bytes);
    bench->classic = bench->filled ? map_huge(bytes) : bench->striped;
    bench->classic_bits = (uint64_t)bytes * 8;
    bench->env = (struct bloom_env){ .alloc = env_alloc,
                                     .free = env_free,
                                     .alloc_lines = env_alloc_lines,
                                     .free_lines = env_free_lines,
                                     .ctx = bench,
                                     .size_limit_bytes = UINT64_MAX };
    make_bloom(bench);
    bloom_get_info(bench->bloom, &info);
    bench->ops = OPS_MAX;
    if (bench->ops > info.capacity) {
        bench->ops = info.capacity;
    }
    bench->ops -= bench->ops % BLOOM_BATCH_MAX;
    if (!bench->filled) {
        fill_at_random(bench);
    }
}

/* ---- measure --------------------------------------------------------------
 */

struct samples {
    double ns[OP_COUNT][WAY_COUNT][ROUNDS_MAX];
};

/* Runs the timed adds of one round. A filter filled with items starts empty
 * each time; one with random bits gets new items. */
static void
round_of_adds(struct bench *bench, struct samples *samples, unsigned round)
{
    for (unsigned turn = 0; turn < WAY_COUNT; turn++) {
        enum way way = (enum way)((turn + round) % WAY_COUNT);
        uint64_t salt = bench->filled ? 1 : 1 + round * WAY_COUNT + way;

        if (bench->filled) {
            clear(bench);
        }
        samples->ns[OP_ADD][way][round] =
            timed(bench, way, OP_ADD, (struct key){ .salt = salt });
    }
}

/* Adds the items for the hits to both filters. */
static void
prepare_hits(struct bench *bench)
{
    struct key key = { .salt = 1000 };

    if (bench->filled) {
        clear(bench);
    }
    run_classic(bench, OP_ADD, key);
    run_single(bench, OP_ADD, key);
    if (bench->filled) {
        fill_up(bench);
    }
}

static void
round_of_queries(struct bench *bench, struct samples *samples, unsigned round)
{
    for (unsigned turn = 0; turn < WAY_COUNT; turn++) {
        enum way way = (enum way)((turn + round) % WAY_COUNT);

        samples->ns[OP_HIT][way][round] =
            timed(bench, way, OP_HIT, (struct key){ .salt = 1000 });
        samples->ns[OP_MISS][way][round] =
            timed(bench, way, OP_MISS, (struct key){ .salt = 2000 + round });
    }
}

static int
compare_doubles(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

static double
median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), compare_doubles);
    return values[count / 2];
}

/* Returns the required ratio at this size; 0 means none. */
static double
mark_for(size_t bytes)
{
    return bytes == 256 * MIB ? 5 : bytes == MIB / 16 ? 3 : 0;
}

static bool
report(const struct bench *bench, struct samples *samples, unsigned rounds)
{
    static const char *const names[] = { "ADD new", "EXISTS hit",
                                         "EXISTS miss" };
    double mark = mark_for(bench->bytes);
    bool good = true;

    for (unsigned op = 0; op < OP_COUNT; op++) {
        double ns[WAY_COUNT];
        double ratio;

        for (unsigned way = 0; way < WAY_COUNT; way++) {
            ns[way] = median(samples->ns[op][way], rounds);
        }
        ratio = ns[WAY_CLASSIC] / ns[WAY_BATCH];
        (void)printf("%7zu KB  %-11s  %8.1f  %8.1f  %8.1f  %7.1fx  %7.1fx",
                     bench->bytes / 1024, names[op], ns[WAY_CLASSIC],
                     ns[WAY_SINGLE], ns[WAY_BATCH],
                     ns[WAY_CLASSIC] / ns[WAY_SINGLE], ratio);
        if (mark > 0) {
            (void)printf("  %s %.0fx", ratio >= mark ? "meets" : "MISSES",
                         mark);
            good = good && ratio >= mark;
        }
        (void)printf("\n");
    }
    (void)fflush(stdout);
    return good;
}

static bool
measure(size_t bytes, unsigned rounds)
{
    static struct bench bench;
    static struct samples samples;
    bool good;

    set_up(&bench, bytes);
    for (unsigned i = 0; i < rounds; i++) {
        round_of_adds(&bench, &samples, i);
    }
    prepare_hits(&bench);
    for (unsigned i = 0; i < rounds; i++) {
        round_of_queries(&bench, &samples, i);
    }
    good = report(&bench, &samples, rounds);
    bloom_free(bench.bloom, &bench.env);
    (void)munmap(bench.striped, bytes);
    return good;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {
        { "max-mb", required_argument, NULL, 'm' },
        { "rounds", required_argument, NULL, 'r' },
        { "portable", no_argument, NULL, 'p' },
        { NULL, 0, NULL, 0 },
    };
    static const size_t sizes[] = { MIB / 16, 16 * MIB, 256 * MIB, 4096 * MIB };
    unsigned long max_mb = 4096;
    unsigned long rounds = 7;
    bool portable = false;
    bool good = true;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'm') {
            max_mb = strtoul(optarg, NULL, 10);
        } else if (option == 'r') {
            rounds = strtoul(optarg, NULL, 10);
        } else if (option == 'p') {
            portable = true;
        } else {
            die("usage: micro [--max-mb N] [--rounds N] [--portable]");
        }
    }
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        die("--rounds is 1 to 31");
    }
    (void)printf("rate %g, %s, ns of CPU an operation, median of %lu\n",
                 error_rate, bloom_select_cpu(portable), rounds);
    (void)printf("%10s  %-11s  %8s  %8s  %8s  %8s  %8s\n", "size", "operation",
                 "classic", "single", "batch", "single", "batch");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] <= max_mb * MIB) {
            good = measure(sizes[i], (unsigned)rounds) && good;
        }
    }
    return good ? 0 : 2;
}
