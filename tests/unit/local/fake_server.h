/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server with a thread for each connection, which knows no key: it answers
 * each BF.SUBSCRIBE with "missing".
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct fake_server {
    int listener;
    char port[16];
    pthread_t thread;
};

void fake_begin(struct fake_server *fake);
void fake_end(struct fake_server *fake);

uint64_t fake_now_ms(void);

/* Returns how many threads of this process have a name. */
unsigned fake_threads(const char *name);
