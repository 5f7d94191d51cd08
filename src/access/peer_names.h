/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of commands and ACL categories that Redis and Valkey have, and this
 * server does not (tbl/peer_names.def). ACL rules with these names are kept and
 * do nothing, so that users of such a server can be taken over unchanged.
 * Constant.
 */
#pragma once

#include "base/slice.h"

/* Returns whether a peer has this command ("client|capa") or category
 * ("@name"), in any letter case. Behind a command without subcommands, "|" may
 * be followed by any first argument without blanks. */
bool peer_names_have(struct slice name);
