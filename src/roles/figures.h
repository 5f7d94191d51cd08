/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies of loop 0's figures for INFO, WAIT, CLIENT LIST and the admission of
 * writes. Loop 0, unless a line says otherwise.
 */
#pragma once

#include "repl/wire.h"

struct replication;
struct service;

/* figures_show() publishes all figures now. figures_settle() does so only if
 * they have changed (figures_due), and then wakes the commands that wait for
 * them. Outside the gate. */
void figures_show(struct replication *r);
void figures_settle(struct replication *r);

/* Sets whether writes are refused because too few replicas keep up. Any thread,
 * inside the gate. */
void figures_judge(struct service *service);

/* Copies the run ids of the servers above us for other threads. */
void figures_keep_chain(struct replication *r);

/* Copies these run ids to ret_chain and returns how many there are. Any thread;
 * it is called as a hook (struct replication_calls). */
size_t figures_copy_chain(void *ctx, char (*ret_chain)[WIRE_ID_CHARS + 1]);
