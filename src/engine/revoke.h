/* SPDX-License-Identifier: BSD-3-Clause
 *
 * After a change of users each loop looks through its own connections. It
 * closes those whose user was deleted, or lost the right to a channel or filter
 * to which they subscribe, or to the MONITOR that they run. Their commands are
 * refused from the change on; revoke_lost() ends connections that only listen.
 * On the loop's thread.
 */
#pragma once

#include "engine/service.h"

/* Closes such connections of this loop, if users have changed since the last
 * call. ctx is the worker. Closed connections hear nothing more, so call it
 * before notices are delivered. The connections close soon after it. */
void revoke_lost(void *ctx);
