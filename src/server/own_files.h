/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files that options name: writes the pidfile, reopens the logfile, and
 * checks who may use the aclfile and the private keys. Main thread.
 */
#pragma once

#include <stdbool.h>

struct conf;

/* Logs a warning for an aclfile that everyone may write, and for a private key
 * that everyone may read. */
void own_files_warn_of_modes(const struct conf *conf);

/* Writes the pidfile; "": there is none. A failure is only logged. */
void own_files_write_pid(const char *path);

/* Reopens the log, for a reload. Does nothing for "", standard error. */
void own_files_reopen_log(const char *path);

/* Removes the pidfile, unless another process has written its own id there. */
void own_files_remove_pid(const char *path);
