/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looks into a whole reply of another server (reply_first finds it), in place.
 * Pure functions, any thread.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

bool resp_is_error(struct slice reply);

/* Finds the number behind the name of a field, as in INFO. */
bool resp_field(struct slice reply, const char *name, uint64_t *ret_value);

/* Returns the text of an error or simple string, or the bytes of a bulk string;
 * empty for any other reply. */
struct slice resp_text(struct slice reply);

/* Reads an integer. False if the reply is no integer. */
bool resp_integer(struct slice reply, int64_t *ret_value);

/* Returns the first error in a reply, which may be nested in arrays, as its
 * text; empty if there is none. */
struct slice resp_find_error(struct slice reply);

/* Opens an array: *ret_rest has its elements, and resp_element cuts them off
 * one by one. False if the reply is no array. */
bool resp_array(struct slice reply, struct slice *ret_rest);
bool resp_element(struct slice *rest, struct slice *ret_element);

/* Returns the length for "%.*s" with which messages show a server's error. */
int resp_shown(struct slice error);
