/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread for what takes a disk's time and has no hurry: manifests, new
 * files, removing old ones, restoring huge pages. One task at a time, given by
 * loop 0, which is told when it is done.
 */
#pragma once

#include <stdbool.h>

struct task;

/* Starts the thread under this name. done is called by it after each task. For
 * the start of the server: it ends if there can be no thread. */
struct task *task_new(const char *name, void (*done)(void *ctx), void *ctx);

/* Waits for the task that runs. NULL is fine. */
void task_free(struct task *task);

/* Runs fn(arg) on the thread. The one before must have ended. */
void task_start(struct task *task, void (*fn)(void *arg), void *arg);

/* Once started, until it has ended. */
bool task_is_running(struct task *task);
void task_wait(struct task *task);
