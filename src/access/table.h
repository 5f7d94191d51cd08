/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A command is one row of tbl/commands.def. Dispatch, arity and key checks,
 * locks, COMMAND INFO/DOCS/GETKEYS, ACL categories, help and man page all come
 * from it. A subcommand is a row named "CONTAINER|SUB". The rows name their
 * handlers, so they are put together above the handlers (command/rows.h) and
 * given to command_table_init at start. Constant after start.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdint.h>

struct request;

typedef enum err (*command_fn)(struct request *req);

/* Executes COUNT requests that differ only in their last word, the item; ARGV
 * has the words of all requests, one request after the other. Writes the reply
 * and adds the effect of each. Returns how many it has executed. That may be
 * fewer than COUNT, to bound its time, and 0 if the first one needs the row's
 * handler, which creates filters and returns errors. */
typedef uint32_t (*command_many_fn)(struct request *req,
                                    const struct slice *argv, uint32_t count);

/* Prepares COUNT such requests, before their stripe is locked exclusively,
 * without reading what the lock protects. */
typedef void (*command_ready_fn)(struct request *req, const struct slice *argv,
                                 uint32_t count);

/* Fetches into the cache the lines of an entry's filter that a command will
 * read. */
struct entry;
typedef void (*command_ahead_fn)(const struct entry *entry,
                                 const struct slice *argv, size_t argc);

/* Makes the kernel clear the pages that adds of these items will write. Called
 * under the key's lock. Returns false if the entry's filter has no untouched
 * pages. */
typedef bool (*command_touch_fn)(const struct entry *entry,
                                 const struct slice *items, size_t count);

/* In the order in which COMMAND INFO lists them. */
enum command_flag {
    CMD_WRITE = 1 << 0,
    CMD_READONLY = 1 << 1,
    CMD_DENYOOM = 1 << 2,
    CMD_MODULE = 1 << 3,
    CMD_ADMIN = 1 << 4,
    CMD_PUBSUB = 1 << 5,
    CMD_NOSCRIPT = 1 << 6,
    CMD_BLOCKING = 1 << 7,
    CMD_LOADING = 1 << 8,
    CMD_STALE = 1 << 9,
    CMD_SKIP_MONITOR = 1 << 10,
    CMD_SKIP_SLOWLOG = 1 << 11,
    CMD_ASKING = 1 << 12,
    CMD_FAST = 1 << 13,
    CMD_NO_AUTH = 1 << 14,
    CMD_MAY_REPLICATE = 1 << 15,
    CMD_SENTINEL = 1 << 16,
    CMD_ONLY_SENTINEL = 1 << 17,
    CMD_NO_MANDATORY_KEYS = 1 << 18,
    CMD_PROTECTED = 1 << 19,
    CMD_NO_ASYNC_LOADING = 1 << 20,
    CMD_NO_MULTI = 1 << 21,
    CMD_MOVABLE_KEYS = 1 << 22,
    CMD_ALLOW_BUSY = 1 << 23,
    /* Internal: the command keeps memory for its client or for a key. */
    CMD_KEEPS = 1 << 24,
    /* Internal: it moves a filter, or changes one as a whole, so that a walk
     * has to copy the result again (keyspace/walk.h). */
    CMD_REMAKES = 1 << 25,
    /* Internal: the log says which user ran it (engine/audit.h). */
    CMD_AUDITED = 1 << 26,
};

/* The categories in the order of Redis's ACL CAT, then bloom. Some belong to
 * types that Bloomery does not have. */
enum acl_category {
    ACL_KEYSPACE = 1 << 0,
    ACL_READ = 1 << 1,
    ACL_WRITE = 1 << 2,
    ACL_SET = 1 << 3,
    ACL_SORTEDSET = 1 << 4,
    ACL_LIST = 1 << 5,
    ACL_HASH = 1 << 6,
    ACL_STRING = 1 << 7,
    ACL_BITMAP = 1 << 8,
    ACL_HYPERLOGLOG = 1 << 9,
    ACL_GEO = 1 << 10,
    ACL_STREAM = 1 << 11,
    ACL_PUBSUB = 1 << 12,
    ACL_ADMIN = 1 << 13,
    ACL_FAST = 1 << 14,
    ACL_SLOW = 1 << 15,
    ACL_BLOCKING = 1 << 16,
    ACL_DANGEROUS = 1 << 17,
    ACL_CONNECTION = 1 << 18,
    ACL_TRANSACTION = 1 << 19,
    ACL_SCRIPTING = 1 << 20,
    ACL_BLOOM = 1 << 21,
};

