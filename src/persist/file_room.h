/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small file that can be replaced on a full disk. Beside it, the room file
 * `name`.room has reserved blocks. If there is no space for a new file, the
 * text is written to the room file. Then both files exchange their names, so
 * that the old file becomes the room for the next text.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdint.h>

#define FILE_ROOM_SUFFIX ".room"

/* Creates the room file, or enlarges it, so that it takes texts of so many
 * bytes. Returns 0 or errno. */
MUST_CHECK int file_room_make(int dir_fd, const char *name, uint64_t bytes);

/* Does what file_replace does. If the room file is used and its old text is
 * longer, line feeds fill it up to the old length: truncating the file would
 * give its blocks away. */
MUST_CHECK int file_room_replace(int dir_fd, const char *name,
                                 struct slice text, uint64_t bytes);
