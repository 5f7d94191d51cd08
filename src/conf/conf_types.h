/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types of the options' values, and a row of the option table. Data only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* A value must be shorter than this: a list, and any other value. */
enum { CONF_LIST_MAX = 32768, CONF_VALUE_MAX = 1024 };

enum conf_type {
    CONF_BOOL,         /* yes or no */
    CONF_INT,          /* decimal */
    CONF_BYTES,        /* with an optional unit; shown as plain bytes */
    CONF_SHARE,        /* bytes, or percent as a negative number */
    CONF_OCTAL,        /* a file mode */
    CONF_ENUM,         /* one of .choices */
    CONF_STRING,       /* .min to .max bytes */
    CONF_STRINGS,      /* words between blanks, at most .max of them */
    CONF_RATE,         /* a number in (0, 1), shown as written */
    CONF_SECRET,       /* a string that no reply and no log shows */
    CONF_OUTPUT_LIMIT, /* class, hard, soft, seconds; for one class or more */
    CONF_SAVE,         /* pairs of seconds and changes */
    CONF_EVENTS,       /* letters, each for an enum conf_event */
    CONF_PERCENTILES,  /* numbers from 0 to 100 */
};

/* A rate, and the text that set it. */
struct conf_rate {
    char *text;
    double value;
};

/* Limits on the replies that wait for a client. The connection is closed at
 * once above hard_bytes, and after more than soft_seconds above soft_bytes; 0
 * bytes: no limit. */
struct conf_output_limit {
    uint64_t hard_bytes, soft_bytes, soft_seconds;
};

/* The limits of each class of clients. A parsed value may leave classes out:
 * their limits do not change. */
enum conf_output_class {
    CONF_OUTPUT_NORMAL,
    CONF_OUTPUT_REPLICA, /* links to replicas */
    CONF_OUTPUT_PUBSUB,  /* clients that subscribe or monitor */
    CONF_OUTPUT_CLASSES
};
struct conf_output_limits {
    struct conf_output_limit of[CONF_OUTPUT_CLASSES];
    uint64_t given; /* a bit for each class; in struct conf, all */
};

/* When the server saves by itself: if, for some rule, there were at least
 * `changes` changes since the last save, and that is at least `seconds` ago.
 * Unused rules are zero. */
enum { CONF_SAVE_RULES_MAX = 16 };
struct conf_save {
    size_t count;
    struct conf_save_rule {
        uint64_t seconds, changes;
    } rules[CONF_SAVE_RULES_MAX];
};

/* Percentiles, in the order of the option's text. Unused values are zero. */
enum { CONF_PERCENTILES_MAX = 32 };
struct conf_percentiles {
    size_t count;
    double value[CONF_PERCENTILES_MAX];
};

enum conf_when {
    CONF_START,   /* fixed once the server runs */
    CONF_RELOAD,  /* a reload changes it, CONFIG SET cannot: it names a file */
    CONF_RUNTIME, /* CONFIG SET and a reload change it */
};

enum conf_dialect { CONF_DIALECT_VALKEY, CONF_DIALECT_REDIS };
enum conf_sidecar_mode { CONF_SIDECAR_MODE_AVAILABLE, CONF_SIDECAR_MODE_SAFE };
enum conf_missing_slot { CONF_MISSING_SLOT_FAIL, CONF_MISSING_SLOT_EMPTY };
/* The numbers are those of enum bloom_kind, which this room does not include.
 */
enum conf_layout {
    CONF_LAYOUT_NATIVE,
    CONF_LAYOUT_REDISBLOOM,
    CONF_LAYOUT_VALKEYBLOOM
};

enum conf_hash { CONF_HASH_PLAIN, CONF_HASH_KEYED };

enum conf_missing_key { CONF_MISSING_ZERO, CONF_MISSING_ERROR };

