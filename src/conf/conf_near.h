/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Guesses which option or section was meant if a name does not exist. Pure.
 */
#pragma once

#include "conf/conf.h"

/* Returns the option with the nearest name, or NULL if none is near. section:
 * the section in which the name was found, which decides between options of the
 * same name; NULL: the command line. */
const struct conf_row *conf_near_option(struct slice name, const char *section);

/* Returns the section with the nearest name, or NULL. */
const char *conf_near_section(struct slice name);
