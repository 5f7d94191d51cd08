/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Some threads that do one piece of work together with their owner, again and
 * again. Only one thread, the owner, calls the functions.
 */
#pragma once

struct crew;

/* Starts THREADS - 1 threads beside the owner, or fewer if the system or the
 * memory does not allow more. Returns NULL if it could start no thread: the
 * owner then works alone. */
struct crew *crew_new(unsigned threads);
void crew_free(struct crew *crew);

/* Returns how many threads work, including the owner. */
unsigned crew_size(const struct crew *crew);

/* Makes each thread but the owner call WORK with its number, 1 to crew_size -
 * 1. The owner may do something else meanwhile. */
void crew_begin(struct crew *crew, void (*work)(void *ctx, unsigned number),
                void *ctx);

/* Calls WORK with number 0, and returns when all threads have done their work.
 */
void crew_end(struct crew *crew, void (*work)(void *ctx, unsigned number),
              void *ctx);
