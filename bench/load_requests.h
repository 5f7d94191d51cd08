/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The load generator's requests: one command as bytes, built once from the
 * options, and the places of the digits that differ from item to item. For a
 * filter in a bitmap it also computes the offsets of an item's bits. With
 * --script, an EVALSHA takes the place of the command.
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
 * each bit, whose offset has the digits. A script takes all offsets at once. */
struct command {
    char *bytes;
    size_t len;
    size_t key_digits; /* 0: one key for all */
    size_t names;      /* of the key, item_stride apart */
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

/* Appends the name of a command that has WORDS arguments after it. */
static inline char *
put_name(char *at, const char *name, size_t words)
{
    if (opt.script == NULL) {
        at += sprintf(at, "*%zu\r\n", words + 1);
        return at + put_bulk(at, name, strlen(name));
    }
    at += sprintf(at, "*%zu\r\n", words + 3);
    at += put_bulk(at, "EVALSHA", 7);
    at += put_bulk(at, opt.script, strlen(opt.script));
    return at + put_bulk(at, "1", 1);
}

/* Appends the key, and sets the place of the digits in its first name. */
static inline char *
put_key(char *at)
{
    char key[1024];

    sprintf(key, opt.keys > 1 ? "%s00000000" : "%s", opt.key);
    at += put_bulk(at, key, strlen(key));
    if (opt.keys > 1 && command.names++ == 0) {
        command.key_digits = (size_t)(at - command.bytes) - 2 - DIGITS;
    }
    return at;
}

/* Appends an offset with the digits of the first one. */
static inline char *
put_offset(char *at)
{
    char offset[24];

    sprintf(offset, "%ju", (uintmax_t)command.offset_first);
    at += put_bulk(at, offset, command.offset_len);
    if (command.item_digits == 0) {
        command.item_digits =
            (size_t)(at - command.bytes) - 2 - command.offset_len;
    }
    return at;
}

/* All offsets have the same length, so that they can be overwritten: those with
 * fewer digits than the largest one are not used. */
static inline void
build_bits(bool sets)
{
    char largest[24];
    char *at;

    command.by_hand = true;
    command.items = opt.hashes;
    command.replies = opt.script != NULL ? 1 : opt.hashes;
    command.offset_len =
        (size_t)sprintf(largest, "%ju", (uintmax_t)(opt.bits - 1));
    command.offset_first = 1;
    for (size_t i = 1; i < command.offset_len; i++) {
        command.offset_first *= 10;
    }
    command.offset_span = opt.bits - command.offset_first;
    command.bytes = alloc(opt.hashes, 2048);
    at = command.bytes;
    if (opt.script != NULL) {
        at = put_key(put_name(at, NULL, 1 + opt.hashes));
        for (size_t i = 0; i < opt.hashes; i++) {
            char *next = put_offset(at);

            command.item_stride = (size_t)(next - at);
            at = next;
        }
    } else {
        for (size_t i = 0; i < opt.hashes; i++) {
            at = put_name(at, sets ? "SETBIT" : "GETBIT", sets ? 3 : 2);
            at = put_offset(put_key(at));
            at += sets ? put_bulk(at, "1", 1) : 0;
        }
        command.item_stride = (size_t)(at - command.bytes) / opt.hashes;
    }
    command.len = (size_t)(at - command.bytes);
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
    char *at;
    size_t i = 0;

    if (strlen(opt.key) > 1000 ||
        (opt.script != NULL && strlen(opt.script) > 256)) {
        die("--key: at most 1000 bytes; --script: at most 256");
    }
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
    if (opt.script != NULL && command.items != 1) {
        die("--script: with add, exists, setbit or getbit");
    }
    command.bytes = alloc(1, 2048 + command.items * 32);
    at = put_name(command.bytes, names[i].name,
                  command.items > 0 ? command.items + 1 : 0);
    if (command.items > 0) {
        at = put_key(at);
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
