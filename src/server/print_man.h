/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command table as the list of bloomery-commands(7).
 */
#pragma once

#include <stdio.h>

void print_man_commands(FILE *to);
