/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The load generator's requests: one command as bytes, built once from the
 * options, and the places of the digits that differ from item to item. For a
 * filter in a bitmap it also computes the offsets of an item's bits.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "load_options.h"
#include "load_replies.h"

enum { ITEM_BYTES = 12 };

/* One command as bytes, and the places of the digits to overwrite. For a filter
 * in a bitmap, all commands for one item count as one: a SETBIT or GETBIT for
 * each bit, whose offset has the digits. */
struct command {
    char *bytes;
    size_t len;
    size_t key_digits; /* 0: one key for all */
    size_t item_digits;
    size_t item_stride;
    size_t items;
    size_t replies;
    bool by_hand;
    size_t offset_len;     /* decimal digits of every offset */
    uint64_t offset_first; /* the least number with as many */
    uint64_t offset_span;
};

/* One thread: plain globals. */
static struct command command;
static struct reply_shape shape;

__attribute__((noreturn, format(printf, 1, 2))) static inline void
die(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

static inline void *
alloc(size_t count, size_t size)
{
    void *block = calloc(count, size);

    if (block == NULL) {
        die("out of memory");
    }
    return block;
}

static inline size_t
put_bulk(char *at, const char *text, size_t len)
{
    size_t head = (size_t)sprintf(at, "$%zu\r\n", len);

    memcpy(at + head, text, len);
    at[head + len] = '\r';
    at[head + len + 1] = '\n';
    return head + len + 2;
}

/* All offsets have the same length, so that they can be overwritten: those with
 * fewer digits than the largest one are not used. */
static inline void
build_bits(bool sets)
{
    char offset[24];
    char *at;

    if (opt.keys > 1 || opt.hashes > 64 || strlen(opt.key) > 256) {
        die("--command %s: one key of at most 256 bytes", opt.command);
    }
    command.by_hand = true;
    command.items = opt.hashes;
    command.replies = opt.hashes;
    command.offset_len =
        (size_t)sprintf(offset, "%ju", (uintmax_t)(opt.bits - 1));
    command.offset_first = 1;
    for (size_t i = 1; i < command.offset_len; i++) {
        command.offset_first *= 10;
    }
    command.offset_span = opt.bits - command.offset_first;
    command.bytes = alloc(opt.hashes, 512);
    at = command.bytes;
    for (size_t i = 0; i < opt.hashes; i++) {
        at += sprintf(at, "*%d\r\n", sets ? 4 : 3);
        at += put_bulk(at, sets ? "SETBIT" : "GETBIT", 6);
        at += put_bulk(at, opt.key, strlen(opt.key));
        at += put_bulk(at, offset, command.offset_len);
        if (i == 0) {
            command.item_digits =
                (size_t)(at - command.bytes) - 2 - command.offset_len;
        }
        at += sets ? put_bulk(at, "1", 1) : 0;
    }
    command.len = (size_t)(at - command.bytes);
    command.item_stride = command.len / opt.hashes;
}

static inline void
build_command(void)
{
    static const struct {
        const char *option;
        const char *name;
        bool many;
    } names[] = {
        { "add", "BF.ADD", false },  { "exists", "BF.EXISTS", false },
        { "madd", "BF.MADD", true }, { "mexists", "BF.MEXISTS", true },
        { "ping", "PING", false },
    };
    char key[1024];
    char *at;
    size_t i = 0;

    if (strcmp(opt.command, "setbit") == 0 ||
        strcmp(opt.command, "getbit") == 0) {
        build_bits(opt.command[0] == 's');
        return;
    }
    while (strcmp(names[i].option, opt.command) != 0) {
        if (++i == sizeof(names) / sizeof(names[0])) {
            die("--command: add, exists, madd, mexists, ping, setbit or "
                "getbit");
        }
    }
    command.replies = 1;
    command.items = names[i].many ? opt.items : 1;
    shape.elements = names[i].many ? opt.items : 0;
    if (names[i].name[0] == 'P') {
        command.items = 0;
        shape.status = true;
    }
    if (strlen(opt.key) > sizeof(key) - DIGITS - 1) {
        die("--key: too long");
    }
    sprintf(key, opt.keys > 1 ? "%s00000000" : "%s", opt.key);
    command.bytes = alloc(1, 2048 + command.items * 32);
    at = command.bytes;
    at += sprintf(at, "*%zu\r\n", command.items + (command.items > 0 ? 2 : 1));
    at += put_bulk(at, names[i].name, strlen(names[i].name));
    if (command.items > 0) {
        at += put_bulk(at, key, strlen(key));
        command.key_digits =
            opt.keys > 1 ? (size_t)(at - command.bytes) - 2 - DIGITS : 0;
        for (size_t item = 0; item < command.items; item++) {
            command.item_stride = put_bulk(at, "item00000000", ITEM_BYTES);
            at += command.item_stride;
        }
        command.item_digits = (size_t)(at - command.bytes) - 2 - DIGITS -
                              (command.items - 1) * command.item_stride;
    }
    command.len = (size_t)(at - command.bytes);
}

/* The offsets of the bits of one item, each a hash of its number. */
static inline void
put_offsets(char *at, uint64_t item)
{
    for (uint64_t k = 0; k < opt.hashes; k++) {
        uint64_t state =
            (item * opt.hashes + k + 1) * UINT64_C(0x9e3779b97f4a7c15);
        uint64_t offset =
            command.offset_first + random_at(state, command.offset_span);

        for (size_t digit = command.offset_len; digit-- > 0; offset /= 10) {
            at[digit] = (char)('0' + offset % 10);
        }
        at += command.item_stride;
    }
}
