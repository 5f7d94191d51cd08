/* SPDX-License-Identifier: BSD-3-Clause */
#include "primary_rig.h"

static bool
rig_on_send(void *ctx, uint64_t id, struct slice bytes)
{
    struct rig_link *link = &((struct rig *)ctx)->links[id];

    if (link->fails) {
        return false;
    }
    buf_append_slice(&link->sent, bytes);
    link->unsent += link->stuck ? bytes.len : 0;
    return true;
}

static size_t
rig_on_unsent(void *ctx, uint64_t id)
{
    return ((struct rig *)ctx)->links[id].unsent;
}

static void
rig_on_drop(void *ctx, uint64_t id, const char *reason)
{
    struct rig_link *link = &((struct rig *)ctx)->links[id];

    link->drops++;
    (void)snprintf(link->reason, sizeof(link->reason), "%s", reason);
}

static void
rig_on_ask(void *ctx, const struct slot_set *slots)
{
    struct rig *rig = ctx;

    rig->asked++;
    rig->asked_slots = slots != NULL ? *slots : (struct slot_set){ { 0 } };
}

static void
rig_on_cancel(void *ctx)
{
    ((struct rig *)ctx)->cancelled++;
}

static void
rig_on_pause(void *ctx, bool paused)
{
    struct rig *rig = ctx;

    CHECK(rig->paused != paused);
    rig->paused = paused;
}

static void
rig_on_acked(void *ctx)
{
    ((struct rig *)ctx)->acked++;
}

void
rig_begin(struct rig *rig)
{
    struct primary_hooks hooks = {
        .send = rig_on_send,
        .unsent = rig_on_unsent,
        .drop = rig_on_drop,
        .ask_sync = rig_on_ask,
        .cancel_sync = rig_on_cancel,
        .pause_sync = rig_on_pause,
        .acked = rig_on_acked,
        .ctx = rig,
    };

    *rig = (struct rig){ .now = 1000000,
                         .position = RIG_START,
                         .released = UINT64_MAX,
                         .limits = { .timeout_ms = 60000,
                                     .ping_ms = 10000,
                                     .sync_delay_ms = 1000,
                                     .backlog_bytes = 16 << 10,
                                     .replicas_max = 4,
                                     .hard_bytes = 8 << 20,
                                     .soft_bytes = 6 << 20,
                                     .soft_ms = 5000 } };
    log_set_level(LOG_ERROR);
    for (int i = 0; i < RIG_LINKS; i++) {
        rig->links[i].reader =
            (struct wire_reader){ .key = LOG_KEY, .group_max = 64 << 20 };
    }
    rig->backlog = backlog_new();
    backlog_begin(rig->backlog, RIG_START);
    rig->primary = primary_new(rig->backlog, &hooks);
    primary_set_limits(rig->primary, &rig->limits);
    history_begin(&rig->history, RIG_HISTORY);
    primary_set_history(rig->primary, &rig->history, LOG_KEY);
    primary_tick(rig->primary, rig->now);
}

void
rig_end(struct rig *rig)
{
    primary_free(rig->primary);
    backlog_free(rig->backlog);
    for (int i = 0; i < RIG_LINKS; i++) {
        buf_free(&rig->links[i].sent);
    }
}

void
rig_write(struct rig *rig, size_t bytes)
{
    struct journal_tap tap = backlog_tap(rig->backlog);
    struct buf text = { 0 };
    char *item = mem_zalloc(bytes + 1);

    log_select(&text);
    log_add(&text, (struct slice){ item, bytes });
    tap.text(tap.ctx, buf_slice(&text));
    tap.close(tap.ctx, ++rig->sequence, NULL);
    rig->position += text.len + GROUP_SEAL_BYTES;
    (void)backlog_seal(rig->backlog, LOG_KEY, LOG_MS);
    buf_free(&text);
    mem_free(item);
}

bool
rig_stream(struct rig *rig)
{
    return primary_stream(rig->primary, rig->released, rig->now);
}

void
rig_publish(struct rig *rig, size_t bytes)
{
    rig_write(rig, bytes);
    (void)rig_stream(rig);
}

void
rig_unstick(struct rig *rig, uint64_t id)
{
    rig->links[id].stuck = false;
    rig->links[id].unsent = 0;
}

void
rig_ask(struct rig *rig, uint64_t position)
{
    primary_ask_acks(rig->primary, (struct primary_ask){ position, position });
}

void
rig_pass(struct rig *rig, uint64_t ms, unsigned ackers)
{
    for (uint64_t end = rig->now + ms; rig->now < end;) {
        rig->now += 100;
        for (uint64_t id = 1; id < RIG_LINKS && rig->now % 1000 == 0; id++) {
            if (ackers >> id & 1) {
                primary_acked(rig->primary, id, rig->position, 0, rig->now);
            }
        }
        primary_tick(rig->primary, rig->now);
    }
}