enum conf_debug_command {
    CONF_DEBUG_COMMAND_NO,
    CONF_DEBUG_COMMAND_LOCAL,
    CONF_DEBUG_COMMAND_YES,
};
/* The same numbers as in enum tls_auth, which this room does not include. */
enum conf_tls_auth {
    CONF_TLS_AUTH_NO,
    CONF_TLS_AUTH_OPTIONAL,
    CONF_TLS_AUTH_YES
};
/* Two bits select the keys that may be evicted, the other bits the order. */
enum conf_maxmemory_policy {
    CONF_POLICY_NOEVICTION = 0,
    CONF_POLICY_ALLKEYS = 1 << 0,
    CONF_POLICY_VOLATILE = 1 << 1, /* keys with a time to live */
    CONF_POLICY_LRU = 1 << 2,
    CONF_POLICY_LFU = 1 << 3,
    CONF_POLICY_RANDOM = 1 << 4,
    CONF_POLICY_TTL = 1 << 5,
};
enum conf_appendfsync {
    CONF_APPENDFSYNC_ALWAYS,
    CONF_APPENDFSYNC_EVERYSEC,
    CONF_APPENDFSYNC_NO,
};
enum conf_buffer_full { CONF_BUFFER_FULL_WAIT, CONF_BUFFER_FULL_FAIL };

/* The classes of notify-keyspace-events, in the order of their letters
 * KEg$lshzxetdmn. */
enum conf_event {
    CONF_EVENT_KEYSPACE = 1 << 0, /* K: channel __keyspace@<db>__:<key> */
    CONF_EVENT_KEYEVENT = 1 << 1, /* E: channel __keyevent@<db>__:<event> */
    CONF_EVENT_GENERIC = 1 << 2,  /* g: DEL, EXPIRE, RENAME, ... */
    CONF_EVENT_STRING = 1 << 3, /* $ l s h z t: types that do not exist here */
    CONF_EVENT_LIST = 1 << 4,
    CONF_EVENT_SET = 1 << 5,
    CONF_EVENT_HASH = 1 << 6,
    CONF_EVENT_ZSET = 1 << 7,
    CONF_EVENT_EXPIRED = 1 << 8,
    CONF_EVENT_EVICTED = 1 << 9,
    CONF_EVENT_STREAM = 1 << 10,
    CONF_EVENT_MODULE = 1 << 11,   /* d */
    CONF_EVENT_KEY_MISS = 1 << 12, /* m, not in A */
    CONF_EVENT_NEW = 1 << 13,      /* n, not in A */
};

enum { CONF_LOG_NOTHING = LOG_ERROR + 1 }; /* above every log level */

/* C types of the fields. Texts are never NULL, and struct conf owns them. */
#define CONF_FIELD_BOOL         bool
#define CONF_FIELD_INT          int64_t
#define CONF_FIELD_BYTES        uint64_t
#define CONF_FIELD_SHARE        int64_t
#define CONF_FIELD_OCTAL        unsigned
#define CONF_FIELD_ENUM         int
#define CONF_FIELD_STRING       char *
#define CONF_FIELD_STRINGS      char *
#define CONF_FIELD_RATE         struct conf_rate
#define CONF_FIELD_SECRET       char *
#define CONF_FIELD_OUTPUT_LIMIT struct conf_output_limits
#define CONF_FIELD_SAVE         struct conf_save
#define CONF_FIELD_EVENTS       uint32_t
#define CONF_FIELD_PERCENTILES  struct conf_percentiles

struct conf_choice {
    const char *name; /* NULL ends the list */
    int value;
};

struct conf_row {
    const char *name;    /* as in CONFIG GET: "bf.bloom-capacity" */
    const char *section; /* of the file */
    const char *preset;  /* the default, as text */
    const char *text;    /* one or two sentences for the documentation */
    const struct conf_choice *choices; /* CONF_ENUM */
    const char *only;                  /* why only the default is accepted */
    const char *bad_range;             /* error text for CONF_RATE, STRINGS */
    const char *base_name; /* CONF_STRING that is a name in a directory: the
                              kind of thing that it names, for the error text */
    int64_t min, max;
    size_t offset, size; /* of the field in struct conf */
    int file; /* CONF_SECRET: the option, a CONF_STRING, that may name a file
                 with the value; 0: none */
    enum conf_type type;
    enum conf_when when;
    bool units;     /* a CONF_INT that takes units, such as 64mb, too */
    bool host_port; /* a CONF_STRINGS that is a host and a port, or empty */
    bool alias;     /* a second name for the field of another row. A name from
                       RedisBloom has RedisBloom's range and error texts */
};
