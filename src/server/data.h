/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects persist with the loops and the service: its hooks, its ticks, and
 * the load of the data. Loop 0.
 */
#pragma once

struct server;

struct persist *data_new(struct server *server);

/* Starts the handles `tick` and `poke`, before loop 0 runs. */
void data_start_handles(struct server *server);

/* Starts to load the data. After the load the server begins to serve, or stops.
 */
void data_start_load(struct server *server);
