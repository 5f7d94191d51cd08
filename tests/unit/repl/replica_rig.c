/* SPDX-License-Identifier: BSD-3-Clause */
#include "replica_rig.h"

static void
rig_dial(void *ctx, uint64_t number, const char *host, unsigned port,
         uint64_t timeout_ms)
{
    struct rig *rig = ctx;

    assert_false(rig->linked);
    assert_int_equal(TIMEOUT_MS, timeout_ms);
    assert_true(number > rig->number);
    rig->number = number;
    rig->linked = true;
    rig->paused = false;
    rig->dials++;
    rig->port = port;
    (void)snprintf(rig->host, sizeof(rig->host), "%s", host);
}

static bool
rig_send(void *ctx, uint64_t number, struct slice bytes)
{
    struct rig *rig = ctx;

    assert_true(rig->linked);
    assert_int_equal(rig->number, number);
    if (rig->no_memory) {
        return false;
    }
    buf_append_slice(&rig->sent, bytes);
    return true;
}

static void
rig_close(void *ctx, uint64_t number)
{
    struct rig *rig = ctx;

    assert_true(rig->linked);
    assert_int_equal(rig->number, number);
    rig->linked = false;
    rig->closes++;
}

static void
rig_pause(void *ctx, uint64_t number, bool paused)
{
    struct rig *rig = ctx;

    assert_true(rig->linked);
    assert_int_equal(rig->number, number);
    rig->paused = paused;
}

static void
rig_where(void *ctx, struct replica_place *ret_place)
{
    *ret_place = ((struct rig *)ctx)->place;
}

static enum replica_applied
rig_apply(void *ctx, const struct wire_piece *group, char *ret_reason,
          size_t reason_size)
{
    struct rig *rig = ctx;

    if (rig->next == REPLICA_APPLIED) {
        assert_int_equal(rig->place.sequence + 1, group->sequence);
        rig->place.position += group->value.len + GROUP_SEAL_BYTES;
        rig->place.sequence = group->sequence;
        rig->applied++;
    } else if (rig->next == REPLICA_REFUSED) {
        (void)snprintf(ret_reason, reason_size, "no such key");
    }
    return rig->next;
}

static bool
rig_holdings(void *ctx, struct slice text)
{
    struct rig *rig = ctx;

    buf_reset(&rig->held, 0);
    buf_append_slice(&rig->held, text);
    return !rig->refuses_holdings;
}

static bool
rig_load_begin(void *ctx, const struct wire_answer *answer, char *ret_reason,
               size_t reason_size)
{
    struct rig *rig = ctx;

    rig->answer = *answer;
    if (!rig->takes_load) {
        (void)snprintf(ret_reason, reason_size, "no room");
    }
    buf_reset(&rig->loaded, 0);
    return rig->takes_load;
}

static bool
rig_load_bytes(void *ctx, struct slice bytes)
{
    struct rig *rig = ctx;

    buf_append_slice(&rig->loaded, bytes);
    return rig->load_has_room;
}

static void
rig_load_end(void *ctx)
{
    ((struct rig *)ctx)->ends++;
}

static void
rig_load_cancel(void *ctx)
{
    ((struct rig *)ctx)->cancels++;
}

static void
rig_key(void *ctx, uint64_t key)
{
    ((struct rig *)ctx)->key = key;
}

static void
rig_chained(void *ctx)
{
    ((struct rig *)ctx)->chained++;
}

static bool
rig_wants(void *ctx, uint64_t fingerprint)
{
    const struct rig *rig = ctx;

    return fingerprint != rig->known;
}

static enum replica_learned
rig_learn(void *ctx, uint64_t fingerprint, const char *digits)
{
    struct rig *rig = ctx;

    buf_printf(&rig->learnt, "%llx=%s;", (unsigned long long)fingerprint,
               digits);
    return rig->learns;
}

struct rig *
rig_new(void)
{
    return rig_new_asking(false);
}

struct rig *
rig_new_asking(bool asks)
{
    struct rig *rig = mem_zalloc(sizeof(*rig));
    const struct replica_hooks hooks = {
        .wants = asks ? rig_wants : NULL,
        .learn = asks ? rig_learn : NULL,
        .dial = rig_dial,
        .send = rig_send,
        .close = rig_close,
        .pause = rig_pause,
        .where = rig_where,
        .apply = rig_apply,
        .holdings = rig_holdings,
        .load_begin = rig_load_begin,
        .load_bytes = rig_load_bytes,
        .load_end = rig_load_end,
        .load_cancel = rig_load_cancel,
        .key = rig_key,
        .chained = rig_chained,
        .ctx = rig,
    };

    log_set_level(LOG_ERROR);
    rig->now_ms = START_MS;
    rig->takes_load = rig->load_has_room = true;
    rig->place = (struct replica_place){ HISTORY, 5000, 41, 0 };
    rig->options = (struct replica_options){ .timeout_ms = TIMEOUT_MS,
                                             .group_max = 1000,
                                             .user = "",
                                             .password = "",
                                             .announce_ip = "",
                                             .port = 7379 };
    rig->replica = replica_new(RUN_ID, &hooks);
    replica_set_options(rig->replica, &rig->options);
    return rig;
}

void
rig_free(struct rig *rig)
{
    buf_free(&rig->learnt);
    buf_free(&rig->held);
    replica_free(rig->replica);
    assert_false(rig->linked);
    buf_free(&rig->sent);
    buf_free(&rig->loaded);
    mem_free(rig);
}

