/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The one parser of addresses such as "host:port" and "[host]:port". The
 * nodes of a cluster have a longer form (cluster/topology.h). Any thread.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

struct host_port {
    struct slice host; /* never empty; without brackets */
    struct slice port; /* never empty; a number, or the name of a service */
    bool bracketed;
};

/* Splits a text at its last colon; the parts are borrowed. False: a part is
 * missing. */
bool host_port_split(struct slice text, struct host_port *ret_parts);

/* Reads the port as a number from 1 to 65535. */
bool host_port_number(const struct host_port *parts, unsigned *ret_port);
