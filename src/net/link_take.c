/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/link_take.h"

#include "base/err.h"
#include "base/mem.h"
#include "net/link_internal.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sets the kind. False: the descriptor is neither a socket nor a pipe. */
static bool
classify(struct link *link, int fd)
{
    struct sockaddr_storage near = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof(near);
    struct stat info;

    if (fstat(fd, &info) != 0) {
        return false;
    }
    if (!S_ISSOCK(info.st_mode)) {
        link->kind = LINK_PIPE;
        return S_ISFIFO(info.st_mode);
    }
    if (getsockname(fd, (struct sockaddr *)&near, &len) != 0) {
        return false;
    }
    link->kind = near.ss_family != AF_UNIX ? LINK_TCP : LINK_UNIX;
    return true;
}

static bool
adopt(struct link *link, int fd)
{
    int status;

    if (!classify(link, fd)) {
        return false;
    }
    if (link->kind == LINK_TCP) {
        CHECK(uv_tcp_init(&link->loop->uv, &link->uv.tcp) == 0);
        status = uv_tcp_open(&link->uv.tcp, fd);
    } else {
        CHECK(uv_pipe_init(&link->loop->uv, &link->uv.pipe, 0) == 0);
        status = uv_pipe_open(&link->uv.pipe, fd);
    }
    link->uv.handle.data = link;
    link->has_stream = true;
    link->handles++;
    return status == 0;
}

struct link *
link_take(struct loop *loop, int fd, const struct link_hooks *hooks, void *ctx)
{
    struct link *link = loop->stopping ? NULL : mem_try_zalloc(sizeof(*link));

    if (link == NULL) {
        (void)close(fd);
        return NULL;
    }
    link_begin(link, loop, hooks, ctx);
    if (!adopt(link, fd)) {
        (void)close(fd);
        link_close(link);
        return NULL;
    }
    link_become_open(link);
    link_settle(link);
    return link;
}
