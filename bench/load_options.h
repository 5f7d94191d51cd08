/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The load generator's options: one table of names, ranges and targets.
 * options_parse() sets them once; afterwards they are only read. The exception
 * is `buffers`, which the generator lowers to one if more would change nothing.
 */
#pragma once

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 1024, OPTIONS_LIMIT = 32 };

struct options {
    const char *host;
    const char *port;
    const char *unix_path;
    const char *command;
    const char *key;
    const char *script; /* SHA-1 of a script in place of the command */
    const char *before; /* an inline command, said once by each connection */
    uint64_t connections;
    uint64_t pipeline;
    uint64_t depth;
    uint64_t items;   /* of one MADD or MEXISTS */
    uint64_t bits;    /* of the bitmap of setbit and getbit */
    uint64_t hashes;  /* bits of one item in it */
    uint64_t keys;    /* 1: the key as it is; more: key and eight digits */
    uint64_t range;   /* distinct items */
    uint64_t first;   /* number of the first item */
    uint64_t buffers; /* prebuilt batches of a connection */
    uint64_t requests;
    uint64_t rate; /* batches a second; 0: as fast as the server answers */
    double seconds;
    double warmup;
    double timeout;
    uint64_t pid;
    uint64_t seed;
    bool sequential;
    bool resp3;
};

static struct options opt = {
    .host = "127.0.0.1",
    .port = "7379",
    .command = "add",
    .key = "bench",
    .connections = 50,
    .pipeline = 16,
    .depth = 2,
    .items = 100,
    .bits = 958506, /* 100,000 items at 0.01 */
    .hashes = 7,
    .keys = 1,
    .range = 100000,
    .buffers = 8,
    .timeout = 10,
    .seed = 1,
};
static inline void
usage(int code)
{
    fputs("usage: load [options]\n"
          "  --host H --port N | --unix PATH   server (127.0.0.1 7379)\n"
          "  --command C      add exists madd mexists ping (add); setbit\n"
          "                   getbit: a filter by hand in a bitmap\n"
          "  --connections N  (50)\n"
          "  --pipeline P     commands in a batch (16)\n"
          "  --depth D        batches in flight on a connection (2)\n"
          "  --items N        items of one madd or mexists (100)\n"
          "  --bits M         of that bitmap (958506)\n"
          "  --hashes K       commands, and bits, for each item in it (7)\n"
          "  --script SHA     EVALSHA of this script instead of add, exists,\n"
          "                   setbit or getbit: with the key and the item, or\n"
          "                   with the key and the offsets of the item's bits\n"
          "  --key K          (bench)\n"
          "  --keys N         that many keys, K and eight digits (1);\n"
          "                   by hand, all items of a batch go to one of them\n"
          "  --range R        distinct items (100000)\n"
          "  --first F        number of the first item (0)\n"
          "  --sequential     items and keys in order, again and again; not\n"
          "                   random\n"
          "  --buffers B      prebuilt batches of a connection (8)\n"
          "  --requests N     end after N commands, in whole batches\n"
          "  --rate R         start R batches a second; their latency counts\n"
          "                   from when they were due (0: as fast as it goes)\n"
          "  --seconds S      end after S seconds (5; with --requests: 60,\n"
          "                   and it is an error to reach it)\n"
          "  --warmup S       the same load for S seconds, not counted (0)\n"
          "  --timeout S      give up on a silent server (10)\n"
          "  --resp3          HELLO 3 first\n"
          "  --before TEXT    an inline command for each connection, first\n"
          "  --pid PID        of the server: its CPU time is reported\n"
          "  --seed N         of the random numbers (1)\n",
          code == 0 ? stdout : stderr);
    exit(code);
}

static inline uint64_t
parse_uint(const char *name, const char *text, uint64_t min, uint64_t max)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' ||
        value < min || value > max) {
        fprintf(stderr, "load: --%s: from %ju to %ju\n", name, (uintmax_t)min,
                (uintmax_t)max);
        exit(2);
    }
    return value;
}

