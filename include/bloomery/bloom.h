/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scalable Bloom filter of Bloomery, as a library (libbloomery).
 *
 * A filter is a chain of layers. Each layer is a striped split-block filter:
 * L stripes of 64-byte lines, an item owns one line in every stripe and one
 * bit in each of the 8 words of that line. Layer 0 has the capacity and the
 * error rate that were asked for; layer i has capacity x expansion^i and rate
 * x tightening^i (Almeida, Baquero, Preguica, Hutchison: "Scalable Bloom
 * Filters", Information Processing Letters 101, 2007), so the compound rate is
 * at most rate / (1 - tightening).
 *
 * Nothing here locks, logs, or reads a clock, and no answer depends on a global
 * (a thread remembers sizes that it computed): one writer, or any number of
 * readers, at a time. Link with -lbloomery -lm.
 *
 *     struct bloom_params params = { .capacity = 1000, .error_rate = 0.01,
 *                                    .tightening = 0.5, .expansion = 2 };
 *     struct bloom *seen;
 *     bool added;
 *
 *     bloom_select_cpu(false);
 *     if (bloom_new(&params, NULL, &seen) != BLOOM_OK) ...
 *     struct bloom_hash hash = bloom_hash(seen, "apple", 5);
 *     if (bloom_add(seen, NULL, hash, &added) != BLOOM_OK) ...
 *     bloom_contains(seen, hash);    // true, and false for most others
 *     bloom_free(seen, NULL);
 */
#ifndef BLOOMERY_BLOOM_H
#define BLOOMERY_BLOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BLOOM_SEED_BYTES   32
#define BLOOM_LINE_BYTES   64
#define BLOOM_LAYERS_MAX   1024
#define BLOOM_CAPACITY_MAX INT64_MAX
#define BLOOM_BATCH_MAX    128

enum bloom_status {
    BLOOM_OK = 0,
    BLOOM_FULL,       /* a nonscaling filter holds `capacity` items */
    BLOOM_LIMIT,      /* it would exceed bloom_env.size_limit_bytes */
    BLOOM_NOMEM,      /* the allocator returned NULL */
    BLOOM_RATE_ZERO,  /* the next layer's rate would be <= DBL_MIN */
    BLOOM_OVERFLOW,   /* capacity x expansion exceeds BLOOM_CAPACITY_MAX */
    BLOOM_MAX_LAYERS, /* the chain has BLOOM_LAYERS_MAX layers */
    BLOOM_OVERFULL,   /* a union holds more items than a layer's capacity */
    BLOOM_INVALID,    /* a parameter is outside its documented range */
    BLOOM_CORRUPT,    /* not a dump, or a damaged one */
    BLOOM_VERSION     /* an intact dump of a newer format, or of a kind of layer
                         that is not known here */
};

/* Where memory comes from, and how much one filter may have. alloc returns
 * memory for structs (aligned for any type); alloc_lines returns zeroed
 * memory aligned to 64 bytes. Both return NULL when they refuse. The frees get
 * the size that was asked for. NULL as env means the C library's allocator and
 * no limit. Whoever frees or adds passes the env the filter was made with. */
struct bloom_env {
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *ptr, size_t bytes);
    void *(*alloc_lines)(void *ctx, size_t bytes);
    void (*free_lines)(void *ctx, void *ptr, size_t bytes);
    void *ctx;
    uint64_t size_limit_bytes; /* 0 refuses every filter; from INT64_MAX on
                                  there is none. It is compared with what
                                  valkey-bloom would take for such a filter,
                                  so that what fits there fits here, as long as
                                  bloom_size() is at most 1.25 times that;
                                  beyond it with bloom_size() */
};

struct bloom_params {
    uint64_t capacity;  /* items of layer 0, 1..BLOOM_CAPACITY_MAX */
    double error_rate;  /* of layer 0, in (0, 1) */
    double tightening;  /* in (0, 1) */
    uint32_t expansion; /* 0: nonscaling */
    uint32_t stripes;   /* of layer 0, and lines of each stripe: both 0, by the
                           formula; or both as stored, which is refused if it
                           breaks the rate or is larger than the formula's by
                           more than a line */
    uint64_t lines;
    uint8_t seed[BLOOM_SEED_BYTES];
};

/* One item, hashed for one filter; valid for every filter of equal seed. */
struct bloom_hash {
    uint64_t high, low;
};

