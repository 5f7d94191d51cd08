/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of open files. shim.c opens, names and syncs them; transfer.c
 * writes and reads.
 */
#pragma once

#include "control.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { FDS_MAX = 4096, NAME_MAX_BYTES = 160 };

#define RAW(name, ...) syscall(SYS_##name, __VA_ARGS__)

/* An open file of the data directory; */
struct shim_file {
    bool used;
    enum kind kind;
    uint32_t handle;
    int error;                     /* that the next write fails with */
    int64_t dirty_from, dirty_end; /* written and not synced */
    char name[NAME_MAX_BYTES];     /* below the data directory; "" is itself */
};

/* Returns NULL if the descriptor is no file of the data directory. */
struct shim_file *shim_file_of(int fd);

/* Sets errno and returns -1. */
int shim_fail(int error);
