/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaces the resolver of the system: it gives the answers that the test sets,
 * and can be stuck for as long as the test wants. Addresses in digits are IPv4.
 * It is a header, because a linker can take getaddrinfo() from a helper library
 * for a test that wants the system's.
 */
#pragma once

#include "../test.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t moves;
    bool stuck;
    unsigned waiting, passes; /* let through while it is stuck */
    char asked[64];           /* the last name that it was asked for */
    int error;                /* what names are answered with, or */
    const char *answer;       /* addresses between blanks */
} resolver = { .mutex = PTHREAD_MUTEX_INITIALIZER,
               .moves = PTHREAD_COND_INITIALIZER,
               .answer = "" };

/* Sets the answer for each name from now on. */
static inline void
resolver_say(int error, const char *answer)
{
    pthread_mutex_lock(&resolver.mutex);
    resolver.error = error;
    resolver.answer = answer;
    pthread_mutex_unlock(&resolver.mutex);
}

static inline void
resolver_stick(bool stuck)
{
    pthread_mutex_lock(&resolver.mutex);
    resolver.stuck = stuck;
    pthread_cond_broadcast(&resolver.moves);
    pthread_mutex_unlock(&resolver.mutex);
}

static inline unsigned
resolver_waiting(void)
{
    unsigned waiting;

    pthread_mutex_lock(&resolver.mutex);
    waiting = resolver.waiting;
    pthread_mutex_unlock(&resolver.mutex);
    return waiting;
}

static inline void
resolver_let_one_go(void)
{
    pthread_mutex_lock(&resolver.mutex);
    resolver.passes++;
    pthread_cond_broadcast(&resolver.moves);
    pthread_mutex_unlock(&resolver.mutex);
}

static inline const char *
resolver_asked(void)
{
    static char asked[sizeof(resolver.asked)];

    pthread_mutex_lock(&resolver.mutex);
    memcpy(asked, resolver.asked, sizeof(asked));
    pthread_mutex_unlock(&resolver.mutex);
    return asked;
}

/* False if the text is no address. */
static inline bool
resolver_add(const char *text, const char *port, struct addrinfo ***at)
{
    struct addrinfo *info = calloc(1, sizeof(*info));
    struct sockaddr_in *in = calloc(1, sizeof(*in));

    assert_non_null(info);
    assert_non_null(in);
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    if (inet_pton(AF_INET, text, &in->sin_addr) != 1) {
        free(info);
        free(in);
        return false;
    }
    info->ai_family = AF_INET;
    info->ai_socktype = SOCK_STREAM;
    info->ai_addr = (struct sockaddr *)in;
    info->ai_addrlen = sizeof(*in);
    **at = info;
    *at = &info->ai_next;
    return true;
}

static inline int
resolver_answer(const char *name, const char *port, struct addrinfo **ret_found)
{
    struct addrinfo **at = ret_found;
    char words[256];
    char *rest = words;
    char *word;
    int error;

    pthread_mutex_lock(&resolver.mutex);
    resolver.waiting++;
    (void)strncpy(resolver.asked, name, sizeof(resolver.asked) - 1);
    while (resolver.stuck && resolver.passes == 0) {
        pthread_cond_wait(&resolver.moves, &resolver.mutex);
    }
    resolver.passes -= resolver.passes > 0;
    resolver.waiting--;
    error = resolver.error;
    (void)strncpy(words, resolver.answer, sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    pthread_mutex_unlock(&resolver.mutex);
    *ret_found = NULL;
    while (error == 0 && (word = strtok_r(rest, " ", &rest)) != NULL) {
        assert_true(resolver_add(word, port, &at));
    }
    return error;
}

int
getaddrinfo(const char *restrict node, const char *restrict service,
            const struct addrinfo *restrict hints,
            struct addrinfo **restrict ret_found)
{
    struct addrinfo **at = ret_found;

    if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
        return resolver_add(node, service, &at) ? 0 : EAI_NONAME;
    }
    return resolver_answer(node, service, ret_found);
}

void
freeaddrinfo(struct addrinfo *info)
{
    while (info != NULL) {
        struct addrinfo *next = info->ai_next;

        free(info->ai_addr);
        free(info);
        info = next;
    }
}
