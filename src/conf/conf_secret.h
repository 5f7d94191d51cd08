/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Passwords in files of their own (requirepass-file), as service managers and
 * containers provide them. They are read with the configuration: at the start
 * and at each reload. Blocks on the disk.
 */
#pragma once

#include "conf/conf.h"

/* Sets each secret whose file is named, and notes files that other users can
 * read. On failure *ret_error is "NAME: PATH: what is wrong"; with `mistakes`,
 * the error goes there, and the other secrets are set. */
MUST_CHECK bool conf_secrets_load(struct conf *conf, struct conf_notes *notes,
                                  struct buf *mistakes,
                                  struct conf_error *ret_error);
