/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Expanded from tbl/commands.def.
 */
#include "command/rows.h"

#include "access/handlers.h"
#include "command/table_args.h"

const struct command command_rows[CMD_ID_COUNT] = {
#define CMD(ident, nm, fn, ...)                                                \
    [CMD_ID_##ident] = {                                                       \
        .id = CMD_ID_##ident, .name = nm, .handler = fn, __VA_ARGS__           \
    },
#include "tbl/commands.def"
#undef CMD
};
