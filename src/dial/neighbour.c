/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The neighbour answers in order, so a queue of the questions tells which
 * question each answer belongs to. There is at most one look under way. If a
 * look gets no answer for ANSWER_TIMEOUT_MS, the link ends.
 */
#include "dial/neighbour.h"

#include "base/clock.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/run_clock.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "keyspace/gate.h"
#include "net/link_dial.h"
#include "net/loop.h"
#include "proto/answers.h"
#include "proto/compose.h"

#include <stdio.h>

enum {
    QUEUE_MAX = 32, /* questions without an answer */
    REPLY_BYTES_MAX = 16 << 20,
    DIAL_TIMEOUT_MS = 2000,
    REDIAL_MS = 100,
    REDIAL_REFUSED_MS = 1000, /* after a refused login */
    ANSWER_TIMEOUT_MS = 5000,
    SETTINGS_EVERY_MS = 5000,
    MS = 1000000
};

enum question {
    ASK_LOGIN,
    ASK_TIMEOUT, /* the settings, in this order */
    ASK_COVERAGE,
    ASK_READS,
    ASK_DATABASES,
    ASK_ENDPOINT,
    ASK_SHARD,
    ASK_QUEUED, /* MULTI, and what it queues */
    ASK_EXEC
};

static const char settings_commands[] =
    "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$20\r\ncluster-node-timeout\r\n"
    "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$29\r\ncluster-require-full-coverage"
    "\r\n"
    "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$29\r\ncluster-allow-reads-when-down"
    "\r\n"
    "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$17\r\ncluster-databases\r\n"
    "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$31\r\n"
    "cluster-preferred-endpoint-type\r\n"
    "*2\r\n$7\r\nCLUSTER\r\n$9\r\nMYSHARDID\r\n";

static const char look_commands[] = "*1\r\n$5\r\nMULTI\r\n"
                                    "*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n"
                                    "*2\r\n$7\r\nCLUSTER\r\n$4\r\nINFO\r\n"
                                    "*2\r\n$7\r\nCLUSTER\r\n$4\r\nMYID\r\n"
                                    "*1\r\n$4\r\nEXEC\r\n";

struct neighbour {
    const struct loop0 *loop0;
    struct neighbour_address address;
    struct neighbour_hooks hooks;
    struct link *link;       /* NULL: none */
    struct answers *answers; /* of the link */
    uv_timer_t timer;        /* the next look, or the next dialling */
    bool open;               /* the link is open */
    bool stopped;
    bool up;       /* the last look was answered well */
    bool refused;  /* the link's login was refused */
    bool complete; /* the settings were read on this link */

    enum question queue[QUEUE_MAX]; /* a ring */
    size_t queue_at, queue_count;
    uint64_t sent_ns;  /* when the look under way was sent; 0: there is none */
    uint64_t asked_ms; /* the same by the run clock */
    uint64_t settings_ns;

    struct cluster_settings settings, asked; /* in force; being read */
    char error[TOPOLOGY_REASON_MAX]; /* the first of the look; "": none */
    struct buf seen, fresh; /* the last topology, and the new one, stripped */
};

static void dial_node(struct neighbour *neighbour);

static const struct cluster_settings defaults = {
    .node_timeout_ms = 15000,
    .full_coverage = true,
    .databases = 1,
};

/* ---- reports ------------------------------------------------------------- */

static void
report_poll(struct neighbour *neighbour, struct neighbour_poll *poll)
{
    poll->heard_ns = clock_boot_ns();
    if (poll->sent_ns == 0) {
        poll->sent_ns = poll->heard_ns;
    }
    neighbour->sent_ns = 0;
    if (neighbour->up && (poll->failed || poll->gone)) {
        neighbour->up = false;
    }
    neighbour->hooks.polled(neighbour->hooks.ctx, poll);
}

/* ---- sending ------------------------------------------------------------- */

static void
expect(struct neighbour *neighbour, enum question question)
{
    size_t at =
        (neighbour->queue_at + neighbour->queue_count) % (size_t)QUEUE_MAX;

    CHECK(neighbour->queue_count < QUEUE_MAX);
    neighbour->queue[at] = question;
    neighbour->queue_count++;
}

static void
drop_link(struct neighbour *neighbour)
{
    if (neighbour->link != NULL) {
        link_close(neighbour->link);
        neighbour->link = NULL;
    }
    answers_free(neighbour->answers);
    neighbour->answers = NULL;
    neighbour->open = false;
}

static void
on_timer(uv_timer_t *timer)
{
    struct neighbour *neighbour = timer->data;

    dial_node(neighbour);
}