/* Returns the name of the category with this bit; NULL behind the last one. */
extern const char *const command_category_names[];
const char *command_category_name(unsigned bit);

/* What dispatch locks before the handler runs. */
enum command_lock {
    LOCK_NONE, /* touches no key */
    LOCK_KEYS, /* the stripes of its keys: shared if readonly, else exclusive */
    LOCK_WALK, /* visits stripes through keyspace_scan and friends */
    LOCK_WORLD, /* raises the gate */
    LOCK_SELF   /* EXEC: takes its own, through lock_set.h */
};

/* What a command is in a log, for all readers of a log (engine/logged.h). */
enum logged_kind {
    LOGGED_NEVER,     /* no log has it */
    LOGGED_OTHERWISE, /* a write: its effect is another command */
    LOGGED_SELECT,
    LOGGED_MARK,    /* MULTI or EXEC */
    LOGGED_HISTORY, /* REPLCONF HISTORY: the history of the log that follows */
    LOGGED_ADD,     /* adds items to a key that is there */
    LOGGED_INSERT,  /* its words say what it does (engine/effect_words.h) */
    LOGGED_MDEL,    /* deletes items */
    LOGGED_MAKE,    /* makes its key, in the place of what is there */
    LOGGED_CHUNK,   /* with INCARNATION it makes its key, else changes it */
    LOGGED_CHANGE,  /* changes when its key expires */
    LOGGED_DROP,    /* deletes keys, or moves or empties filters */
    LOGGED_MERGE,   /* changes its first key, by its other keys */
    LOGGED_COPY,    /* makes its second key, maybe in another database */
    LOGGED_MOVE,    /* moves its key to another database */
    LOGGED_SWAP,    /* exchanges two databases */
    LOGGED_FLUSH_DB,
    LOGGED_FLUSH_ALL
};

/* Key positions in argv (the name is 0); last < 0 counts from the end. */
struct command_keys {
    int first, last, step;
};

/* How a key is used, for the key specifications of COMMAND INFO. */
enum key_use {
    KEY_RO = 1 << 0,
    KEY_RW = 1 << 1,
    KEY_OW = 1 << 2,
    KEY_RM = 1 << 3,
    KEY_ACCESS = 1 << 4,
    KEY_UPDATE = 1 << 5,
    KEY_INSERT = 1 << 6,
    KEY_DELETE = 1 << 7,
    KEY_NOT = 1 << 8, /* a shard channel: has a slot, but is no key */
};

enum arg_type {
    ARG_STRING,
    ARG_INTEGER,
    ARG_DOUBLE,
    ARG_KEY,
    ARG_PATTERN,
    ARG_UNIX_TIME,
    ARG_PURE_TOKEN,
    ARG_ONEOF,
    ARG_BLOCK
};

enum arg_flag { ARG_OPTIONAL = 1, ARG_MULTIPLE = 2, ARG_MULTIPLE_TOKEN = 4 };

/* One argument for COMMAND DOCS; a list ends with a name of NULL. */
struct command_arg {
    const char *name;
    enum arg_type type;
    unsigned flags;
    const char *token;                    /* NULL: none */
    const char *since, *deprecated_since; /* NULL: as the command */
    const struct command_arg *nested;     /* of ONEOF and BLOCK */
};

/* Does the long part of a command before its locks are taken. Returns false if
 * it has paused; then it is called again. Not called in EXEC or for a request
 * that replays a log. */
typedef bool (*command_prepare_fn)(struct request *req);

