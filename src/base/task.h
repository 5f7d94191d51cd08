/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread for disk work that need not be fast: manifests, new files, removing
 * old ones, restoring huge pages. Loop 0 gives it one task at a time, and is
 * called when it is done.
 */
#pragma once

#include <stdbool.h>

struct task;

/* Starts the thread under this name. The thread calls done after each task. At
 * the start of the server only: without a thread the server ends with a
 * message. */
struct task *task_new(const char *name, void (*done)(void *ctx), void *ctx);

/* Waits for the task that runs, then ends the thread. NULL is fine. */
void task_free(struct task *task);

/* Runs fn(arg) on the thread. The previous task must have ended. */
void task_start(struct task *task, void (*fn)(void *arg), void *arg);

/* True from task_start until fn has returned. */
bool task_is_running(struct task *task);
void task_wait(struct task *task);