/* Ends the link, reports that, and dials again later. */
static void
lose(struct neighbour *neighbour, const char *reason)
{
    struct neighbour_poll poll = { .sent_ns = neighbour->sent_ns,
                                   .failed = true,
                                   .gone = true };

    log_repeated(LOG_WARN, "server.neighbour", "lost the neighbour",
                 "host=%s port=%u reason=\"%s\"", neighbour->address.host,
                 neighbour->address.port, reason);
    drop_link(neighbour);
    report_poll(neighbour, &poll);
    CHECK(uv_timer_start(&neighbour->timer, on_timer,
                         neighbour->refused ? REDIAL_REFUSED_MS : REDIAL_MS,
                         0) == 0);
}

static bool
say_commands(struct neighbour *neighbour, struct slice commands)
{
    if (link_send(neighbour->link, commands)) {
        return true;
    }
    lose(neighbour, "no memory for commands");
    return false;
}

static bool
ask_settings(struct neighbour *neighbour)
{
    neighbour->settings_ns = clock_boot_ns();
    neighbour->asked = defaults;
    for (int question = ASK_TIMEOUT; question <= ASK_SHARD; question++) {
        expect(neighbour, (enum question)question);
    }
    return say_commands(neighbour, slice_lit(settings_commands));
}

static void
look_at_node(struct neighbour *neighbour)
{
    uint64_t now_ns = clock_boot_ns();

    if (neighbour->sent_ns != 0) {
        if (run_clock_ms() - neighbour->asked_ms > ANSWER_TIMEOUT_MS) {
            lose(neighbour, "it does not answer");
        }
        return;
    }
    if (now_ns - neighbour->settings_ns > (uint64_t)SETTINGS_EVERY_MS * MS &&
        !ask_settings(neighbour)) {
        return;
    }
    neighbour->error[0] = '\0';
    for (int i = 0; i < 4; i++) {
        expect(neighbour, ASK_QUEUED);
    }
    expect(neighbour, ASK_EXEC);
    neighbour->asked_ms = run_clock_ms();
    neighbour->sent_ns = clock_boot_ns();
    (void)say_commands(neighbour, slice_lit(look_commands));
}

static void
on_look(uv_timer_t *timer)
{
    look_at_node(timer->data);
}

/* Writes AUTH, if there is a password. Returns whether there is one. */
static bool
write_login(const struct neighbour *neighbour, struct buf *out)
{
    const struct conf *conf = neighbour->loop0->service->conf;
    struct gate *gate = keyspace_gate(neighbour->loop0->service->keyspace);
    bool has_password;

    gate_enter(gate, 0);
    has_password = compose_login(out, slice_of(conf->sidecar_user),
                                 slice_of(conf->sidecar_password));
    gate_leave(gate, 0);
    return has_password;
}

static void
on_opened(void *ctx, struct link *link)
{
    struct neighbour *neighbour = ctx;
    uint64_t poll_ms =
        (uint64_t)neighbour->loop0->service->conf->sidecar_poll_ms;
    struct buf login = { 0 };
    bool good = true;

    CHECK(link == neighbour->link);
    neighbour->open = true;
    if (write_login(neighbour, &login)) {
        expect(neighbour, ASK_LOGIN);
        good = say_commands(neighbour, buf_slice(&login));
    }
    buf_wipe(&login);
    if (good && ask_settings(neighbour)) {
        CHECK(uv_timer_start(&neighbour->timer, on_look, poll_ms, poll_ms) ==
              0);
        look_at_node(neighbour);
    }
}

/* ---- answers ------------------------------------------------------------- */

static void
note_error(struct neighbour *neighbour, const char *question, struct slice text)
{
    if (neighbour->error[0] == '\0') {
        (void)snprintf(neighbour->error, sizeof(neighbour->error), "%s: %.*s",
                       question, slice_shown(text), text.data);
    }
}

/* Reads the value of CONFIG GET: a name and a value. False: there is none. */
static bool
config_value(const struct answer *answer, struct slice *ret_value)
{
    if (answer->count != 3 || answer->values[0].type != ANSWER_LIST ||
        answer->values[2].type != ANSWER_TEXT) {
        return false;
    }
    *ret_value = answer->values[2].text;
    return true;
}

static void
take_setting(struct cluster_settings *settings, enum question question,
             struct slice value)
{
    uint64_t number;

    switch (question) {
    case ASK_TIMEOUT:
        if (slice_to_u64(value, &number) && number > 0) {
            settings->node_timeout_ms = number;
        }
        break;
    case ASK_COVERAGE:
        settings->full_coverage = !slice_is_word(value, "no");
        break;
    case ASK_READS:
        settings->reads_when_down = slice_is_word(value, "yes");
        break;
    case ASK_DATABASES:
        if (slice_to_u64(value, &number) && number > 0 && number <= INT32_MAX) {
            settings->databases = (unsigned)number;
        }
        break;
    case ASK_ENDPOINT:
        settings->endpoint =
            slice_is_word(value, "hostname")           ? VIEW_ENDPOINT_HOSTNAME
            : slice_is_word(value, "unknown-endpoint") ? VIEW_ENDPOINT_UNKNOWN
                                                       : VIEW_ENDPOINT_IP;
        break;
    default:
        break;
    }
}

