/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What SIDECAR asks of pulls and drops, from any thread: orders wait for loop
 * 0, and any thread reads the figures that loop 0 has published. One mutex, a
 * leaf.
 */
#pragma once

struct replication;
struct slot_orders;

/* Sets the service's slot_calls. */
struct slot_orders *slot_orders_new(struct replication *r);
void slot_orders_free(struct slot_orders *orders);

/* Carries out what was ordered, and publishes the figures. Loop 0. */
void slot_orders_look(struct slot_orders *orders);
void slot_orders_publish(struct slot_orders *orders);
