/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small file that can be replaced on a full disk: `name`.room beside it has
 * blocks reserved, and takes the text when there is no space for a new file.
 * Then both files exchange their names, so that the old file is the room for
 * the next text.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdint.h>

#define FILE_ROOM_SUFFIX ".room"

/* Creates the room file, or enlarges it, so that it takes texts of so many
 * bytes. Returns 0 or errno. */
MUST_CHECK int file_room_make(int dir_fd, const char *name, uint64_t bytes);

/* Does what file_replace does. On a full disk, if the text is shorter than the
 * old one, line feeds follow it up to the old length: truncating the file would
 * give its blocks away. */
MUST_CHECK int file_room_replace(int dir_fd, const char *name,
                                 struct slice text, uint64_t bytes);
