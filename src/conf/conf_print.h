/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The option table as documents. conf/bloomery.conf and the option lists of
 * the man page are exactly what these print. To a FILE, from main's thread.
 */
#pragma once

#include <stdio.h>

/* The annotated configuration file: every option with its text, its values
 * and its default, commented out. */
void conf_print_file(FILE *to);

/* The same as an mdoc list for bloomery.conf(5). */
void conf_print_man(FILE *to);

/* A line or two an option, for --help. */
void conf_print_help(FILE *to);
