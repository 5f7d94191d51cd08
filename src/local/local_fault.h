/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a program is told about a connection that has failed. Pure.
 */
#pragma once

#include "client/client.h"

#include <bloomery/local.h>

/* Writes why a client has failed, and returns the code. OK: it has not failed,
 * and nothing is written. */
enum bloomery_local_code local_fault_text(const struct client *client,
                                          char *ret_text, size_t room);
