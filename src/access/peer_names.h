/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of commands and ACL categories that Redis and Valkey have and this
 * server has not (tbl/peer_names.def). ACL rules with them are kept and do
 * nothing, so that the users of such a server can be used unchanged. Constant.
 */
#pragma once

#include "base/slice.h"

/* Returns whether a peer has this command, "client|capa" or "@category". A
 * command of a peer without subcommands may have any first argument without
 * blanks behind a "|". In any case of letters. */
bool peer_names_have(struct slice name);
