/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much memory the machine has, or the control group of this process, and
 * how much of it the process occupies. Any thread.
 */
#pragma once

#include <stdint.h>

/* Physical memory that this process can have at most: that of the machine, or
 * the limit of its cgroup (version 1 or 2) where that is lower. Read once. */
uint64_t machine_memory_bytes(void);

/* What a process that shares the machine should leave to others when nobody
 * told it how much it may take: a tenth, for the kernel, for page tables and
 * for whatever else runs. */
static inline uint64_t
machine_share_bytes(uint64_t memory_bytes)
{
    return memory_bytes - memory_bytes / 10;
}

/* The lowest limit of the groups that the file `membership` names and of their
 * parents; 0 if there is none. The files are /proc/self/cgroup, and the folder
 * is /sys/fs/cgroup; tests have others. */
uint64_t machine_group_limit(const char *membership, const char *folder);

/* Resident bytes of this process, 0 if /proc does not say. */
uint64_t machine_resident_bytes(void);
