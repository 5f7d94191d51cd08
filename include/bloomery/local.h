/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program keeps fresh copies of filters of a Bloomery server, and looks up
 * items in them without a round trip (libbloomery-local). The promise:
 *
 *   when the copy says absent, the server that it subscribes to would have said
 *   so too, at some moment of the last max_stale_ms before the call.
 *
 * "Present" may be older, so a deleted item is found for a while. If the server
 * never got an item, or has lost it (a replica's lag, a failover, a partition),
 * BF.EXISTS does not find it either. When the copy cannot know, it says
 * unknown.
 *
 *     struct bloomery_local_options options = {
 *         .struct_size = sizeof(options),
 *         .url = "redis://127.0.0.1:7379/0", .key = "urls" };
 *     struct bloomery_local *seen;
 *
 *     if (bloomery_local_open(&options, &seen, NULL) != BLOOMERY_LOCAL_OK) ...
 *     switch (bloomery_local_contains(seen, url, strlen(url))) {
 *     case BLOOMERY_LOCAL_PRESENT: ...
 *     case BLOOMERY_LOCAL_ABSENT:  ...
 *     case BLOOMERY_LOCAL_UNKNOWN: ...   // ask the server
 *     }
 *     bloomery_local_free(seen);
 *
 * Any thread may ask at any time: nothing is locked, and nobody waits. One
 * thread for each server, with all signals blocked, keeps the copies. The
 * library never writes a log, and never ends the program: a lack of memory is
 * an error like others. No text that it returns has a password. After fork()
 * the child's copies say unknown; the child opens its own.
 *
 * Compile and link with what `pkg-config --cflags --libs libbloomery-local`
 * prints. A program that was linked with this version works with every later
 * libbloomery-local.so.1. Structs begin with struct_size, which the caller sets
 * to the sizeof of the struct, so that later versions can add members. A member
 * that the caller does not have counts as 0. A member that the library does not
 * know must be 0 in options, and is set to 0 in a status. A status whose
 * struct_size is less than in version 1 is left as it is;
 * bloomery_local_open() then returns BLOOMERY_LOCAL_INVALID.
 */
#ifndef BLOOMERY_LOCAL_H
#define BLOOMERY_LOCAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* A copy of one filter. */
struct bloomery_local;

enum bloomery_local_answer {
    BLOOMERY_LOCAL_UNKNOWN = -1,
    BLOOMERY_LOCAL_ABSENT = 0,
    BLOOMERY_LOCAL_PRESENT = 1
};

enum bloomery_local_code {
    BLOOMERY_LOCAL_OK = 0,
    BLOOMERY_LOCAL_INVALID, /* an option, the URL or a struct_size is wrong */
    BLOOMERY_LOCAL_NOMEM,
    BLOOMERY_LOCAL_THREAD,  /* the system has no thread or descriptor left */
    BLOOMERY_LOCAL_CONNECT, /* no connection, or it ended */
    BLOOMERY_LOCAL_TLS,     /* the certificates, or the handshake */
    BLOOMERY_LOCAL_REFUSED, /* the server replied with an error */
    BLOOMERY_LOCAL_FOREIGN, /* the server has no BF.SUBSCRIBE, or what it says
                               cannot be understood */
    BLOOMERY_LOCAL_REPLICA, /* the server is a replica, without the flag
                               BLOOMERY_LOCAL_REPLICA_ALLOWED */
    BLOOMERY_LOCAL_LIMIT,   /* the filter has more than max_bytes */
    BLOOMERY_LOCAL_LATE,    /* the filter was not loaded in timeout_ms */
    BLOOMERY_LOCAL_CLOSED
};

/* What a copy can answer now. */
enum bloomery_local_state {
    BLOOMERY_LOCAL_NONE,   /* not loaded: unknown */
    BLOOMERY_LOCAL_FRESH,  /* present and absent */
    BLOOMERY_LOCAL_STALE,  /* present and unknown */
    BLOOMERY_LOCAL_MISSING /* the key does not exist: unknown. With
                              BLOOMERY_LOCAL_MISSING_IS_ABSENT: absent, as long
                              as it is certain that the key does not exist */
};

enum bloomery_local_event {
    BLOOMERY_LOCAL_LOADED,  /* a copy is complete, the first one or a new one */
    BLOOMERY_LOCAL_GONE,    /* the key does not exist */
    BLOOMERY_LOCAL_CHANGED, /* the filter became another; it is loaded again */
    BLOOMERY_LOCAL_CUT,     /* the connection ended, or none was possible; the
                               text says why. The next try follows */
    BLOOMERY_LOCAL_FAILED   /* a load has failed; the next one follows */
};

/* Flags of the options. */
enum {
    BLOOMERY_LOCAL_NO_WAIT = 1, /* open returns at once; the copy says unknown
                                   until it is loaded */
    BLOOMERY_LOCAL_REPLICA_ALLOWED = 2,  /* the server may be a replica */
    BLOOMERY_LOCAL_MISSING_IS_ABSENT = 4 /* a key that does not exist counts as
                                            an empty filter */
};

struct bloomery_local_options {
    size_t struct_size; /* sizeof(struct bloomery_local_options) */
    /* redis://[[user]:password@]host[:port][/database], rediss:// with TLS, or
     * unix://[[user]:password@]/path/of/socket[?db=database]. The default port
     * is 7379, the default database 0. Special characters are written as %XX.
     * redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/name
     * [/database], in one piece, or rediss+sentinel: the server is the primary
     * that Sentinels name; when they name another one, the library connects to
     * that. The default port of Sentinels is 26379. A Sentinel that wants a
     * login gets the user and the password of the server. */
    const char *url;
    const void *key; /* a text, or key_bytes bytes if that is not 0 */
    size_t key_bytes;
    uint32_t flags;
    uint32_t max_stale_ms; /* 0: 1000; at least 100 */
    uint32_t timeout_ms;   /* of bloomery_local_open(); 0: 30000 */
    uint32_t refresh_ms;   /* the copy is loaded again this long after the first
                              deletion, or when a tenth of its items was
                              deleted; 0: 60000 */
    uint64_t max_bytes;    /* the largest filter that is loaded; 0: no limit.
                              While a new copy replaces an old one, both are in
                              memory */
    /* Override the user and the password of the URL; NULL: those of the URL. */
    const char *user, *password;
    /* Files in PEM form, for rediss. Without ca_file the system's certificates
     * are trusted. cert_file and key_file: the program's own certificate and
     * its key, or NULL. */
    const char *ca_file, *cert_file, *key_file;
    /* Is called in the library's thread, and should soon return. It may ask the
     * copy and its status, but must not open, close or free one. TEXT is valid
     * until it returns. NULL: no events are reported. */
    void (*on_event)(void *context, enum bloomery_local_event event,
                     const char *text);
    void *context;
};

#define BLOOMERY_LOCAL_TEXT_BYTES 256

struct bloomery_local_status {
    size_t struct_size;   /* sizeof(struct bloomery_local_status) */
    uint32_t state;       /* enum bloomery_local_state */
    uint32_t error;       /* enum bloomery_local_code: the last error; OK: none
                             since the last load */
    uint64_t age_ms;      /* time since the latest moment for which "absent" is
                             proved; 0 without a copy */
    uint64_t loads;       /* complete ones, so far */
    uint64_t connections; /* so far */
    uint64_t items, capacity, layers, size_bytes; /* of the copy */
    char server[BLOOMERY_LOCAL_TEXT_BYTES];     /* host:port, or a path; of the
                                                   last connection */
    char error_text[BLOOMERY_LOCAL_TEXT_BYTES]; /* of the last error */
};

/* One item, for bloomery_local_contains_many(). */
struct bloomery_local_item {
    const void *data;
    size_t bytes;
};

/* Opens a copy, and waits until it is loaded, or the server has said that the
 * key does not exist. The state is then BLOOMERY_LOCAL_MISSING: the copy loads
 * when the key appears. An error that trying again will not mend (a wrong
 * password, a server without the command) ends the wait; others are tried
 * again until timeout_ms. On failure *ret_local is untouched. ret_status, if it
 * is not NULL, is set in any case but a wrong struct_size. The options are
 * copied. */
enum bloomery_local_code
bloomery_local_open(const struct bloomery_local_options *options,
                    struct bloomery_local **ret_local,
                    struct bloomery_local_status *ret_status);

/* Waits for a copy that was opened with BLOOMERY_LOCAL_NO_WAIT, as
 * bloomery_local_open() does without it, and returns the same. After timeout_ms
 * (0: at once) it returns BLOOMERY_LOCAL_LATE. The copy goes on in any case. */
enum bloomery_local_code bloomery_local_wait(struct bloomery_local *local,
                                             uint32_t timeout_ms);

/* Asks for an item. */
enum bloomery_local_answer bloomery_local_contains(struct bloomery_local *local,
                                                   const void *item,
                                                   size_t bytes);

/* Asks for COUNT items, several times faster; ret_answers gets an enum
 * bloomery_local_answer for each. Returns how many are unknown. */
size_t bloomery_local_contains_many(struct bloomery_local *local,
                                    const struct bloomery_local_item *items,
                                    size_t count, int8_t *ret_answers);

/* Sets all of *ret_status but its struct_size, which must be right. It waits
 * for no socket. */
void bloomery_local_status(struct bloomery_local *local,
                           struct bloomery_local_status *ret_status);

/* Ends the copy and gives its memory back. Other threads may still ask: the
 * answer is unknown from now on. A second call does nothing. */
void bloomery_local_close(struct bloomery_local *local);

/* Closes the copy, and frees the rest. Call it when no thread uses the copy any
 * more. NULL is fine. */
void bloomery_local_free(struct bloomery_local *local);

/* Returns an English text of a code, for messages. */
const char *bloomery_local_text(enum bloomery_local_code code);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
