/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of the options pidfile and logfile. Main thread.
 */
#pragma once

#include <stdbool.h>

/* Writes the process id; "" is no file. A failure is only logged. */
void own_files_write_pid(const char *path);

/* Reopens the log, for a reload; "" is standard error. */
void own_files_reopen_log(const char *path);

/* Removes the file, unless another process has written its own id there. */
void own_files_remove_pid(const char *path);
