/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of the machine or of this process's control group, and how much of
 * it the process uses. Any thread.
 */
#pragma once

#include <stdint.h>

/* Returns the most physical memory that this process can have: the machine's,
 * or the limit of its cgroup (version 1 or 2) if that is lower. Read once. */
uint64_t machine_memory_bytes(void);

/* Returns what the process may use by default: all but a tenth, which is for
 * the kernel, page tables and other processes. */
static inline uint64_t
machine_share_bytes(uint64_t memory_bytes)
{
    return memory_bytes - memory_bytes / 10;
}

/* Returns the lowest limit of the groups in the file `membership` and of their
 * parents; 0 if there is none. The server passes /proc/self/cgroup, and
 * /sys/fs/cgroup as the folder; tests pass others. */
uint64_t machine_group_limit(const char *membership, const char *folder);

/* Returns the resident bytes of this process; 0 if they are unknown. */
uint64_t machine_resident_bytes(void);
