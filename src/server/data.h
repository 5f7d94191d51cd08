/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects persist with the loops and the service: its hooks, its ticks, and
 * the load of the data. Loop 0.
 */
#pragma once

struct server;

struct persist *data_new(struct server *server);

/* Starts the tick and the poke, before loop 0 runs. */
void data_start_handles(struct server *server);

/* Starts to load. At the end the server begins to serve, or stops. */
void data_start_load(struct server *server);