static bool
settings_equal(const struct cluster_settings *a,
               const struct cluster_settings *b)
{
    return a->node_timeout_ms == b->node_timeout_ms &&
           a->full_coverage == b->full_coverage &&
           a->reads_when_down == b->reads_when_down &&
           a->databases == b->databases && a->endpoint == b->endpoint &&
           strcmp(a->shard_id, b->shard_id) == 0;
}

/* Reads the last one of the settings, and takes them over. */
static void
take_shard(struct neighbour *neighbour, const struct answer *answer)
{
    const struct answer_value *value = &answer->values[0];

    if (value->type == ANSWER_TEXT && value->text.len == TOPOLOGY_ID_LEN) {
        (void)snprintf(neighbour->asked.shard_id,
                       sizeof(neighbour->asked.shard_id), "%.*s",
                       TOPOLOGY_ID_LEN, value->text.data);
    }
    if (!neighbour->complete ||
        !settings_equal(&neighbour->asked, &neighbour->settings)) {
        neighbour->settings = neighbour->asked;
        neighbour->complete = true;
        neighbour->seen.len = 0;
        neighbour->hooks.settled(neighbour->hooks.ctx, &neighbour->settings);
    }
}

/* Parses the topology, unless it is the one before. False: it is malformed. */
static bool
read_topology(struct neighbour *neighbour, const struct answer_value *values,
              struct topology **ret_topology)
{
    struct buf *fresh = &neighbour->fresh;

    fresh->len = 0;
    topology_strip(values[1].text, values[2].text, values[3].text, fresh);
    if (fresh->failed) {
        fresh->failed = false;
        note_error(neighbour, "CLUSTER NODES",
                   slice_lit("no memory for the reply"));
        return false;
    }
    if (slice_equal(buf_slice(fresh), buf_slice(&neighbour->seen))) {
        return true;
    }
    if (!topology_parse(values[1].text, values[2].text, values[3].text,
                        ret_topology, neighbour->error)) {
        return false;
    }
    buf_exchange(fresh, &neighbour->seen);
    return true;
}

static void
take_look(struct neighbour *neighbour, const struct answer *answer)
{
    const struct answer_value *values = answer->values;
    struct neighbour_poll poll = { .sent_ns = neighbour->sent_ns };
    bool good = neighbour->error[0] == '\0' && answer->count == 4 &&
                values[0].type == ANSWER_LIST;

    for (size_t i = 1; good && i < answer->count; i++) {
        if (values[i].type != ANSWER_TEXT) {
            note_error(neighbour, "CLUSTER NODES", values[i].text);
            good = false;
        }
    }
    if (!good) {
        note_error(neighbour, "EXEC", values[0].text);
    } else {
        good = read_topology(neighbour, values, &poll.topology);
    }
    poll.failed = !good;
    if (!good) {
        log_repeated(LOG_WARN, "server.neighbour",
                     "the neighbour's answer is of no use",
                     "host=%s port=%u reason=\"%s\"", neighbour->address.host,
                     neighbour->address.port, neighbour->error);
    } else if (!neighbour->up) {
        log_notice("server.neighbour", "looks at the neighbour",
                   "host=%s port=%u", neighbour->address.host,
                   neighbour->address.port);
        neighbour->up = true;
    }
    report_poll(neighbour, &poll);
}

/* Takes one answer. The link may be gone when it returns. */
static void
take_answer(struct neighbour *neighbour, const struct answer *answer)
{
    const struct answer_value *value = &answer->values[0];
    enum question question;
    struct slice text;

    if (neighbour->queue_count == 0) {
        lose(neighbour, "it answers what nobody asked");
        return;
    }
    question = neighbour->queue[neighbour->queue_at];
    neighbour->queue_at = (neighbour->queue_at + 1) % QUEUE_MAX;
    neighbour->queue_count--;
    if (question == ASK_LOGIN) {
        if (value->type == ANSWER_ERROR) {
            note_error(neighbour, "AUTH (sidecar-user, sidecar-password)",
                       value->text);
            neighbour->refused = true;
            lose(neighbour, neighbour->error);
        }
    } else if (question < ASK_SHARD) {
        if (config_value(answer, &text)) {
            take_setting(&neighbour->asked, question, text);
        }
    } else if (question == ASK_SHARD) {
        take_shard(neighbour, answer);
    } else if (question == ASK_EXEC) {
        take_look(neighbour, answer);
    } else if (value->type == ANSWER_ERROR) {
        note_error(neighbour, "CLUSTER NODES", value->text);
    }
}

