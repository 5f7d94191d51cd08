/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that are executed in pieces, without a socket.
 */
#pragma once

#include "base/hash.h"
#include "rig.h"

#include <stdlib.h>

enum { ITEM_BYTES = 12 };

/* A command of its own batch; the words lie in text. */
struct command_text {
    struct batch batch;
    struct buf text;
};

void add_word(struct command_text *command, struct slice word);

/* Makes a command of the words of head and of `count` items from `first` on. */
void put(struct command_text *command, const char *head, unsigned first,
         unsigned count);

void drop(struct command_text *command);

/* Calls the command until it is done, and returns how many calls it took. */
unsigned run(struct rig *rig, const struct command_text *command);

unsigned call(struct rig *rig, const char *head, unsigned first,
              unsigned count);

int64_t number(struct rig *rig, const char *head);

/* Expects a reply of `count` integers, and returns how many are 1. */
unsigned ones(const struct rig *rig, unsigned count);

void remove_key(struct rig *rig, const char *name);
