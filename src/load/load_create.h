/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters that commands of RedisBloom make at the source. Here they are made as
 * dumps in RedisBloom's layout, with the source's defaults and its rule for
 * large rates. So every later command has the same effect as at the source: a
 * filter that does not scale takes the same items until it is full. Pure,
 * except load_create_ask().
 */
#pragma once

#include "base/buf.h"
#include "load/load_link.h"

/* How the source makes filters. */
struct load_rule {
    bool known; /* `caps` is known */
    bool caps;  /* RedisBloom 8 stores rates above 0.25 as 0.25 */
    double rate;
    uint64_t capacity, expansion;
};

/* Sets what the command line says, and RedisBloom's defaults for the rest.
 * False: there is a mistake, which was printed. */
bool load_create_begin(struct load *load, struct load_rule *ret_rule);

/* Learns from the name and version of a source, "redis 7.0.15" or "8.0",
 * whether it caps rates. Does nothing if the name is empty, or this is known.
 */
void load_create_version(struct load_rule *rule, struct slice product);

/* Asks a server for its version and its defaults. What it does not tell is not
 * changed. */
void load_create_ask(struct load_link *link, const struct load *load,
                     struct load_rule *rule);

enum load_create {
    LOAD_CREATE_MADE,   /* *ret_value is the filter's dump, without its end */
    LOAD_CREATE_OTHER,  /* the command makes no filter in RedisBloom's way */
    LOAD_CREATE_UNKNOWN /* the source's version, which is unknown, decides what
                           it makes */
};

/* Makes the filter of a command whose key is missing, with no items. The items
 * that the command adds are its last *ret_items words. */
enum load_create load_create_filter(const struct load_rule *rule,
                                    const struct slice *words, size_t count,
                                    struct buf *ret_value, size_t *ret_items);

/* Returns how many items a BF.INSERT of RedisBloom has, which are its last
 * words; 0 if another product has executed it, or it has none. */
size_t load_create_items(const struct slice *words, size_t count);
