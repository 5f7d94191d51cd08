/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-check: inspects snapshots and journals without a server, and writes
 * new ones from what is intact. It never writes to a file that exists. One
 * thread. struct check holds what the command line asked for and the exit
 * status so far.
 */
#pragma once

#include "base/buf.h"
#include "tools/tool.h"

#include <stdio.h>

/* Exit statuses. Scripts rely on them. If there are several findings, the
 * highest wins. */
enum {
    CHECK_INTACT = 0,  /* a torn tail, which a start cuts off, is no damage */
    CHECK_DAMAGED = 1, /* a server would refuse it */
    CHECK_USAGE = TOOL_USAGE,           /* a mistake in the command line */
    CHECK_UNREADABLE = TOOL_UNREADABLE, /* missing file, I/O error, full disk */
    CHECK_NEWER = 4                     /* written by a newer version */
};

/* The state that a card shows (check_card.h). It raises the exit status. */
enum check_state {
    CHECK_STATE_INTACT,
    CHECK_STATE_TORN, /* intact, except a tail that a start cuts off */
    CHECK_STATE_DAMAGED,
    CHECK_STATE_NEWER,
    CHECK_STATE_UNREADABLE
};

struct conf;

struct check {
    struct tool tool;
    bool json;            /* one JSON object in each line, no text */
    bool resp;            /* cat: RESP instead of quoted words */
    bool tar;             /* backup: to standard output, as an archive */
    const char *config;   /* backup: the server's configuration file, or NULL */
    struct conf *conf;    /* the options of that file, or NULL */
    bool without_secrets; /* copies no secrets or passwords */
    bool keep_role;       /* restore: keep the role of the copied server */
    bool card_empty;      /* the card being printed has no field yet */
    bool verbose;         /* print the cards after the verdict */
    FILE *cards; /* gathers the cards; NULL: they are printed at once */
    struct buf cards_text;
    struct buf omitted;     /* what a backup does not include */
    enum check_state worst; /* of all cards */
    uint64_t files;         /* files that have a card */
    const char *found;      /* what the verdict says was found */
    uint64_t filters;       /* filters that a start would load */
    bool filters_unknown;
    bool reads_only; /* verify executes no journal: filters are unknown */
};
