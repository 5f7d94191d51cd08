/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints the option table as documents: conf/bloomery.conf and the option lists
 * of the man page are this output.
 */
#pragma once

#include <stdio.h>

/* Prints the annotated configuration file: every option with its text, its
 * values and its default, commented out. */
void conf_print_file(FILE *to);

/* Prints the mdoc list for bloomery.conf(5). */
void conf_print_man(FILE *to);

/* Prints each option with its default and its text, for --help. */
void conf_print_help(FILE *to);
