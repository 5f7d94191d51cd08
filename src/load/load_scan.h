/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the filters of a running server, by SCAN, and fetches their pieces, by
 * BF.SCANDUMP. All functions return false if the tool must stop; the reason was
 * printed.
 */
#pragma once

#include "load/load_link.h"

struct load_scan {
    struct load *load;
    struct load_link link; /* to the source; no reply is awaited in a visit */
    uint64_t db;           /* the selected database */
    struct buf names;      /* items: names of filters; some may come again */
    bool asks_types;       /* the source's SCAN has no TYPE */
    bool has_expiretime;   /* it has PEXPIRETIME: Redis 7, Valkey */
    bool (*visit)(void *ctx);
    void *ctx;
};

/* Connects to load->from. */
bool load_scan_open(struct load *load, struct load_scan *ret_scan);
void load_scan_close(struct load_scan *scan);

/* Calls visit for some names at a time, which are in scan->names, of --db or of
 * all databases, until visit returns false. visit may change scan->names. */
bool load_scan_all(struct load_scan *scan, bool (*visit)(void *ctx), void *ctx);

/* Prints an unexpected reply of the source, and returns false. */
bool load_scan_complain(struct load_scan *scan, struct slice reply);

/* Asks when a key expires, in ms since 1970: -1 for never, -2 if the key is
 * missing. A source that only tells the time that is left gives this moment
 * less exactly, by the time that the reply took. The two parts may be used
 * separately: the command to send, and the reading of its reply. */
const char *load_scan_expiry_command(const struct load_scan *scan);
bool load_scan_take_expiry(struct load_scan *scan, int64_t *ret_at_ms);
bool load_scan_expiry(struct load_scan *scan, struct slice key,
                      int64_t *ret_at_ms);

/* Asks for the piece at an iterator. Returns the next iterator and the bytes,
 * which are valid until the next question; after a refusal, UINT64_MAX and its
 * text. */
bool load_scan_piece(struct load_scan *scan, struct slice key,
                     uint64_t iterator, uint64_t *ret_iterator,
                     struct slice *ret_data);
