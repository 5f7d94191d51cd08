/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the options tls-* mean for connections.
 */
#pragma once

#include "tls/tls_context.h"

#include <stdbool.h>

struct conf;

/* Returns the settings of a server; the texts are those of conf. serves: the
 * server listens for TLS. */
struct tls_settings conf_tls_settings(const struct conf *conf, bool serves);