static void
on_bytes(void *ctx, struct link *link, struct slice bytes, size_t *ret_used)
{
    struct neighbour *neighbour = ctx;
    enum answers_result result = ANSWERS_ONE;
    struct answer answer;

    *ret_used = bytes.len;
    answers_feed(neighbour->answers, bytes);
    while (neighbour->link == link && result == ANSWERS_ONE) {
        result = answers_next(neighbour->answers, &answer);
        if (result == ANSWERS_ONE) {
            take_answer(neighbour, &answer);
        } else if (result == ANSWERS_BAD) {
            char reason[TOPOLOGY_REASON_MAX];

            (void)snprintf(reason, sizeof(reason), "%s",
                           answers_reason(neighbour->answers));
            lose(neighbour, reason);
        }
    }
}

static void
on_node_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct neighbour *neighbour = ctx;

    (void)error;
    CHECK(link == neighbour->link);
    neighbour->link = NULL; /* net frees it */
    lose(neighbour, reason);
}

static const struct link_hooks link_hooks = { .opened = on_opened,
                                              .bytes = on_bytes,
                                              .closed = on_node_closed };

static void
dial_node(struct neighbour *neighbour)
{
    struct loop *loop = neighbour->loop0->loop;
    const struct neighbour_address *address = &neighbour->address;

    neighbour->queue_count = 0;
    neighbour->refused = false;
    neighbour->complete = false;
    neighbour->error[0] = '\0';
    neighbour->answers = answers_new(REPLY_BYTES_MAX);
    if (neighbour->answers == NULL) {
        lose(neighbour, "no memory for its answers");
        return;
    }
    if (address->port == 0) {
        neighbour->link = link_dial_unix(loop, address->host, DIAL_TIMEOUT_MS,
                                         &link_hooks, neighbour);
        return;
    }
    neighbour->link = link_dial(loop, address->host, address->port,
                                DIAL_TIMEOUT_MS, &link_hooks, neighbour);
    if (neighbour->loop0->service->conf->sidecar_tls) {
        link_secure(
            neighbour->link,
            tls_new_dial(neighbour->loop0->service->tls, address->host));
    }
}

/* ---- life ---------------------------------------------------------------- */

bool
neighbour_parse(const char *text, struct neighbour_address *ret_address)
{
    struct neighbour_address address = { .port = 0 };
    struct host_port parts = { .host = slice_of(text) };

    if (strchr(text, '/') == NULL &&
        (!host_port_split(slice_of(text), &parts) ||
         !host_port_number(&parts, &address.port) ||
         (!parts.bracketed &&
          memchr(parts.host.data, ':', parts.host.len) != NULL))) {
        return false; /* malformed, or an IPv6 address without brackets */
    }
    if (parts.host.len >= sizeof(address.host)) {
        return false;
    }
    memcpy(address.host, parts.host.data, parts.host.len);
    *ret_address = address;
    return true;
}

struct neighbour *
neighbour_new(const struct loop0 *loop0,
              const struct neighbour_address *address,
              const struct neighbour_hooks *hooks)
{
    struct neighbour *neighbour = mem_zalloc(sizeof(*neighbour));

    neighbour->loop0 = loop0;
    neighbour->address = *address;
    neighbour->hooks = *hooks;
    return neighbour;
}

void
neighbour_free(struct neighbour *neighbour)
{
    if (neighbour != NULL) {
        answers_free(neighbour->answers);
        buf_free(&neighbour->seen);
        buf_free(&neighbour->fresh);
        mem_free(neighbour);
    }
}

void
neighbour_start(struct neighbour *neighbour)
{
    CHECK(uv_timer_init(&neighbour->loop0->loop->uv, &neighbour->timer) == 0);
    neighbour->timer.data = neighbour;
    dial_node(neighbour);
}

void
neighbour_stop(struct neighbour *neighbour)
{
    if (!neighbour->stopped) {
        neighbour->stopped = true;
        drop_link(neighbour);
        uv_close((uv_handle_t *)&neighbour->timer, NULL);
    }
}

void
neighbour_forget(struct neighbour *neighbour)
{
    neighbour->seen.len = 0;
}

void
neighbour_hurry(struct neighbour *neighbour)
{
    if (neighbour->open && neighbour->complete && neighbour->sent_ns == 0) {
        look_at_node(neighbour);
    }
}

bool
neighbour_is_up(const struct neighbour *neighbour)
{
    return neighbour->up;
}
