/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints the command table as the list of bloomery-commands(7), and as the
 * tables of packaging/doc/commands.md.
 */
#pragma once

#include <stdio.h>

void print_man_commands(FILE *to);

/* Prints Markdown. */
void print_page_commands(FILE *to);
