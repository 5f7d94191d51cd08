/* SPDX-License-Identifier: BSD-3-Clause
 *
 * After a change of users each loop looks through its own connections, and
 * closes those whose user was deleted, or may no longer use a channel, or read
 * a filter, to which they subscribe. The commands of such connections are
 * refused from the moment of the change on; revoke_lost() ends those that only
 * listen. On the loop's thread.
 */
#pragma once

#include "engine/service.h"

/* Closes such connections of this loop, if users have changed since the last
 * call. ctx is the worker. Closed connections hear nothing more, so call it
 * before notices are delivered. The connections close soon after it. */
void revoke_lost(void *ctx);
