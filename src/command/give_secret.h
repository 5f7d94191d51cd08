/* SPDX-License-Identifier: BSD-3-Clause
 *
 * REPLCONF hash-secret, by which another Bloomery asks for the secrets of keyed
 * filters (repl/wire.h).
 */
#pragma once

#include "engine/request.h"

/* Replies with fingerprints, or with a secret. */
MUST_CHECK enum err give_secret(struct request *req);
