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

/* Exit statuses. Scripts rely on them. Of several findings the highest wins. */
enum {
    CHECK_INTACT = 0,         /* a torn tail that a start cuts is no damage */
    CHECK_DAMAGED = 1,        /* a server would refuse it */
    CHECK_USAGE = TOOL_USAGE, /* a mistake in the command line */
    CHECK_UNREADABLE = TOOL_UNREADABLE, /* missing file, I/O error, full disk */
    CHECK_NEWER = 4                     /* written by a newer version */
};

/* The status of a card (check_card.h), which raises the exit status with it. */
enum check_state {
    CHECK_STATE_INTACT,
    CHECK_STATE_TORN, /* intact but for a tail that a start cuts */
    CHECK_STATE_DAMAGED,
    CHECK_STATE_NEWER,
    CHECK_STATE_UNREADABLE
};

struct conf;

struct check {
    struct tool tool;
    bool json;            /* one object a line instead of text */
    bool resp;            /* cat: RESP instead of quoted words */
    bool tar;             /* backup: to standard output, as an archive */
    const char *config;   /* backup: the server's configuration file, or NULL */
    struct conf *conf;    /* the options of that file, or NULL */
    bool without_secrets; /* copies no secrets and passwords */
    bool keep_role;       /* restore: as the role that was */
    bool card_empty;      /* the card being printed has no field yet */
    bool verbose;         /* the cards behind the verdict */
    FILE *cards;          /* gathers them; NULL: they are printed at once */
    struct buf cards_text;
    struct buf omitted;     /* what a backup does not include */
    enum check_state worst; /* of all cards */
    uint64_t files;         /* that have one */
    const char *found;      /* the verdict says it instead of the files */
    uint64_t filters;       /* of what a start would load */
    bool filters_unknown;
    bool reads_only; /* verify executes no journal: filters are unknown */
};
