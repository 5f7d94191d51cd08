/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handles the files outside of a data directory that the server's options name
 * (snapshot/data_files.h has the list). A backup copies the users and the
 * secret, and says which other files it does not include.
 */
#pragma once

#include "check/check_make.h"

struct conf;

/* Sets the options that a configuration file gives, and then those of
 * rewritten.conf in the data directory `path`. The caller frees *ret_conf with
 * conf_fini in any case. False: the reason was printed. */
bool check_outer_read(struct check *check, const char *config, const char *path,
                      struct conf *ret_conf);

/* Copies to the directory `out` what a backup of the data directory `path`
 * includes: users as aclfile.acl, the secret into the folder hash-secrets.
 * Without --config it only says that none of them is included. False: the
 * reason was printed. */
bool check_outer_copy(struct check_made *made, const char *path,
                      const char *out);
