/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options pidfile and logfile: the process id while the server runs, and
 * its log. Main thread.
 */
#pragma once

#include <stdbool.h>

/* Writes it in one step; "" is no file. Without it the server goes on, after a
 * warning. */
void own_files_write_pid(const char *path);

/* Opens the log anew, as a reload wants it; "" is standard error. */
void own_files_reopen_log(const char *path);

/* Unless another process has written its own id there since. */
void own_files_remove_pid(const char *path);
