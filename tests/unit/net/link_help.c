/* SPDX-License-Identifier: BSD-3-Clause */
#include "link_help.h"

void
owner_close(struct owner *owner)
{
    if (owner->link != NULL) {
        struct link *link = owner->link;

        owner->link = NULL;
        link_close(link);
    }
}

static void
owner_acts(struct owner *owner, enum owner_hook hook)
{
    assert_false(owner->inside);
    if (owner->closes == hook) {
        owner_close(owner);
    }
    if (owner->leaves == hook && owner->link != NULL) {
        link_close_after(owner->link, DEADLINE_MS);
        owner->link = NULL;
    }
    if ((owner->closes == hook || owner->leaves == hook) &&
        owner->closes_too != NULL) {
        owner_close(owner->closes_too);
    }
}

static void
owner_opened(void *ctx, struct link *link)
{
    struct owner *owner = ctx;

    assert_ptr_equal(owner->link, link);
    owner->opened++;
    owner_acts(owner, IN_OPENED);
}

static void
owner_bytes(void *ctx, struct link *link, struct slice bytes, size_t *ret_used)
{
    struct owner *owner = ctx;
    size_t used = bytes.len;

    assert_ptr_equal(owner->link, link);
    assert_true(bytes.len > 0 && *ret_used == 0);
    owner->calls++;
    if (owner->use > 0 && used > owner->use) {
        used = owner->use;
    }
    if (owner->whole > 0) {
        used -= used % owner->whole;
    }
    if (owner->pauses || owner->yields) {
        link_pause(link, true);
    }
    if (owner->yields) {
        link_pause(link, false);
    }
    owner_acts(owner, IN_BYTES);
    buf_append(&owner->got, bytes.data, used); /* also of a closed one */
    *ret_used = used;
}

static void
owner_drained(void *ctx, struct link *link)
{
    struct owner *owner = ctx;

    assert_ptr_equal(owner->link, link);
    owner->drained++;
    owner_acts(owner, IN_DRAINED);
}

static void
owner_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct owner *owner = ctx;

    assert_ptr_equal(owner->link, link);
    owner->closed++;
    owner->error = error;
    (void)snprintf(owner->reason, sizeof(owner->reason), "%s", reason);
    owner_acts(owner, IN_CLOSED);
    owner->link = NULL;
}

const struct link_hooks owner_hooks = { .opened = owner_opened,
                                        .bytes = owner_bytes,
                                        .drained = owner_drained,
                                        .closed = owner_closed };

bool
owner_send(struct owner *owner, struct slice bytes)
{
    bool sent;

    owner->inside = true;
    sent = link_send(owner->link, bytes);
    owner->inside = false;
    return sent;
}

void
owner_pause(struct owner *owner, bool paused)
{
    owner->inside = true;
    link_pause(owner->link, paused);
    owner->inside = false;
}

void
owner_free(struct owner *owner)
{
    owner_close(owner);
    buf_free(&owner->got);
}

/* ---- sockets ------------------------------------------------------------- */

int
listen_on(const char *host, unsigned *port, int backlog)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)*port) };
    socklen_t len = sizeof(in);
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    assert_int_equal(1, inet_pton(AF_INET, host, &in.sin_addr));
    assert_int_equal(0, bind(fd, (struct sockaddr *)&in, sizeof(in)));
    assert_int_equal(0, listen(fd, backlog));
    assert_int_equal(0, getsockname(fd, (struct sockaddr *)&in, &len));
    *port = ntohs(in.sin_port);
    return fd;
}

static int
connect_to(const char *host, unsigned port)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(1, inet_pton(AF_INET, host, &in.sin_addr));
    assert_int_equal(0, connect(fd, (struct sockaddr *)&in, sizeof(in)));
    return fd;
}

void
ends_of(enum kind kind, int ret_ends[2])
{
    unsigned port = 0;
    int listening;

    switch (kind) {
    case BY_PIPE:
        assert_int_equal(0, pipe2(ret_ends, O_CLOEXEC));
        break;
    case BY_TCP:
        listening = listen_on("127.0.0.1", &port, 1);
        ret_ends[1] = connect_to("127.0.0.1", port);
        ret_ends[0] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        assert_true(ret_ends[0] >= 0);
        (void)close(listening);
        break;
    default:
        assert_int_equal(
            0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_ends));
        break;
    }
}

struct peer
owner_take(struct rig *rig, struct owner *owner, enum kind kind, bool small)
{
    int bytes = SMALL_SOCKET;
    int ends[2];

    ends_of(kind, ends);
    for (int i = 0; i < 2 && small; i++) {
        (void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    }
    owner->inside = true;
    owner->link = link_take(&rig->loop, ends[0], &owner_hooks, owner);
    owner->inside = false;
    assert_non_null(owner->link);
    return peer_of(ends[1]);
}

void
pattern_fill(char *to, uint64_t place, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = pattern_at(place + i);
    }
}

void
assert_pattern(struct slice bytes, uint64_t place)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.data[i] != pattern_at(place + i)) {
            fail_msg("byte %zu of the stream is wrong", i);
        }
    }
}