static bool
attach(struct rig *rig, struct primary_hello hello, unsigned server,
       const char *history)
{
    hello.port = 7000 + server;
    (void)snprintf(hello.run_id, sizeof(hello.run_id), "%040u", server);
    (void)snprintf(hello.address, sizeof(hello.address), "10.0.0.%u:1", server);
    (void)snprintf(hello.history, sizeof(hello.history), "%s",
                   history != NULL ? history : "");
    return primary_attach(rig->primary, &hello, rig->now);
}

bool
rig_attach(struct rig *rig, uint64_t id, unsigned server, const char *history,
           uint64_t position)
{
    return attach(rig, (struct primary_hello){ .id = id, .position = position },
                  server, history);
}

bool
rig_pull(struct rig *rig, uint64_t id, unsigned server, const char *slots)
{
    struct primary_hello hello = { .id = id, .pulls = true };

    CHECK(slot_set_parse(slice_of(slots), &hello.slots));
    return attach(rig, hello, server, NULL);
}

void
rig_sync_begins(struct rig *rig)
{
    struct primary_sync sync = { .position = rig->position,
                                 .sequence = rig->sequence,
                                 .bytes = 1000 };

    primary_sync_began(rig->primary, &sync, rig->now);
    primary_sync_reached(rig->primary, rig->position);
}

void
rig_follow(struct rig *rig, uint64_t id)
{
    CHECK(rig_attach(rig, id, (unsigned)id, RIG_HISTORY, rig->position));
    CHECK(rig->links[id].drops == 0);
}

const char *
rig_received(struct rig *rig, uint64_t id)
{
    struct rig_link *link = &rig->links[id];
    size_t len = 0;

    rig->words[0] = '\0';
    for (;;) {
        struct slice rest = { link->sent.data + link->described,
                              link->sent.len - link->described };
        struct wire_piece piece;
        char *to = rig->words + len;
        size_t room = sizeof(rig->words) - len;
        const char *blank = len > 0 ? " " : "";

        wire_read(&link->reader, rest, &piece);
        if (piece.kind == WIRE_MORE) {
            (void)snprintf(to, room, "%s", rest.len > 0 ? "..." : "");
            return rig->words;
        }
        if (piece.kind == WIRE_LINE) {
            if (slice_is_word((struct slice){ piece.value.data, 6 },
                              "+FULLR")) {
                link->reader.phase = WIRE_SNAPSHOT;
            } else if (piece.value.data[1] == 'C') {
                link->reader.phase = WIRE_GROUPS;
            }
            len += (size_t)snprintf(to, room, "%s%.*s", blank,
                                    (int)strcspn(piece.value.data, " \r"),
                                    piece.value.data);
        } else if (piece.kind == WIRE_GROUP) {
            len +=
                (size_t)snprintf(to, room, "%s%" PRIu64, blank, piece.sequence);
        } else if (piece.kind == WIRE_CHUNK) {
            len +=
                (size_t)snprintf(to, room, "%s(%zu)", blank, piece.value.len);
        } else if (piece.kind == WIRE_HOLDINGS) {
            len += (size_t)snprintf(to, room, "%s{%.*s}", blank,
                                    (int)piece.value.len, piece.value.data);
        } else if (piece.kind == WIRE_CHUNKS_END) {
            len += (size_t)snprintf(to, room, "%send", blank);
        } else {
            (void)snprintf(to, room, "%sBAD %s", blank, piece.reason);
            return rig->words;
        }
        CHECK(len < sizeof(rig->words) / 2);
        link->described += piece.used;
    }
}

struct status_replica
rig_shown(const struct rig *rig, uint64_t id)
{
    struct status_figures figures = { .epoch = 0 };
    struct status_replica replicas[RIG_LINKS];
    size_t count =
        primary_describe(rig->primary, &figures, replicas, RIG_LINKS);

    for (size_t i = 0; i < count; i++) {
        if (replicas[i].id == id) {
            return replicas[i];
        }
    }
    return (struct status_replica){ .id = 0 };
}

void
rig_send_snapshot(struct rig *rig, size_t bytes)
{
    char *text = mem_zalloc(bytes + 1);

    primary_sync_bytes(rig->primary, (struct slice){ text, bytes }, rig->now);
    mem_free(text);
}

void
rig_begin_snapshot(struct rig *rig, uint64_t last)
{
    for (uint64_t id = 1; id <= last; id++) {
        assert_true(rig_attach(rig, id, (unsigned)id, NULL, 0));
    }
    rig_pass(rig, 1000, 0);
    assert_int_equal(rig->asked, 1);
    rig_sync_begins(rig);
    for (uint64_t id = 1; id <= last; id++) {
        assert_string_equal(rig_received(rig, id), "+PING +FULLRESYNC");
        assert_int_equal(rig_shown(rig, id).state, STATUS_SYNCS);
    }
}
