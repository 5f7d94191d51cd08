/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include "../err_names.h"

static const enum metric rig_gauges[RIG_GAUGES] = {
    METRIC_CONNECTED_CLIENTS, METRIC_CLIENT_INPUT_BYTES,
    METRIC_CLIENT_OUTPUT_BYTES, METRIC_HELD_CLIENTS, METRIC_BLOCKED_CLIENTS
};

struct fake *
fake_of(struct conn *conn)
{
    return (struct fake *)conn;
}

/* ---- made-up clients ----------------------------------------------------- */

static struct conn *
fake_accept(struct loop *loop)
{
    struct rig *rig = loop->owner;
    struct fake *fake = rig->refuse ? NULL : mem_try_zalloc(sizeof(*fake));

    if (fake == NULL) {
        return NULL;
    }
    fake->rig = rig;
    fake->conn.trusted = true;
    atomic_fetch_add(&rig->accepted, 1);
    atomic_fetch_add(&rig->accepted_on[loop->index], 1);
    if (loop == &rig->loop) {
        rig->last = &fake->conn;
    }
    return &fake->conn;
}

static void
fake_closed(struct conn *conn)
{
    struct fake *fake = fake_of(conn);

    atomic_fetch_add(&fake->rig->closed, 1);
    mem_free(fake);
}

char
pattern_at(uint64_t place)
{
    return (char)('!' + (place * 2654435761U >> 20) % 90);
}

void
fake_fill(struct fake *fake, struct buf *out, size_t bytes)
{
    char *to = buf_reserve(out, bytes);

    for (size_t i = 0; to != NULL && i < bytes; i++) {
        to[i] = pattern_at(fake->filled + i);
    }
    if (to != NULL) {
        out->len += bytes;
        fake->filled += bytes;
    }
}

static size_t
fake_number(const struct slice *argv, size_t argc)
{
    uint64_t number = 0;

    assert_true(argc == 2 && slice_to_u64(argv[1], &number));
    return (size_t)number;
}

void
fake_echo(struct buf *out, const struct slice *argv, size_t argc)
{
    for (size_t i = 0; i < argc; i++) {
        buf_append(out, i == 0 ? "+" : "|", 1);
        buf_append_slice(out, argv[i]);
    }
    buf_append(out, "\r\n", 2);
}

/* False if the command wants to be called again. */
static bool
fake_one(struct fake *fake, const struct slice *argv, size_t argc)
{
    struct conn *conn = &fake->conn;
    struct buf *out = &conn->loop->reply;

    fake->calls++;
    if (fake->rig->takes != NULL && fake->rig->takes(fake, argv, argc)) {
        fake->executed++;
        return true;
    }
    if (slice_is_word(argv[0], "PAUSE")) {
        fake->pauses = fake->is_paused ? fake->pauses - 1
                                       : (unsigned)fake_number(argv, argc);
        fake->is_paused = fake->pauses > 0;
        if (fake->is_paused) {
            conn_resume_later(conn);
            return false;
        }
        fake_echo(out, argv, argc);
    } else if (slice_is_word(argv[0], "PARK") && !fake->rig->opens) {
        conn_park(conn, CONN_FOR_EVENT, 0);
        return false;
    } else if (slice_is_word(argv[0], "ROOM") && !fake->rig->opens) {
        conn_park(conn, CONN_FOR_ROOM, 0);
        return false;
    } else if (slice_is_word(argv[0], "HOLD")) {
        conn->hold_until = fake_number(argv, argc);
        fake_echo(out, argv, argc);
    } else if (slice_is_word(argv[0], "FILL")) {
        fake_fill(fake, out, fake_number(argv, argc));
    } else if (slice_is_word(argv[0], "BUSY")) {
        uint64_t until_ns = clock_mono_ns() + fake_number(argv, argc) * 1000;

        while (clock_mono_ns() < until_ns) {
        }
        fake_echo(out, argv, argc);
    } else if (slice_is_word(argv[0], "NOMEM")) {
        out->failed = true;
    } else if (slice_is_word(argv[0], "DIE")) {
        conn_close(conn);
    } else if (slice_is_word(argv[0], "LINGER")) {
        conn_close(conn);
        conn_resume_later(conn);
        return false;
    } else if (slice_is_word(argv[0], "KILL")) {
        pending_close(fake->rig->victim);
    } else {
        fake_echo(out, argv, argc);
        if (slice_is_word(argv[0], "BYE")) {
            conn_leave(conn);
        }
    }
    fake->executed++;
    return true;
}