void
follow(struct rig *rig)
{
    struct replica_target target = { .host = "h", .port = 7000 };

    replica_follow(rig->replica, &target, rig->now_ms);
}

const char *
said(struct rig *rig)
{
    static char text[4096];
    size_t len = 0;
    struct slice bytes = buf_slice(&rig->sent);

    text[0] = '\0';
    for (size_t i = 0; i < bytes.len;) {
        const char *end = memchr(bytes.data + i, '\n', bytes.len - i);
        size_t line = (size_t)(end - bytes.data) - i - 1;

        if (bytes.data[i] == '*') {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s",
                                    len > 0 ? ";" : "");
        } else if (bytes.data[i] != '$') {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s",
                                    len > 0 && text[len - 1] != ';' ? " " : "",
                                    (int)line, bytes.data + i);
        }
        i += line + 2;
    }
    buf_reset(&rig->sent, 0);
    return text;
}

void
hear_bytes(struct rig *rig, struct slice bytes)
{
    size_t used = SIZE_MAX;
    char *copy =
        mem_alloc(bytes.len); /* exact size: ASan finds reads beyond it */

    memcpy(copy, bytes.data, bytes.len);
    replica_bytes(rig->replica, rig->number, (struct slice){ copy, bytes.len },
                  &used, rig->now_ms);
    mem_free(copy);
    assert_int_equal(bytes.len, used);
}

void
hear(struct rig *rig, const char *text)
{
    hear_bytes(rig, slice_of(text));
}

void
tick(struct rig *rig, uint64_t ms)
{
    rig->now_ms += ms;
    replica_tick(rig->replica, rig->now_ms);
}

const char *
reason_of(const struct rig *rig)
{
    static struct status_figures figures;

    replica_describe(rig->replica, &figures);
    return figures.reason;
}

enum status_link
state_of(const struct rig *rig)
{
    struct status_figures figures = { 0 };

    replica_describe(rig->replica, &figures);
    return figures.link;
}

void
shake_hands(struct rig *rig)
{
    if (!rig->linked) {
        follow(rig);
    }
    replica_opened(rig->replica, rig->number, rig->now_ms);
    assert_string_equal("REPLCONF bloomery 1 run " RUN_ID, said(rig));
    hear(rig, "+BLOOMERY 1 " PRIMARY_ID " -\r\n");
    assert_int_equal(0, strncmp("REPLCONF listening-port 7379", said(rig), 28));
    hear(rig, "+OK\r\n");
}

void
expect_psync(struct rig *rig)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "PSYNC " HISTORY " %" PRIu64,
                   rig->place.position);
    assert_string_equal(text, said(rig));
}

void
expect_ack(struct rig *rig, uint64_t position)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "REPLCONF ACK %" PRIu64, position);
    assert_string_equal(text, said(rig));
}

void
end_link(struct rig *rig)
{
    rig->linked = false;
    replica_closed(rig->replica, rig->number, "gone", rig->now_ms);
}

void
expect_redial(struct rig *rig)
{
    assert_int_equal(0, rig->cancels);
    tick(rig, 10000);
    assert_true(rig->linked);
}

void
expect_full_psync(struct rig *rig)
{
    tick(rig, 10000);
    shake_hands(rig);
    assert_string_equal("PSYNC ? -1", said(rig));
}

void
expect_partial_psync(struct rig *rig)
{
    tick(rig, 10000);
    shake_hands(rig);
    expect_psync(rig);
}

void
connect_partial(struct rig *rig)
{
    shake_hands(rig);
    expect_psync(rig);
    hear(rig, "+CONTINUE " HISTORY " " KEY_TEXT "\r\n");
    assert_true(replica_is_connected(rig->replica));
    expect_ack(rig, rig->place.position);
}

void
make_group(struct buf *out, uint64_t sequence, size_t item_bytes)
{
    static const char head[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n";
    struct group_hash *hash = group_hash_new();
    struct buf text = { 0 };
    struct group_seal seal = { .sequence = sequence, .unix_ms = 1 };

    buf_append(&text, head, sizeof(head) - 1);
    buf_printf(&text, "$%zu\r\n", item_bytes);
    for (size_t i = 0; i < item_bytes; i++) {
        buf_append(&text, "x", 1);
    }
    buf_append(&text, "\r\n", 2);
    group_hash_begin(hash, KEY);
    group_hash_add(hash, text.data, text.len);
    seal.bytes = text.len;
    buf_append_slice(out, buf_slice(&text));
    group_write_seal(hash, KEY, &seal, buf_reserve(out, GROUP_SEAL_BYTES));
    out->len += GROUP_SEAL_BYTES;
    group_hash_free(hash);
    buf_free(&text);
}

void
hear_group(struct rig *rig, uint64_t sequence, size_t item_bytes)
{
    struct buf group = { 0 };

    make_group(&group, sequence, item_bytes);
    hear_bytes(rig, buf_slice(&group));
    buf_free(&group);
}

void
connect_full(struct rig *rig)
{
    shake_hands(rig);
    (void)said(rig);
    hear(rig, "+PING\r\n+FULLRESYNC " HISTORY " 9000 77 " KEY_TEXT
              " 5000\r\n$3\r\nabc$2\r\nde");
    assert_int_equal(STATUS_SYNC, state_of(rig));
}

void
load(struct rig *rig)
{
    rig->place = (struct replica_place){ HISTORY, 9000, 77, 0 };
    replica_loaded(rig->replica, true, NULL, rig->now_ms);
}
