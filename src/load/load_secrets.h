/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bloomery-load secrets: copies the secrets of keyed filters from a running
 * server, which gives them as it gives them to a replica, or from a data
 * directory. They go to the folder hash-secrets of another data directory,
 * whose server reads it at SIGHUP. No command takes a secret over the wire.
 */
#pragma once

#include "load/load.h"

/* Copies them from load->from into the directory DIR. */
void load_secrets(struct load *load, const char *dir);

/* If a server's error is that it lacks a secret, and load->from has it, says
 * once what to do. */
void load_secrets_hint(struct load *load, struct slice error);
