/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Says from a reply to INFO whether a server that answers PING also has data to
 * serve (--ping=ready), or even all that it and its replicas should have
 * (--ping=complete). It reads text only, of any server.
 */
#pragma once

#include "base/slice.h"

/* The sections of INFO that it reads. */
#define READINESS_SECTIONS "replication", "cluster"

/* Returns why the server is not ready, or NULL if it is. Fields that are
 * missing say nothing. */
const char *readiness_refusal(struct slice info);

/* Returns why the server is not complete, so that the next server of a rolling
 * restart has to wait; NULL if it is. */
const char *readiness_incomplete(struct slice info);