/* Sums over the layers of one filter. */
struct bloom_info {
    uint64_t capacity; /* items, all layers */
    uint64_t items;    /* adds that were answered "new" */
    uint64_t size;     /* bytes: all that was asked of bloom_env, which is
                          structs + lines x 64, no allocator rounding */
    uint32_t layers;
};

struct bloom;

/* The seed whose XXH3-64 is SEED64, one for each, all alike but for 8 bytes. A
 * filter keeps such a seed at no cost, and any other in 40 bytes. So whoever
 * wants a random one draws a number. */
void bloom_seed(uint64_t seed64, uint8_t ret_seed[BLOOM_SEED_BYTES]);

/* The fixed seed of valkey-bloom, which costs nothing either, and neither do
 * 32 zero bytes. */
extern const uint8_t bloom_seed_fixed[BLOOM_SEED_BYTES];

/* Picks the fastest line check this CPU can run; call once before threads
 * start. Without it the portable one is used. Both give the same bits.
 * Returns its name ("avx2" or "portable"). force_portable is for tests. */
const char *bloom_select_cpu(bool force_portable);

/* Creates an empty filter. On failure *ret_bloom is untouched. Fails with
 * BLOOM_INVALID, BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status bloom_new(const struct bloom_params *params,
                            const struct bloom_env *env,
                            struct bloom **ret_bloom);

/* Frees the filter and its lines. NULL is fine. */
void bloom_free(struct bloom *bloom, const struct bloom_env *env);

/* Hashes one item: XXH3_128bits_withSeed(item, seed64), seed64 being
 * XXH3_64bits of the 32 seed bytes. */
struct bloom_hash bloom_hash(const struct bloom *bloom, const void *item,
                             size_t len);

/* True if the item may have been added; false means that it was not. */
bool bloom_contains(const struct bloom *bloom, struct bloom_hash hash);

/* Adds the item unless the filter already claims to have it; grows the chain
 * when the newest layer is full. *ret_added tells which. On any failure the
 * filter is as before and *ret_added is untouched. Fails with BLOOM_FULL,
 * BLOOM_LIMIT, BLOOM_NOMEM, BLOOM_RATE_ZERO, BLOOM_OVERFLOW,
 * BLOOM_MAX_LAYERS. */
enum bloom_status bloom_add(struct bloom *bloom, const struct bloom_env *env,
                            struct bloom_hash hash, bool *ret_added);

/* The same for up to BLOOM_BATCH_MAX items of one filter, in order and with
 * the same answers; several times faster when the filter is larger than the
 * caches. Hash the batch, starting the fetches of some dozen hashes whenever
 * there are so many; then ask or add.
 * bloom_add_batch() stops at the first item that fails and returns its status;
 * *ret_done is the number of items before it (COUNT when BLOOM_OK), which are
 * answered in ret_added and stay added. */
void bloom_prefetch_batch(const struct bloom *bloom,
                          const struct bloom_hash *hashes, size_t count);
void bloom_contains_batch(const struct bloom *bloom,
                          const struct bloom_hash *hashes, size_t count,
                          bool *ret_found);
enum bloom_status bloom_add_batch(struct bloom *bloom,
                                  const struct bloom_env *env,
                                  const struct bloom_hash *hashes, size_t count,
                                  bool *ret_added, size_t *ret_done);

/* How many items, 1 to BLOOM_BATCH_MAX, should be hashed and asked for or added
 * in one go by who must not take long: fewer if there are very many layers,
 * and few while most pages of a large new layer have never been touched, which
 * the system has to clear at the first touch. */
size_t bloom_together(const struct bloom *bloom);

/* O(1) in the number of layers. */
void bloom_get_info(const struct bloom *bloom, struct bloom_info *ret_info);
uint64_t bloom_items(const struct bloom *bloom);
uint64_t bloom_size(const struct bloom *bloom);

/* The parameters it was made with, seed, lines and stripes of layer 0 (as
 * stored, not recomputed) included. */
void bloom_get_params(const struct bloom *bloom,
                      struct bloom_params *ret_params);

/* Walks the capacities that a filter with these parameters reaches under
 * size_limit_bytes, as valkey-bloom foretells them: by the checks that
 * bloom_new() and bloom_add() make, but for two. It counts the slots for one
 * layer more (src/core/plan.h), so that a filter may get a layer further. And
 * an overflow of the newest capacity x expansion, which only the next layer
 * would meet, ends it with BLOOM_OVERFLOW. Without a target (0) returns
 * BLOOM_OK and the total capacity when the walk ends, whatever else ends it.
 * With a target: BLOOM_OK as soon as the total reaches it, else what stopped it
 * (BLOOM_LIMIT, BLOOM_RATE_ZERO, BLOOM_OVERFLOW, BLOOM_MAX_LAYERS, BLOOM_FULL
 * when nonscaling), or BLOOM_INVALID. *ret_total is set with BLOOM_OK only; it
 * may be NULL. A few microseconds a layer. */