struct command {
    const char *name; /* as the server prints it: BF.ADD, get, client|id */
    command_fn handler;
    command_many_fn many; /* one-item commands: see run.h */
    /* Runs the commands under the shared lock if none of them changes anything.
     * Otherwise it does nothing and returns 0. */
    command_many_fn known;
    command_ready_fn ready; /* for .many; NULL: nothing to prepare */
    command_ahead_fn ahead; /* NULL: the command reads no lines, or they are not
                               known before */
    command_touch_fn touch; /* NULL: it adds no items to one key */
    command_prepare_fn prepare; /* NULL: the command has no long part */
    unsigned id;                /* enum command_id */
    int arity; /* number of words, with the name; negative: at least so many */
    uint32_t flags;
    uint32_t acl;
    enum command_lock lock;
    struct command_keys keys;
    uint32_t key_use;
    uint32_t first_key_use; /* use of the first key, if it differs; else 0 */
    unsigned carries;       /* the word at which another command begins in the
                               arguments; 0: none */
    bool splits;    /* it counts its keys (req->counted), so that it can be
                       executed in pieces */
    bool container; /* has subcommands; the handler runs without one */
    bool is_syscmd; /* not for applications */
    uint8_t logged; /* enum logged_kind */
    const char *group, *since, *complexity, *summary;
    const struct command_arg *args;
    const char *const *tips;                    /* ends with NULL; NULL: none */
    const char *deprecated_since, *replaced_by; /* NULL: it is not */
    /* What differs in dialect redis: the name, and the fields that are not
     * zero. NULL: nothing differs. See engine/dialect.h. */
    const struct command *redis;
};

enum command_id {
#define CMD(id, ...) CMD_ID_##id,
#include "tbl/commands.def"
#undef CMD
    CMD_ID_COUNT,
    /* The rows from here on exist only to be refused; no list shows them. */
    CMD_ID_LISTED = CMD_ID_EVAL,
};

/* Sets the rows, which the caller keeps, and builds the index of their names.
 * Call it once, before threads start. */
void command_table_init(const struct command table[CMD_ID_COUNT]);

/* Returns the row with this id, an enum command_id. */
const struct command *command_at(unsigned id);

/* Finds a command by its name, in any letter case; NULL if there is none. A
 * subcommand is found by command_find_sub(container, "id"). */
const struct command *command_find(struct slice name);
const struct command *command_find_sub(const struct command *container,
                                       struct slice sub);

/* Finds the command or subcommand of a request. *ret_words is the number of
 * words of its name: 2 if the request names a subcommand, else 1. */
const struct command *command_resolve(const struct slice *argv, size_t argc,
                                      unsigned *ret_words);

static inline unsigned
command_id(const struct command *command)
{
    return command->id;
}

/* Makes a command, and all of its subcommands, unknown to all clients.
 * Rules of users may still name it. Call it before users are made. Returns
 * false if there is no such command. */
MUST_CHECK bool command_forbid(struct slice name);
bool command_is_forbidden(unsigned id);
bool command_any_forbidden(void);

/* Returns whether COMMAND, the man page and other lists show the row. */
static inline bool
command_is_listed(const struct command *command)
{
    return command->id < CMD_ID_LISTED && !command_is_forbidden(command->id);
}

static inline bool
command_arity_fits(const struct command *command, size_t argc)
{
    return command->arity >= 0 ? argc == (size_t)command->arity
                               : argc >= (size_t)-command->arity;
}

/* Returns how the command uses its key at this position, as bits of enum
 * key_use. */
static inline uint32_t
command_use_of_key(const struct command *command, size_t position)
{
    return command->first_key_use != 0 &&
                   position == (size_t)command->keys.first
               ? command->first_key_use
               : command->key_use;
}

/* Returns the position of the key at or behind `from`, in a request whose arity
 * fits; 0: there is none. */
size_t command_key_from(const struct command *command, size_t argc,
                        size_t from);

/* Calls visit with each key position of a request whose arity fits. */
typedef void (*command_key_fn)(void *ctx, size_t position);
void command_each_key(const struct command *command, size_t argc,
                      command_key_fn visit, void *ctx);
