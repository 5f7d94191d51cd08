/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starts, runs and tears down the server; the only place that connects the
 * rooms. Called by main on the main thread, which is also loop 0.
 */
#pragma once

#include "conf/conf_args.h"

#include <stdbool.h>

struct server;

/* Prepares everything. Takes ownership of conf and given, even on failure.
 * Before it returns false, it logs the reason and sets server->exit. */
bool server_init(struct server *server, struct conf *conf, struct conf *given,
                 const struct conf_args *args, int argc, char **argv);

/* Serves until SIGTERM, SIGINT or SHUTDOWN, or until the data cannot be loaded,
 * which is logged. Sets server->exit. */
void server_run(struct server *server);
void server_fini(struct server *server);
