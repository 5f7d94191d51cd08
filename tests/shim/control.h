/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file that a test shares with the servers under test, one after another.
 * It has rules that the test can set at any time, counters, and in record mode
 * a log of all calls with effects, in order. tests/lib/shim.py reads and writes
 * the same layout; every field has a fixed width and place.
 *
 *      0  magic, flags, figures
 *    256  rules
 *   2048  counts[call][kind]
 *   7168  the lock
 *   8192  log: consecutive records, up to log_used
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONTROL_MAGIC = 0x6d696873, /* "shim" */
    RULES = 16,
    RULES_AT = 256,
    COUNTS_AT = 2048,
    LOCK_AT = 7168,
    LOG_AT = 8192
};

/* What was called. */
enum call {
    CALL_OPEN, /* to read, or a directory */
    CALL_CREATE,
    CALL_READ,
    CALL_WRITE,
    CALL_SYNC,
    CALL_RENAME,
    CALL_LINK,
    CALL_UNLINK,
    CALL_MKDIR,
    CALL_TRUNCATE,
    CALL_SEND,
    CALL_OTHER, /* something that no crash image can model yet */
    CALL_ALLOC, /* of memory: these three of any thread, kind NONE */
    CALL_MAP,
    CALL_THREAD, /* a new one */
    CALLS = 16
};

/* On what, by its name below the data directory. */
enum kind {
    KIND_NONE,
    KIND_LOCK,
    KIND_SNAPSHOT,
    KIND_SNAPSHOT_TMP,
    KIND_BASE,
    KIND_BASE_TMP,
    KIND_INCR,
    KIND_INCR_TMP,
    KIND_MANIFEST,
    KIND_MANIFEST_TMP,
    KIND_DIR,
    KIND_JOURNAL_DIR,
    KIND_OTHER,
    KIND_SOCKET,
    KIND_MARK,
    KIND_ROOM, /* its blocks are reserved, so a full disk takes it */
    KINDS = 16
};

enum action {
    ACTION_KILL_BEFORE = 1,
    ACTION_KILL_AFTER,
    ACTION_FAIL,
    ACTION_DELAY, /* before the call, until the rule is disarmed at most */
    ACTION_LIE    /* a sync that says 0 and does nothing: a server's bug */
};

enum rule_flag {
    RULE_FOR_GOOD = 1, /* every call from the nth on */
    RULE_SHORT = 2,    /* a write that fails writes half of its bytes first */
    RULE_EVERY = 4     /* the nth call, and then every nth */
};

struct rule {
    uint32_t armed;
    uint32_t action;
    uint32_t calls, kinds; /* bits */
    uint32_t flags;
    uint32_t error;
    uint32_t delay_ms;
    uint32_t unused;
    uint64_t nth; /* 1: the next call that matches */
    uint64_t seen;
    uint64_t fired;
    uint32_t fired_call, fired_kind; /* of the last time */
};

struct control {
    uint32_t magic;
    uint32_t ready;      /* the lock is initialised */
    uint32_t record;     /* keep a log */
    uint32_t overflow;   /* the log was too small */
    uint32_t skip_syncs; /* do not really sync: quicker, for recordings */
    uint32_t unused;
    uint64_t number;       /* of file calls so far */
    uint64_t log_capacity; /* bytes behind LOG_AT */
    uint64_t log_used;
    uint64_t handles; /* given to opened files so far */
};

/* A record of the log; data follows, padded to 8 bytes. */
enum record_type {
    RECORD_CREATE = 1, /* name; a: whether it was new, b: truncated */
    RECORD_WRITE,      /* a: offset, data: bytes */
    RECORD_SYNC_BEGIN,
    RECORD_SYNC_END, /* of a sync that succeeded; a: number of its begin */
    RECORD_SYNC_FAILED,
    RECORD_RENAME, /* from NUL to */
    RECORD_LINK,   /* from NUL to */
    RECORD_UNLINK,
    RECORD_MKDIR,
    RECORD_TRUNCATE,   /* a: size */
    RECORD_SEND_BEGIN, /* handle: the client's port, a: bytes wanted, b: the
                          server's port */
    RECORD_SEND_END,   /* the same, a: bytes that the socket took */
    RECORD_OPENED,     /* something that was there; name */
    RECORD_OTHER       /* no image of what follows would be right */
};

struct record {
    uint32_t size; /* with data and padding */
    uint32_t data_size;
    uint8_t type, call, kind, unused;
    uint32_t handle; /* of the opened file, or the client's port */
    uint64_t number;
    uint64_t mono_ns;
    int64_t a, b;
};

struct layout {
    union {
        struct control control;
        char control_room[RULES_AT];
    };
    union {
        struct rule rules[RULES];
        char rules_room[COUNTS_AT - RULES_AT];
    };
    union {
        uint64_t counts[CALLS][KINDS];
        char counts_room[LOCK_AT - COUNTS_AT];
    };
    union {
        pthread_mutex_t lock;
        char lock_room[LOG_AT - LOCK_AT];
    };
    char log[];
};

/* ---- for the library ----------------------------------------------------- */

extern struct layout *control_shared; /* NULL: nothing is to be done */

bool control_open(const char *path);
void control_lock(void);
void control_unlock(void);

/* What is to happen with one call. */
struct step {
    enum call call;
    enum kind kind;
    uint64_t number;
    int error; /* fail with this, or 0 */
    bool shorten, lie, kill_after;
};

/* Counts a call before it is made, waits or kills if a rule says so, and
 * returns what else must happen. */
struct step control_begin(enum call call, enum kind kind);
void control_finish(const struct step *step);

struct bytes {
    const void *data;
    size_t len;
};

struct record control_record(const struct step *step, enum record_type type);

/* Adds a record to the log in record mode. Under the lock. other may be NULL.
 */
void control_append(struct record record, const struct bytes *pieces,
                    size_t count);
void control_append_names(struct record record, const char *name,
                          const char *other);
