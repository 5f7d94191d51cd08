/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-load: brings filters and items from elsewhere into a running server,
 * and filters out of one. struct load holds what the command line asked for.
 * One thread.
 */
#pragma once

#include "tls/tls_context.h"
#include "tools/tool.h"

/* Exit statuses. Scripts rely on them. If there are several findings, the
 * highest wins. */
enum {
    LOAD_DONE = 0,
    LOAD_INCOMPLETE = 1,               /* the report says what is missing */
    LOAD_USAGE = TOOL_USAGE,           /* a mistake in the command line */
    LOAD_UNREADABLE = TOOL_UNREADABLE, /* a file or a server cannot be read */
};

/* A server, and how to log in. */
struct load_peer {
    const char *address; /* HOST:PORT, [HOST]:PORT or the path of a socket */
    bool uses_tls;
    const char *user; /* NULL: none */
    const char *password_file;
};

#define LOAD_DEFAULT_ADDRESS "127.0.0.1:7379"

/* What happens to a filter whose key the server has already. */
enum load_existing {
    LOAD_EXISTING_STOP,
    LOAD_EXISTING_SKIP,
    LOAD_EXISTING_REPLACE
};

/* The product for which an export writes commands. */
enum load_product {
    LOAD_FOR_BLOOMERY,
    LOAD_FOR_REDISBLOOM,
    LOAD_FOR_VALKEYBLOOM
};

#define LOAD_DB_ALL UINT64_MAX

struct load {
    struct tool tool;
    struct load_peer to;
    struct tls_contexts tls; /* for peers that use TLS */
    uint64_t timeout_s;   /* how long a server that owes bytes may send none */
    uint64_t value_bytes; /* the longest value, reply or item that is kept in
                             memory */

    enum load_existing existing;

    /* server, export */
    struct load_peer from;
    bool scandump; /* never use DUMP */
    bool follow;
    const char *source_version; /* for a file that names none; or NULL */
    uint64_t until_idle_s;      /* 0: until a signal */
    uint64_t db;                /* LOAD_DB_ALL: each */
    bool told_of_secrets;       /* load_secrets_hint has printed its hint */

    /* export */
    enum load_product product;

    /* items */
    uint64_t connections;
    const char *error_rate, *capacity; /* for new filters; NULL: default */
    const char *csv;                   /* a column, or NULL */
    const char *delimiter;
    bool nul;
};
