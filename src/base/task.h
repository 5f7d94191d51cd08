/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread for disk work that need not be fast: manifests, new files, removing
 * old ones, restoring huge pages. Its owner, usually loop 0, gives it one task
 * at a time, and is told when the task is done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct task;

/* Starts the thread under this name. The thread calls done after each task.
 * Call it only while the server starts: if there is no thread, the process ends
 * with a message. */
struct task *task_new(const char *name, void (*done)(void *ctx), void *ctx);

/* Waits for the present task, then ends the thread. A task that waits for its
 * time runs at once. NULL is fine. */
void task_free(struct task *task);

/* Runs fn(arg) on the thread. The previous task must have ended; done may start
 * the next one. */
void task_start(struct task *task, void (*fn)(void *arg), void *arg);

/* Runs fn(arg) at this time of clock_mono_ns, or as soon as task_hurry is
 * called. */
void task_start_at(struct task *task, void (*fn)(void *arg), void *arg,
                   uint64_t not_before_ns);
void task_hurry(struct task *task);

/* Returns true from task_start until fn has returned. */
bool task_is_running(struct task *task);
void task_wait(struct task *task);
