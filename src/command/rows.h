/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rows of the command table with their handlers. Constant.
 */
#pragma once

#include "access/table.h"

extern const struct command command_rows[CMD_ID_COUNT];