enum bloom_status bloom_project(const struct bloom_params *params,
                                uint64_t size_limit_bytes, uint64_t target,
                                uint64_t *ret_total);

/* Shape and expected rate of one layer, for tools and tests: layer 0 is the
 * oldest. False if there is no such layer. */
struct bloom_layer_info {
    uint64_t capacity, items, lines;
    uint32_t stripes;
    double error_rate; /* expected when it holds its capacity */
};
bool bloom_get_layer(const struct bloom *bloom, uint32_t index,
                     struct bloom_layer_info *ret_layer);

/* The lines of one layer, stripes one after the other, for comparison and
 * storage: lines x stripes x 64 bytes. NULL if there is no such layer. Words
 * are in the machine's byte order. */
const void *bloom_layer_lines(const struct bloom *bloom, uint32_t index,
                              size_t *ret_bytes);

/* The stored form of a filter: parameters, seed, layers and a checksum, the
 * same bytes on every machine; src/core/codec.c draws it. Equal filters with
 * equal incarnations have equal dumps. INCARNATION is any number of the
 * caller's (a server tells two lives of one name apart by it); it is stored
 * and given back. */

/* What bloom_dump() will write. */
uint64_t bloom_dump_bytes(const struct bloom *bloom);

/* Writes exactly bloom_dump_bytes() bytes at RET_BYTES, aligned or not. */
void bloom_dump(const struct bloom *bloom, uint64_t incarnation,
                void *ret_bytes);

/* Makes a filter from a dump. The bytes may come from an enemy: they are
 * checked whole, against each other and against the size limit, before memory
 * is asked for, and what is accepted dumps to the same bytes again. The caller
 * owns *ret_bloom. On failure neither output is touched. Fails with
 * BLOOM_CORRUPT, BLOOM_VERSION, BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status bloom_load(const void *data, size_t len,
                             const struct bloom_env *env,
                             uint64_t *ret_incarnation,
                             struct bloom **ret_bloom);

/* A second filter, equal to the first and independent of it, in ENV's memory
 * and under its limit. On failure *ret_bloom is untouched. Fails with
 * BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status bloom_copy(const struct bloom *bloom,
                             const struct bloom_env *env,
                             struct bloom **ret_bloom);

/* Empties the filter and keeps its properties, seed and first layer's shape
 * included; the memory of all other layers is freed. Writes every line of the
 * first layer. */
void bloom_reset(struct bloom *bloom, const struct bloom_env *env);

/* In what two filters differ so that they have no union, for a message:
 * "seeds", "capacities", "error rates", "tightening ratios", "expansions" or
 * "layer shapes"; NULL if they can be merged. Chains may differ in length. */
const char *bloom_difference(const struct bloom *a, const struct bloom *b);

/* Makes BLOOM the union of itself and COUNT others: it has every item of each,
 * and the chain of the longest. BLOOM may be among the others; who names one
 * twice gets no wrong answer, but a wider bound below.
 *
 * Each layer is united with its equals. Its items are then: as many as its
 * largest part has, if that one's bits are those of the union; else more, and
 * no more than all parts together, and in between what the bits say. An item
 * sets one bit of the m = 64 x lines that each word of a stripe's lines makes,
 * so n items leave m (1 - 1/m)^n of them clear (linear counting: Whang,
 * Vander-Zanden, Taylor, "A linear-time probabilistic counting algorithm for
 * database applications", ACM TODS 15, 1990); n is the nearest number to that
 * for what is clear. It is found by multiplications alone, so that equal
 * filters have equal unions on every machine.
 *
 * A layer that would get more items than its capacity is refused, since it
 * would break the rate. So two chains merge if the full layers of one hold all
 * that the other has in them, which is so if both grew from one copy.
 *
 * Reads all lines twice and writes those that change. On failure the filter is
 * as before. Fails with BLOOM_INVALID (bloom_difference() says why),
 * BLOOM_OVERFULL, BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status bloom_merge(struct bloom *bloom, const struct bloom_env *env,
                              const struct bloom *const *others, size_t count);

/* English text of a status, for messages. */
const char *bloom_status_text(enum bloom_status status);

#ifdef __cplusplus
}
#endif
#endif
