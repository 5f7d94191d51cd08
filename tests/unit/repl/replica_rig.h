/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica, and a primary that sends what the test tells it to send.
 */
#pragma once

#include "../test.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal/group.h"
#include "repl/replica.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_ID     "00112233445566778899aabbccddeeff00112233"
#define PRIMARY_ID "9999999999999999999999999999999999999999"
#define ABOVE_ID   "8888888888888888888888888888888888888888"
#define HISTORY    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_TEXT   "00000000000000ab"

enum { KEY = 0xab, TIMEOUT_MS = 10000, START_MS = 50000 };

struct rig {
    struct replica *replica;
    struct replica_options options;
    uint64_t now_ms;
    uint64_t number; /* of the last link dialled */
    bool linked;     /* dialled and not closed */
    bool paused;
    unsigned dials, closes, ends, cancels, applied, chained;
    char host[64];
    unsigned port;
    struct buf sent;
    bool no_memory; /* sending fails */
    struct replica_place place;
    enum replica_applied next; /* answer of apply */
    bool takes_load, load_has_room;
    struct wire_answer answer;
    struct buf loaded;
    uint64_t key;
    uint64_t known;              /* a fingerprint that is not asked for */
    enum replica_learned learns; /* answer of learn */
    struct buf learnt;           /* "fingerprint=digits;" */
    struct buf held;             /* what the primary holds, the last text */
    bool refuses_holdings;
};
struct rig *rig_new(void);

/* asks: for hash secrets. */
struct rig *rig_new_asking(bool asks);
void rig_free(struct rig *rig);
void follow(struct rig *rig);

/* Returns the commands that the replica has sent since the last call, without
 * their RESP framing. */
const char *said(struct rig *rig);
void hear_bytes(struct rig *rig, struct slice bytes);
void hear(struct rig *rig, const char *text);
void tick(struct rig *rig, uint64_t ms);
const char *reason_of(const struct rig *rig);
enum status_link state_of(const struct rig *rig);

/* Runs the handshake up to PSYNC, which is not answered yet. */
void shake_hands(struct rig *rig);
void expect_psync(struct rig *rig);

/* The other side closes the link. */
void end_link(struct rig *rig);

/* Dials again after a pause, without having given up a load. */
void expect_redial(struct rig *rig);

/* Dials again after a pause and asks for everything, or to go on. */
void expect_full_psync(struct rig *rig);
void expect_partial_psync(struct rig *rig);
void expect_ack(struct rig *rig, uint64_t position);
void connect_partial(struct rig *rig);
void make_group(struct buf *out, uint64_t sequence, size_t item_bytes);
void hear_group(struct rig *rig, uint64_t sequence, size_t item_bytes);

/* Begins a snapshot, and sends its first bytes. */
void connect_full(struct rig *rig);

/* Reports that the snapshot was loaded. */
void load(struct rig *rig);