static uint32_t
fake_execute(struct conn *conn, const struct batch *batch, uint32_t first)
{
    struct fake *fake = fake_of(conn);

    for (uint32_t i = first; i < batch->count; i++) {
        const struct batch_command *command = &batch->command[i];

        if (!fake_one(fake, &batch->argv[command->first], command->argc)) {
            return i;
        }
        if (conn->state != CONN_OPEN || fake->rig->one_by_one ||
            conn->loop->reply.len >= FAKE_REPLIES_MAX) {
            return i + 1;
        }
    }
    return batch->count;
}

static void
fake_protocol_error(struct conn *conn, const struct parse_error *error)
{
    struct buf *out = &conn->loop->reply;

    buf_printf(out, "-%s\r\n", err_name(error->err));
}

static void
fake_limits(struct conn *conn, struct parse_limits *ret_limits)
{
    (void)conn;
    *ret_limits = (struct parse_limits){ .args_max = 1000,
                                         .bulk_max = 4 << 20,
                                         .query_max = 8 << 20 };
}

static bool
fake_has_room(struct loop *loop)
{
    struct rig *rig = loop->owner;

    return rig->has_room;
}

static void
fake_turn_end(struct loop *loop)
{
    struct rig *rig = loop->owner;

    atomic_fetch_add(&rig->turn_ends, 1);
}

/* -GIVEN UP for each line that was held. */
static void
fake_give_up(struct conn *conn, struct slice held, struct buf *ret_replies)
{
    (void)conn;
    assert_true(held.len > 0 && held.data[held.len - 1] == '\n');
    for (size_t i = 0; i < held.len; i++) {
        if (held.data[i] == '\n') {
            buf_append(ret_replies, "-GIVEN UP\r\n", 11);
        }
    }
}

static const struct conn_handler fake_handler = {
    .accept = fake_accept,
    .execute = fake_execute,
    .protocol_error = fake_protocol_error,
    .limits = fake_limits,
    .closed = fake_closed,
    .has_room = fake_has_room,
    .turn_end = fake_turn_end,
    .give_up = fake_give_up,
};

/* ---- the rig ------------------------------------------------------------- */

struct rig *
rig_new(void)
{
    uint64_t used = mem_used();
    struct rig *rig = mem_zalloc(sizeof(*rig));

    (void)signal(SIGPIPE, SIG_IGN); /* as the server does */
    rig->used = used;
    for (size_t i = 0; i < RIG_GAUGES; i++) {
        rig->gauges[i] = metric_sum(rig_gauges[i]);
    }
    rig->limits.maxclients = 1000;
    rig->registry = registry_new();
    rig->released = rig->log_end = UINT64_MAX;
    rig->env = (struct loop_env){ .limits = &rig->limits,
                                  .handler = &fake_handler,
                                  .registry = rig->registry,
                                  .usage = &rig->usage,
                                  .released = &rig->released,
                                  .log_end = &rig->log_end,
                                  .gives_up = &rig->gives_up };
    loop_init(&rig->loop, 0, &rig->env, rig);
    return rig;
}

