/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-load secrets: copies the secrets of keyed filters from a running
 * server, which gives them as it gives them to a replica, or from a data
 * directory. They go to the folder hash-secrets of another data directory,
 * whose server reads it at SIGHUP. Bloomery has no command to which a secret
 * could be sent.
 */
#pragma once

#include "load/load.h"

/* Copies the secrets from load->from into the directory DIR. */
void load_secrets(struct load *load, const char *dir);

/* Prints, once, what to do, if a server's error says that it lacks a secret,
 * and load->from names a source, from which it can be copied. */
void load_secrets_hint(struct load *load, struct slice error);
