/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the replies of CLUSTER SLOTS, SHARDS and NODES for a view whose other
 * fields are set, in the form of Redis 7.0.15. Each reply is written once for
 * each view, in RESP2 and RESP3, and for plain clients and those with TLS if
 * these use different ports.
 */
#pragma once

#include "cluster/view_state.h"

/* Fills in view->reply. False: no memory. */
bool view_text_write(struct cluster_view *view);