void
rig_free(struct rig *rig)
{
    uint64_t used = rig->used;
    int64_t gauges[RIG_GAUGES];

    memcpy(gauges, rig->gauges, sizeof(gauges));
    loop_stop(&rig->loop);
    loop_run(&rig->loop);
    assert_int_equal(0, rig->loop.open_conns);
    assert_int_equal(rig->accepted, rig->closed);
    assert_int_equal(0, rig->usage.total);
    assert_int_equal(0, rig->usage.condemned);
    loop_fini(&rig->loop);
    registry_free(rig->registry);
    mem_free(rig);
    for (size_t i = 0; i < RIG_GAUGES; i++) {
        assert_int_equal(gauges[i], metric_sum(rig_gauges[i]));
    }
    assert_int_equal(used, mem_used());
}

void
rig_turn(struct rig *rig)
{
    (void)uv_run(&rig->loop.uv, UV_RUN_NOWAIT);
}

void
rig_settle(struct rig *rig)
{
    for (int i = 0; i < 20; i++) {
        rig_turn(rig);
    }
}

/* ---- peers --------------------------------------------------------------- */

struct peer
peer_of(int fd)
{
    assert_int_equal(0, fcntl(fd, F_SETFL, O_NONBLOCK));
    return (struct peer){ .fd = fd };
}

struct peer
peer_new(struct rig *rig, bool small)
{
    int ends[2];

    assert_int_equal(0,
                     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    for (int i = 0; i < 2 && small; i++) {
        int bytes = SMALL_SOCKET;

        (void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    }
    assert_true(
        registry_reserve(rig->registry, PLACE_COMMON, rig->limits.maxclients));
    assert_int_equal(0, fcntl(ends[0], F_SETFL, O_NONBLOCK));
    serve_open(&rig->loop, ends[0], true);
    return peer_of(ends[1]);
}

void
peer_free(struct peer *peer)
{
    if (peer->fd >= 0) {
        (void)close(peer->fd);
    }
    buf_free(&peer->got);
    peer->fd = -1;
}

bool
peer_take(struct peer *peer)
{
    char piece[65536];
    ssize_t n = peer->ended ? 0 : recv(peer->fd, piece, sizeof(piece), 0);

    if (n > 0) {
        buf_append(&peer->got, piece, (size_t)n);
        return true;
    }
    if (n == 0 || errno != EAGAIN) {
        peer->ended = true;
    }
    return false;
}

bool
peer_has(struct peer *peer, size_t bytes)
{
    while (peer_take(peer)) {
    }
    return peer->got.len >= bytes;
}

bool
peer_is_cut(struct peer *peer)
{
    (void)peer_has(peer, 0);
    return peer->ended;
}

void
peer_send(struct rig *rig, struct peer *peer, struct slice bytes)
{
    uint64_t give_up = clock_mono_ns() + DEADLINE_MS * 1000000ULL;

    while (bytes.len > 0) {
        ssize_t n = send(peer->fd, bytes.data, bytes.len, MSG_NOSIGNAL);

        if (n < 0) {
            assert_int_equal(EAGAIN, errno);
            assert_true(clock_mono_ns() < give_up);
            rig_turn(rig);
            continue;
        }
        bytes.data += n;
        bytes.len -= (size_t)n;
    }
}

void
peer_send_text(struct rig *rig, struct peer *peer, const char *text)
{
    peer_send(rig, peer, slice_of(text));
}

void
peer_expect(struct rig *rig, struct peer *peer, const char *text)
{
    rig_until(rig, peer_has(peer, strlen(text)) || peer->ended);
    rig_settle(rig);
    (void)peer_has(peer, 0);
    if (!slice_equal(buf_slice(&peer->got), slice_of(text))) {
        fail_msg("got [%.*s] and not [%s]", (int)peer->got.len,
                 peer->got.len > 0 ? peer->got.data : "", text);
    }
    peer->got.len = 0;
}

void
write_command(struct buf *to, const char *text)
{
    size_t count = 0;

    for (const char *at = text; *at != '\0';) {
        at += strcspn(at, " ");
        at += *at == ' ';
        count++;
    }
    buf_printf(to, "*%zu\r\n", count);
    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        buf_printf(to, "$%zu\r\n%.*s\r\n", len, (int)len, text);
        text += len;
        text += *text == ' ';
    }
}