static inline double
parse_seconds(const char *name, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value > 0 && value <= 3600)) {
        fprintf(stderr, "load: --%s: seconds, above 0, at most 3600\n", name);
        exit(2);
    }
    return value;
}

/* Options that take a value; the others are `flags` below. */
static const struct value_option {
    const char *name;
    enum { TEXT, NUMBER, SECONDS } kind; /* char *, uint64_t, double */
    void *ret_value;
    uint64_t min;
    uint64_t max;
} value_options[] = {
    { "host", TEXT, &opt.host, 0, 0 },
    { "port", TEXT, &opt.port, 0, 0 },
    { "unix", TEXT, &opt.unix_path, 0, 0 },
    { "command", TEXT, &opt.command, 0, 0 },
    { "key", TEXT, &opt.key, 0, 0 },
    { "script", TEXT, &opt.script, 0, 0 },
    { "before", TEXT, &opt.before, 0, 0 },
    { "connections", NUMBER, &opt.connections, 1, 50000 },
    { "pipeline", NUMBER, &opt.pipeline, 1, 100000 },
    { "depth", NUMBER, &opt.depth, 1, DEPTH_LIMIT },
    { "items", NUMBER, &opt.items, 1, 1000000 },
    { "bits", NUMBER, &opt.bits, 2, (uint64_t)1 << 32 },
    { "hashes", NUMBER, &opt.hashes, 1, 64 },
    { "keys", NUMBER, &opt.keys, 1, UINT32_MAX },
    { "range", NUMBER, &opt.range, 1, UINT32_MAX },
    { "first", NUMBER, &opt.first, 0, UINT32_MAX },
    { "buffers", NUMBER, &opt.buffers, 1, 10000 },
    { "requests", NUMBER, &opt.requests, 1, UINT64_MAX / 2 },
    { "rate", NUMBER, &opt.rate, 0, 10000000 },
    { "pid", NUMBER, &opt.pid, 1, INT32_MAX },
    { "seed", NUMBER, &opt.seed, 0, UINT64_MAX },
    { "seconds", SECONDS, &opt.seconds, 0, 0 },
    { "warmup", SECONDS, &opt.warmup, 0, 0 },
    { "timeout", SECONDS, &opt.timeout, 0, 0 },
};

static inline void
set_value(const struct value_option *option, char *text)
{
    switch (option->kind) {
    case TEXT:
        *(const char **)option->ret_value = text;
        break;
    case NUMBER:
        *(uint64_t *)option->ret_value =
            parse_uint(option->name, text, option->min, option->max);
        break;
    case SECONDS:
        *(double *)option->ret_value = parse_seconds(option->name, text);
        break;
    }
}

/* Sets `opt`; exits if an option is unknown or out of range. */
static inline void
options_parse(int argc, char **argv)
{
    enum { COUNT = sizeof(value_options) / sizeof(value_options[0]) };
    struct option longs[OPTIONS_LIMIT] = { { NULL, 0, NULL, 0 } };
    int choice;

    _Static_assert(COUNT + 4 <= OPTIONS_LIMIT, "raise OPTIONS_LIMIT");
    for (int i = 0; i < COUNT; i++) {
        longs[i] = (struct option){ value_options[i].name, required_argument,
                                    NULL, i };
    }
    longs[COUNT] = (struct option){ "sequential", no_argument, NULL, 's' };
    longs[COUNT + 1] = (struct option){ "resp3", no_argument, NULL, '3' };
    longs[COUNT + 2] = (struct option){ "help", no_argument, NULL, 'h' };
    while ((choice = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (choice < COUNT) {
            set_value(&value_options[choice], optarg);
        } else if (choice == 's') {
            opt.sequential = true;
        } else if (choice == '3') {
            opt.resp3 = true;
        } else {
            usage(choice == 'h' ? 0 : 2);
        }
    }
    if (optind < argc) {
        usage(2);
    }
    if (opt.first + opt.range > UINT64_C(1) + UINT32_MAX) {
        fprintf(stderr, "load: --first + --range: at most 2^32\n");
        exit(2);
    }
    if (opt.seconds == 0) {
        opt.seconds = opt.requests > 0 ? 60 : 5;
    }
}
