/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scalable Bloom filter of Bloomery, as a library (libbloomery).
 *
 * A filter is a chain of layers. Each native layer is a striped split-block
 * filter: L stripes of 64-byte lines; an item has one line in every stripe and
 * one bit in each of the 8 words of that line. Layers of the foreign kinds have
 * the bits of RedisBloom or valkey-bloom, and give the same answers. From a
 * filter of the deletable kind, items can be deleted. Layer 0 has the capacity
 * and the error rate of the parameters; layer i has capacity x expansion^i and
 * rate x tightening^i (Almeida, Baquero, Preguica, Hutchison: "Scalable Bloom
 * Filters", Information Processing Letters 101, 2007), so the compound rate is
 * at most rate / (1 - tightening).
 *
 * The library does not lock, log or read a clock, and has no global state that
 * changes an answer, except secrets (bloom_use_secret()). A filter may have one
 * writer, or any number of readers, at a time. Wrong use, such as a damaged
 * struct, aborts. Compile and link with what `pkg-config --cflags --libs
 * libbloomery` prints.
 *
 * A program that was linked with this version works with every later
 * libbloomery.so.1. Structs that may get more members begin with struct_size.
 * The caller sets it to the sizeof of the struct, so that each side knows which
 * members the other has:
 *   - Where the library reads a struct, a member that only the library knows
 *     counts as 0. A member that only the caller knows must be 0, else the call
 *     fails with BLOOM_INVALID.
 *   - Where the library writes a struct, it leaves struct_size as it is, and
 *     sets a member that only the caller knows to 0. It aborts if struct_size
 *     is less than in version 1.
 * All other structs stay as they are.
 *
 *     struct bloom_params params = { .struct_size = sizeof(params),
 *                                    .capacity = 1000, .error_rate = 0.01,
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
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define BLOOM_SEED_BYTES   32
#define BLOOM_LINE_BYTES   64
#define BLOOM_LAYERS_MAX   1024
#define BLOOM_CAPACITY_MAX INT64_MAX
#define BLOOM_BATCH_MAX    128
#define BLOOM_SECRET_BYTES 16

enum bloom_status {
    BLOOM_OK = 0,
    BLOOM_FULL,       /* a nonscaling filter has `capacity` items */
    BLOOM_LIMIT,      /* the filter would exceed bloom_env.size_limit_bytes */
    BLOOM_NOMEM,      /* the allocator returned NULL */
    BLOOM_RATE_ZERO,  /* the next layer's rate would be <= DBL_MIN */
    BLOOM_OVERFLOW,   /* capacity x expansion exceeds BLOOM_CAPACITY_MAX */
    BLOOM_MAX_LAYERS, /* the chain has BLOOM_LAYERS_MAX layers */
    BLOOM_OVERFULL,   /* a layer of a union would exceed its capacity */
    BLOOM_INVALID,    /* a parameter is outside its documented range */
    BLOOM_CORRUPT,    /* not a dump, or a damaged one */
    BLOOM_VERSION,    /* an intact dump of a newer format, or with layers of an
                         unknown kind */
    BLOOM_SECRET      /* a filter that is hashed with a secret, and this process
                         has none, or another: bloom_use_secret() */
};

/* The allocator, and the size limit of one filter. alloc returns memory for
 * structs (aligned for any type); alloc_lines returns zeroed memory aligned to
 * 64 bytes. Both return NULL when they refuse. free and free_lines get the size
 * that was allocated. NULL as env means the C library's allocator and no limit.
 * All calls for a filter pass the env that it was made with. */
struct bloom_env {
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *ptr, size_t bytes);
    void *(*alloc_lines)(void *ctx, size_t bytes);
    void (*free_lines)(void *ctx, void *ptr, size_t bytes);
    void *ctx;
    uint64_t size_limit_bytes; /* 0 refuses every filter; INT64_MAX and more is
                                  no limit. In the kinds redisbloom and ageing
                                  it limits size_bytes of bloom_info (of an
                                  ageing filter with all generations). In the
                                  other kinds it limits the filter's size in
                                  valkey-bloom, so that a filter that fits there
                                  fits here. If size_bytes is more than 1.25
                                  times that size, it limits size_bytes */
};

/* The kind of a filter: how its items are hashed, where their bits are, and how
 * it grows. */
enum bloom_kind {
    BLOOM_NATIVE = 0,      /* the striped layers described above */
    BLOOM_REDISBLOOM = 1,  /* as RedisBloom 2.2 and later, bit for bit */
    BLOOM_VALKEYBLOOM = 2, /* as valkey-bloom 1.0, bit for bit */
    BLOOM_DELETABLE = 3,   /* striped, with a collision map: bloom_delete() */
    BLOOM_AGEING = 4       /* native layers that forget: bloom_add_at() */
};

/* Flag: a nonscaling filter of kind redisbloom was made by EXPANSION 0. Without
 * the flag it was made by NONSCALING, and its header has an expansion of 2. */
enum { BLOOM_EXPANSION_ZERO = 1 };

/* Flag: items are hashed with a secret of the process (bloom_use_secret(),
 * bloom_add_secret()), so that nobody without the secret can choose items that
 * raise the error rate. Filters of the foreign kinds cannot have this flag.
 */
enum { BLOOM_KEYED = 2 };

struct bloom_params {
    size_t struct_size; /* sizeof(struct bloom_params) */
    uint64_t capacity;  /* items of layer 0, 1..BLOOM_CAPACITY_MAX */
    double error_rate;  /* of layer 0, in (0, 1) */
    double tightening;  /* in (0, 1); in kind redisbloom 0.5 */
    uint32_t expansion; /* 0: nonscaling */
    uint32_t kind;      /* enum bloom_kind */
    uint64_t lines;     /* lines in each stripe of layer 0, and in `stripes` the
                           number of stripes; in the foreign kinds the numbers
                           of bits and of hashes. Both 0: the formula chooses
                           them. Else give both as bloom_get_params() returned
                           them: they are refused if the rate would be higher,
                           or the lines exceed the formula's by more than one */
    uint32_t stripes;
    uint32_t flags; /* BLOOM_EXPANSION_ZERO or BLOOM_KEYED; later versions may
                       define bits */
    uint8_t seed[BLOOM_SEED_BYTES]; /* without effect in kind redisbloom */
    uint32_t region;   /* of kind deletable: words that share a bit of the
                          collision map, 1, 2, 4 or 8; else 0. The map takes
                          1/region of the lines' size. Once two items share a
                          bit in such a region, deletions clear no bit in it */
    uint32_t reserved; /* 0 */
    /* The next three fields are for kind ageing, else 0. In it, `capacity` is
     * for the items of `seconds`, `error_rate` for all generations together. */
    uint32_t seconds;     /* an item is found for at least so long */
    uint32_t generations; /* in `seconds`, 1 to 64: an item is found for at most
                             seconds x (1 + 1 / generations) */
    uint64_t now_ms;      /* the time when the filter is made, in ms since 1970;
                             bloom_get_params() returns the time when the
                             newest generation began */
    uint64_t fingerprint; /* of the secret of a keyed filter; 0: the secret that
                             bloom_use_secret() has set */
};

/* One item, hashed for one filter; valid for all filters of the same kind and
 * seed. */
struct bloom_hash {
    uint64_t high, low;
};

/* Sums over the layers of one filter. */
struct bloom_info {
    size_t struct_size;  /* sizeof(struct bloom_info) */
    uint64_t capacity;   /* items, all layers */
    uint64_t items;      /* adds that were answered "new", without deletions
                            that were answered "gone" */
    uint64_t size_bytes; /* allocated from bloom_env: structs + lines x 64,
                            without the allocator's rounding */
    uint32_t layers;
    uint32_t kind; /* enum bloom_kind */
};

/* One layer of one filter. In kind deletable, `items` is the used capacity: the
 * cost of all adds, less what deletions have given back by clearing bits.
 *
 * The error rate of a native or deletable layer: in a stripe whose line has J
 * items, each of which sets one of 64 bits in each of 8 words, an absent item
 * is found with probability (1 - (63/64)^J)^8. J has the binomial distribution
 * B(items, 1 / lines). The stripes are independent, so the layer's rate is the
 * mean probability to the power of the number of stripes (cf. Putze, Sanders,
 * Singler: "Cache-, Hash- and Space-Efficient Bloom Filters", WEA 2007). In a
 * foreign kind it is the rate that the layer was made for. */
struct bloom_layer_info {
    size_t struct_size; /* sizeof(struct bloom_layer_info) */
    uint64_t capacity, items;
    uint64_t lines;    /* in each stripe, 64 bytes each; foreign kinds: bits */
    uint32_t stripes;  /* foreign kinds: hashes */
    uint32_t hashes;   /* bits that an item sets: native 8 in each stripe */
    double error_rate; /* expected when the layer is full */
};

struct bloom;

/* Derives a seed whose XXH3-64 is SEED64; derived seeds differ in 8 bytes only.
 * A filter stores such a seed at no cost, and any other in 40 bytes. So derive
 * random seeds from a random number. */
void bloom_seed(uint64_t seed64, uint8_t ret_seed[BLOOM_SEED_BYTES]);

/* The fixed seed of valkey-bloom. A filter stores it, or a seed of 32 zero
 * bytes, at no cost. */
extern const uint8_t bloom_seed_fixed[BLOOM_SEED_BYTES];

/* Selects the fastest code for this CPU, before threads start. Without this
 * call the portable code runs. Both give the same bits. Returns the name of the
 * code ("avx2" or "portable"). force_portable is for tests. */
const char *bloom_select_cpu(bool force_portable);

/* Sets the secret of all keyed filters (BLOOM_KEYED) of this process, before
 * threads start and before there is such a filter. NULL: none, as without this
 * call. Such filters, and their dumps, can be made and loaded only with the
 * secret that they were made with: a server has it in its hash-secret-file, as
 * 32 hexadecimal digits. The dumps carry a fingerprint of it only. */
void bloom_use_secret(const uint8_t secret[BLOOM_SECRET_BYTES]);

/* Adds a secret for filters that were made with it. New filters still get the
 * secret of bloom_use_secret(). Call it at any time, in any thread. Fails with
 * BLOOM_LIMIT if 64 other secrets were added. */
enum bloom_status bloom_add_secret(const uint8_t secret[BLOOM_SECRET_BYTES]);

/* Creates an empty filter. On failure *ret_bloom is untouched. Fails with
 * BLOOM_INVALID, BLOOM_LIMIT, BLOOM_NOMEM, BLOOM_SECRET. */
enum bloom_status bloom_new(const struct bloom_params *params,
                            const struct bloom_env *env,
                            struct bloom **ret_bloom);

/* Frees the filter and its lines. NULL is fine. */
void bloom_free(struct bloom *bloom, const struct bloom_env *env);

/* Hashes one item. In native filters this is XXH3_128bits_withSeed(item,
 * seed64), where seed64 is the XXH3_64bits of the 32 seed bytes. In keyed
 * filters it is a SipHash-1-3, with a key of secret and seed. */
struct bloom_hash bloom_hash(const struct bloom *bloom, const void *item,
                             size_t len);

/* Returns true if the item may have been added, false if it was not. */
bool bloom_contains(const struct bloom *bloom, struct bloom_hash hash);

/* Adds the item unless the filter seems to have it already, and grows the chain
 * when the newest layer is full. *ret_added: whether it was added. On failure
 * the filter is as before and *ret_added is untouched. Fails with BLOOM_FULL,
 * BLOOM_LIMIT, BLOOM_NOMEM, BLOOM_RATE_ZERO, BLOOM_OVERFLOW,
 * BLOOM_MAX_LAYERS. */
enum bloom_status bloom_add(struct bloom *bloom, const struct bloom_env *env,
                            struct bloom_hash hash, bool *ret_added);

/* Deletes an item from a filter of kind deletable. Returns 1 if it seems to be
 * there no longer; 0 if it was not there; and -1, and changes nothing, if it
 * still seems to be there, since other items share all of its bits, or more
 * than one layer has it. An item that was added twice stays for good. Never
 * delete an item that was not added, or was deleted before: if it seems to be
 * there by chance, deleting it takes bits from items that are there. */
int bloom_delete(struct bloom *bloom, struct bloom_hash hash);

/* Do what bloom_contains() and bloom_add() do, at a time in ms since 1970. A
 * filter of kind ageing has an item for `seconds` after its last add: an item
 * that is there already is added again, to the generation of this time, and
 * *ret_added is false. The latest time of an add is the filter's time; an
 * earlier time counts as this one. Calls without a time use the filter's time,
 * so bloom_contains() may find items for longer. */
bool bloom_contains_at(const struct bloom *bloom, struct bloom_hash hash,
                       uint64_t now_ms);
enum bloom_status bloom_add_at(struct bloom *bloom, const struct bloom_env *env,
                               struct bloom_hash hash, uint64_t now_ms,
                               bool *ret_added);

/* Ask and add up to BLOOM_BATCH_MAX items of one filter, in order and with the
 * same answers as one by one; several times faster if the filter is larger than
 * the caches. Hash the batch, and prefetch whenever some dozen hashes are
 * ready; then ask or add. bloom_add_batch() stops at the first item that fails
 * and returns its status; *ret_done is the number of items before it (COUNT
 * when BLOOM_OK), which are answered in ret_added and stay added. */
void bloom_prefetch_batch(const struct bloom *bloom,
                          const struct bloom_hash *hashes, size_t count);
void bloom_contains_batch(const struct bloom *bloom,
                          const struct bloom_hash *hashes, size_t count,
                          bool *ret_found);
enum bloom_status bloom_add_batch(struct bloom *bloom,
                                  const struct bloom_env *env,
                                  const struct bloom_hash *hashes, size_t count,
                                  bool *ret_added, size_t *ret_done);

/* Counts the distinct items among COUNT hashed ones that are not in the filter,
 * and adds none. Items with equal hashes are one item. At most this many adds
 * would be answered "new": some items may seem to be there only because of
 * items that were added just before. Allocates at most 32 bytes an item while
 * it runs. On failure *ret_count is untouched. Fails with BLOOM_NOMEM. */
enum bloom_status bloom_count_new(const struct bloom *bloom,
                                  const struct bloom_env *env,
                                  const struct bloom_hash *hashes, size_t count,
                                  size_t *ret_count);

/* Sets *ret_info except its struct_size. Takes the same time for any number of
 * layers. */
void bloom_get_info(const struct bloom *bloom, struct bloom_info *ret_info);

/* Sets *ret_params except its struct_size: the parameters of the filter, its
 * seed, and the lines and stripes of layer 0. */
void bloom_get_params(const struct bloom *bloom,
                      struct bloom_params *ret_params);

/* Sets *ret_layer except its struct_size: the shape and expected rate of one
 * layer; layer 0 is the oldest. Returns false if there is no such layer. */
bool bloom_get_layer(const struct bloom *bloom, uint32_t index,
                     struct bloom_layer_info *ret_layer);

/* A dump is the payload of DUMP and RESTORE. A native filter has Bloomery's own
 * form, with parameters, seed, layers and a checksum; src/core/codec_head.c
 * draws it. A filter of a foreign kind has the form of that product, which a
 * Redis or Valkey with the module restores too. Dumps are the same on every
 * machine, and equal filters have equal dumps. */

/* Returns the length of the dump. */
uint64_t bloom_dump_bytes(const struct bloom *bloom);

/* Writes exactly bloom_dump_bytes() bytes at RET_BYTES, aligned or not. */
void bloom_dump(const struct bloom *bloom, void *ret_bytes);

/* Makes a filter from a dump, or from what DUMP returns for a filter of
 * RedisBloom or valkey-bloom. The bytes may be hostile: all of them are
 * checked, against each other and against the size limit, before memory is
 * allocated for the filter. The caller owns *ret_bloom. On failure it is
 * untouched. Fails with BLOOM_CORRUPT, BLOOM_VERSION, BLOOM_MAX_LAYERS (the
 * modules' forms only), BLOOM_LIMIT, BLOOM_NOMEM, BLOOM_SECRET. */
enum bloom_status bloom_load(const void *data, size_t len,
                             const struct bloom_env *env,
                             struct bloom **ret_bloom);

/* A reply of BF.SCANDUMP: its iterator and its bytes. */
struct bloom_chunk {
    int64_t iterator;
    const void *data;
    size_t len;
};

/* Makes a filter from the replies of BF.SCANDUMP of a Bloomery or a Redis
 * server, the header first, the others in any order. NEXT sets *ret_chunk,
 * whose bytes stay valid until it is called again. It is called until the
 * filter is complete, so the last reply, with iterator 0, is not needed. If it
 * returns false, or a chunk is damaged, differs from bytes that have come
 * already, or leaves more than 255 gaps, the call fails with BLOOM_CORRUPT.
 * Hostile bytes are checked as in bloom_load(), with the same failures. */
enum bloom_status bloom_load_chunks(bool (*next)(void *ctx,
                                                 struct bloom_chunk *ret_chunk),
                                    void *ctx, const struct bloom_env *env,
                                    struct bloom **ret_bloom);

/* Makes an equal, independent filter, in ENV's memory and under its limit. On
 * failure *ret_bloom is untouched. Fails with BLOOM_LIMIT, BLOOM_NOMEM. */
enum bloom_status bloom_copy(const struct bloom *bloom,
                             const struct bloom_env *env,
                             struct bloom **ret_bloom);

/* Empties the filter. Its parameters, seed and first layer stay; all other
 * layers are freed. Writes every line of the first layer. */
void bloom_reset(struct bloom *bloom, const struct bloom_env *env);

/* Returns the difference because of which two filters have no union, for a
 * message: "layouts", "hashes", "hash secrets", "seeds", "capacities", "error
 * rates", "tightening ratios", "expansions", "regions", "ageing times" or
 * "layer shapes"; NULL if there is none. Chains may differ in length. */
const char *bloom_difference(const struct bloom *a, const struct bloom *b);

/* Makes BLOOM the union of itself and COUNT others: it has every item of each,
 * and the chain of the longest. BLOOM may be among the others. A filter that is
 * named twice makes no answer wrong, but the estimate below less exact.
 *
 * Each layer is united with the same layer of the others. If all bits of the
 * union are those of one part, it has as many items as its largest part. Else
 * it has more, at most as many as all parts together; in these bounds the
 * number is estimated from the bits. An item sets one of the m = 64 x lines
 * bits at each position of the words in a stripe, so n items leave m (1 -
 * 1/m)^n of them clear (linear counting: Whang, Vander-Zanden, Taylor, "A
 * linear-time probabilistic counting algorithm for database applications", ACM
 * TODS 15, 1990). The estimate is the n that fits the clear bits best. It is
 * computed by multiplications alone, so that equal filters have equal unions on
 * every machine.
 *
 * A layer with more items than its capacity is refused, since its error rate
 * would be too high. So two chains can be merged if the full layers of one have
 * all items that the other has in them, as when both grew from one copy.
 *
 * The items of deletable and ageing filters are not estimated but added up. In
 * deletable ones, a bit that two parts have is a collision: an item that is in
 * both cannot be deleted.
 *
 * Reads all lines twice and writes those that change. On failure the filter is
 * as before. Fails with BLOOM_INVALID (bloom_difference() says why; if it does
 * not, the filters are of a foreign kind), BLOOM_OVERFULL, BLOOM_LIMIT,
 * BLOOM_NOMEM. */
enum bloom_status bloom_merge(struct bloom *bloom, const struct bloom_env *env,
                              const struct bloom *const *others, size_t count);

/* Returns an English text of a status, for messages. */
const char *bloom_status_text(enum bloom_status status);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
