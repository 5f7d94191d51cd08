/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prototypes of the functions that the rows of tbl/commands.def name. The files
 * that define them include this header, so that the compiler compares the
 * types; a missing handler fails to link.
 */
#pragma once

#include "access/table.h"

#define CMD(id, nm, fn, ...) enum err fn(struct request *req);
#include "tbl/commands.def"
#undef CMD

/* Serve as .many, .known and .ready of the one-item BF commands
 * (access/table.h). */
uint32_t cmd_bf_add_many(struct request *req, const struct slice *argv,
                         uint32_t count);
uint32_t cmd_bf_add_known(struct request *req, const struct slice *argv,
                          uint32_t count);
void cmd_bf_add_ready(struct request *req, const struct slice *argv,
                      uint32_t count);
uint32_t cmd_bf_exists_many(struct request *req, const struct slice *argv,
                            uint32_t count);

/* Serves as .ahead of commands whose items follow the key. */
void cmd_bf_ahead(const struct entry *entry, const struct slice *argv,
                  size_t argc);

/* Serves as .touch of commands with a key and items. */
bool cmd_bf_touch(const struct entry *entry, const struct slice *items,
                  size_t count);

/* Serve as .prepare of RESTORE, BF.LOAD, COPY and BF.MERGE (bloom/prepare.h).
 */
bool prepare_restore(struct request *req);
bool prepare_load(struct request *req);
bool prepare_copy(struct request *req);
bool prepare_merge(struct request *req);
