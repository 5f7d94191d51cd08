/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Passwords that lie in files of their own (requirepass-file), as service
 * managers and containers hand them over. Read with the configuration, so at
 * the start and at each reload. Blocks on the disk.
 */
#pragma once

#include "conf/conf.h"

/* Sets each secret whose file is named. Notes files that others can read. On
 * failure *ret_error is "NAME: PATH: what is wrong". */
MUST_CHECK bool conf_secrets_load(struct conf *conf, struct conf_notes *notes,
                                  struct conf_error *ret_error);
