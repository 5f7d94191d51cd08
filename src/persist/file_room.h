/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small file that can be replaced on a full disk: `name`.room beside it has
 * blocks reserved, and takes the text when there is no space for a new file.
 * Then both change names, so that the old one is the room of the next text.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdint.h>

#define FILE_ROOM_SUFFIX ".room"

/* Makes the room, or makes it larger, so that it takes texts of so many bytes.
 * Returns 0 or errno. */
MUST_CHECK int file_room_make(int dir_fd, const char *name, uint64_t bytes);

/* As file_replace. On a full disk a text that is shorter than an old one has
 * line feeds after it, up to the length of that one: to cut the file would give
 * its blocks away. */
MUST_CHECK int file_room_replace(int dir_fd, const char *name,
                                 struct slice text, uint64_t bytes);
