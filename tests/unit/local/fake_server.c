/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_server.h"

#include "base/clock.h"

#include "../test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO "%1\r\n+proto\r\n:3\r\n"
#define MISSING                                                                \
    ">5\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$2\r\nis\r\n$1\r\n1\r\n"            \
    "$7\r\nmissing\r\n"

/* One read is one command: a client waits for each answer. */
static void *
converse(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char bytes[4096];
    ssize_t got;

    while ((got = read(fd, bytes, sizeof(bytes) - 1)) > 0) {
        bytes[got] = '\0';
        if (strstr(bytes, "HELLO") != NULL) {
            (void)!write(fd, HELLO, strlen(HELLO));
        } else {
            (void)!write(fd, MISSING, strlen(MISSING));
        }
    }
    (void)close(fd);
    return NULL;
}

static void *
serve(void *arg)
{
    const struct fake_server *fake = arg;
    pthread_t thread;
    int fd;

    while ((fd = accept(fake->listener, NULL, NULL)) >= 0) {
        if (pthread_create(&thread, NULL, converse, (void *)(intptr_t)fd) !=
            0) {
            abort();
        }
        (void)pthread_detach(thread);
    }
    return NULL;
}

void
fake_begin(struct fake_server *fake)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);

    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fake->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fake->listener, 128), 0);
    assert_int_equal(getsockname(fake->listener, (struct sockaddr *)&at, &len),
                     0);
    (void)snprintf(fake->port, sizeof(fake->port), "%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&fake->thread, NULL, serve, fake), 0);
}

void
fake_end(struct fake_server *fake)
{
    (void)shutdown(fake->listener, SHUT_RDWR);
    assert_int_equal(pthread_join(fake->thread, NULL), 0);
    (void)close(fake->listener);
}

uint64_t
fake_now_ms(void)
{
    return clock_mono_ms();
}

unsigned
fake_threads(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *each;
    unsigned count = 0;

    assert_non_null(tasks);
    while ((each = readdir(tasks)) != NULL) {
        char path[300], text[32] = "";
        FILE *file;

        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
                       each->d_name);
        file = fopen(path, "re");
        if (file != NULL) {
            if (fgets(text, sizeof(text), file) != NULL) {
                text[strcspn(text, "\n")] = '\0';
                count += strcmp(text, name) == 0;
            }
            (void)fclose(file);
        }
    }
    (void)closedir(tasks);
    return count;
}
