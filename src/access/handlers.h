/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prototypes of the functions that the rows of tbl/commands.def name. The files
 * that define them include this, so that the compiler compares; a missing
 * handler fails to link.
 */
#pragma once

#include "access/table.h"

#define CMD(id, nm, fn, ...) enum err fn(struct request *req);
#include "tbl/commands.def"
#undef CMD

/* The .many, .known and .ready of one-item BF commands. */
uint32_t cmd_bf_add_many(struct request *req, const struct slice *argv,
                         uint32_t count);
uint32_t cmd_bf_add_known(struct request *req, const struct slice *argv,
                          uint32_t count);
void cmd_bf_add_ready(struct request *req, const struct slice *argv,
                      uint32_t count);
uint32_t cmd_bf_exists_many(struct request *req, const struct slice *argv,
                            uint32_t count);

/* The .ahead of commands whose items follow the key. */
void cmd_bf_ahead(const struct entry *entry, const struct slice *argv,
                  size_t argc);

/* The .touch of commands with a key and items. */
bool cmd_bf_touch(const struct entry *entry, const struct slice *items,
                  size_t count);

/* The .prepare of RESTORE, COPY and BF.MERGE: prepare.h. */
bool prepare_restore(struct request *req);
bool prepare_load(struct request *req);
bool prepare_copy(struct request *req);
bool prepare_merge(struct request *req);
