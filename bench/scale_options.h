/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The workloads of bench/scale.c, and the options that select them.
 * scale_options_parse() sets them once; afterwards they are only read.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS_MAX = 64,
    ROUNDS_MAX = 1000,
    PIPELINE_MAX = 100,
    ITEMS = 1000000, /* of the one filter; half of those asked for */
    OWN_ITEMS = 50000,
    NAME_ITEMS = 50
};

enum keys { KEY_ONE, KEY_NEW, KEY_OWN, KEY_MANY }; /* two are names */

struct workload {
    const char *name, *command;
    enum keys keys;
    uint32_t items; /* at random, from 0; 0: each is new */
};

static const struct workload workloads[] = {
    { "exists-one", "BF.EXISTS", KEY_ONE, 2 * ITEMS },
    { "add-one", "BF.ADD", KEY_ONE, ITEMS },
    { "add-new", "BF.ADD", KEY_NEW, 0 },
    { "exists-own", "BF.EXISTS", KEY_OWN, 2 * OWN_ITEMS },
    { "add-own", "BF.ADD", KEY_OWN, OWN_ITEMS },
    { "exists-many", "BF.EXISTS", KEY_MANY, 2 * NAME_ITEMS },
    { "add-many", "BF.ADD", KEY_MANY, NAME_ITEMS },
};
enum { WORKLOADS = sizeof(workloads) / sizeof(workloads[0]) };

static struct {
    unsigned threads, rounds, window_ms;
    unsigned limit_ms; /* of one workload with one pipeline */
    unsigned only;     /* this number of threads alone; 0: all */
    unsigned pipeline[3];
    unsigned pipelines;
    bool wanted[WORKLOADS];
} opt = {
    .rounds = 31, .window_ms = 4, .limit_ms = 1500, .pipeline = { 16, 1, 100 }
};

__attribute__((noreturn)) static void
die(const char *what)
{
    (void)fprintf(stderr, "scale: %s\n", what);
    exit(1);
}

static inline unsigned
number(const char *text, unsigned most)
{
    char *rest;
    unsigned long value = strtoul(text, &rest, 10);

    if (*rest != '\0' || value < 1 || value > most) {
        die("an option's number is out of range");
    }
    return (unsigned)value;
}

static inline void
want(const char *name)
{
    bool found = false;

    for (int i = 0; i < WORKLOADS; i++) {
        if (strcmp(workloads[i].name, name) == 0) {
            opt.wanted[i] = found = true;
        }
    }
    if (!found) {
        die("no such workload");
    }
}

static inline void
scale_options_parse(int argc, char **argv)
{
    static const struct option options[] = {
        { "threads", required_argument, NULL, 't' },
        { "only", required_argument, NULL, 'o' },
        { "rounds", required_argument, NULL, 'r' },
        { "window-ms", required_argument, NULL, 'w' },
        { "limit-ms", required_argument, NULL, 'm' },
        { "pipeline", required_argument, NULL, 'p' },
        { "workload", required_argument, NULL, 'l' },
        { NULL, 0, NULL, 0 },
    };
    bool all = true;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 't') {
            opt.threads = number(optarg, THREADS_MAX);
        } else if (c == 'o') {
            opt.only = number(optarg, THREADS_MAX);
        } else if (c == 'r') {
            opt.rounds = number(optarg, ROUNDS_MAX);
        } else if (c == 'w') {
            opt.window_ms = number(optarg, 999);
        } else if (c == 'm') {
            opt.limit_ms = number(optarg, 60000);
        } else if (c == 'p' && opt.pipelines < 3) {
            opt.pipeline[opt.pipelines++] = number(optarg, PIPELINE_MAX);
        } else if (c == 'l') {
            want(optarg);
            all = false;
        } else {
            die("usage: scale [--threads N] [--only N] [--rounds N] "
                "[--window-ms N] [--limit-ms N] [--pipeline N] [--workload "
                "NAME]");
        }
    }
    for (int i = 0; all && i < WORKLOADS; i++) {
        opt.wanted[i] = true;
    }
    opt.pipelines = opt.pipelines > 0 ? opt.pipelines : 3;
}
