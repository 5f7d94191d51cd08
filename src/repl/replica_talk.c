/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire.h describes the conversation.
 */
#include "repl/replica_talk.h"

#include "base/log.h"
#include "proto/compose.h"
#include "repl/replica_link.h"
#include "repl/replica_secrets.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- commands to the primary --------------------------------------------- */

static void
greet(struct replica *replica, uint64_t now_ms)
{
    char version[16];
    struct slice argv[] = { slice_lit("REPLCONF"),
                            slice_lit("bloomery"),
                            { version, 0 },
                            slice_lit("run"),
                            slice_of(replica->run_id) };

    (void)snprintf(version, sizeof(version), "%d", WIRE_VERSION);
    argv[2] = slice_of(version);
    replica_link_say(replica, STAGE_GREETS, argv, 5, now_ms);
}

static void
authenticate(struct replica *replica, uint64_t now_ms)
{
    struct slice argv[LOGIN_WORDS_MAX];
    size_t argc =
        login_words(LOGIN_ANY_PROTOCOL, slice_of(replica->options.user),
                    slice_of(replica->options.password), argv);

    replica_link_say(replica, STAGE_AUTHENTICATES, argv, argc, now_ms);
}

void
replica_talk_begin(struct replica *replica, uint64_t now_ms)
{
    if (replica->options.password[0] != '\0') {
        authenticate(replica, now_ms);
    } else {
        greet(replica, now_ms);
    }
}

static void
announce(struct replica *replica, uint64_t now_ms)
{
    char port[16];
    char told[STATUS_TEXT_MAX + 16];
    struct slice argv[11] = { slice_lit("REPLCONF"),
                              slice_lit("listening-port") };
    size_t argc = 3;

    (void)snprintf(port, sizeof(port), "%u", replica->options.port);
    argv[2] = slice_of(port);
    if (replica->options.announce_ip[0] != '\0') {
        argv[argc++] = slice_lit("ip-address");
        argv[argc++] = slice_of(replica->options.announce_ip);
    }
    /* An older primary ignores each capa that it does not know. */
    if (replica->refused[0] != '\0') {
        (void)snprintf(told, sizeof(told), "refused:%s", replica->refused);
        argv[argc++] = slice_lit("capa");
        argv[argc++] = slice_of(told);
    }
    if (replica->slots[0] != '\0') {
        argv[argc++] = slice_lit("slots");
        argv[argc++] = slice_of(replica->slots);
    } else if (replica->options.wants_holdings) {
        argv[argc++] = slice_lit("capa");
        argv[argc++] = slice_lit("holdings");
    }
    replica_link_say(replica, STAGE_ANNOUNCES, argv, argc, now_ms);
}

static void
ask_log(struct replica *replica, uint64_t now_ms)
{
    char position[24];
    struct slice argv[4] = { slice_lit("PSYNC"), slice_lit("?"),
                             slice_lit("-1"), slice_lit("FAILOVER") };

    replica->link.asked = (struct replica_place){ 0 };
    replica->hooks.where(replica->hooks.ctx, &replica->link.asked);
    if (replica->retry.distrusted ||
        (replica->slots[0] != '\0' && !replica->retry.renews)) {
        replica->link.asked = (struct replica_place){ 0 };
    }
    replica->retry.renews = false;
    if (replica->link.asked.history[0] != '\0') {
        (void)snprintf(position, sizeof(position), "%" PRIu64,
                       replica->link.asked.position);
        argv[1] = slice_of(replica->link.asked.history);
        argv[2] = slice_of(position);
    }
    replica->link.heard_answer = false;
    replica_link_say(replica, STAGE_ASKS, argv,
                     replica_asks_failover(replica) ? 4 : 3, now_ms);
}

void
replica_talk_acknowledge(struct replica *replica, uint64_t now_ms)
{
    struct replica_place place = { 0 };

    if (replica->stage == STAGE_FOLLOWS) {
        replica->hooks.where(replica->hooks.ctx, &place);
    }
    if (replica->link.ack_due && place.synced < place.position) {
        replica->link.disk_due = place.position;
    } else if (place.synced >= replica->link.disk_due) {
        replica->link.disk_due = 0;
    }
    replica->link.ack_due = false;
    replica->acked_ms = now_ms;
    replica->link.synced_acked = place.synced;
    wire_ack(&replica->out, place.position, place.synced);
    (void)replica_link_flush(replica, now_ms);
}

/* ---- answers of the primary ---------------------------------------------- */

const char *
replica_talk_step(const struct replica *replica)
{
    switch (replica->stage) {
    case STAGE_DIALS:
        return "a connection";
    case STAGE_AUTHENTICATES:
        return "AUTH";
    case STAGE_GREETS:
    case STAGE_SECRETS:
    case STAGE_ANNOUNCES:
        return "REPLCONF";
    default:
        return "PSYNC";
    }
}

static bool
begins(struct slice line, const char *with)
{
    size_t len = strlen(with);

    return line.len >= len && memcmp(line.data, with, len) == 0;
}

/* Loses the link for the error reply in `line`, which begins with '-'. */
static void
refused(struct replica *replica, struct slice line, uint64_t now_ms)
{
    int shown = wire_shown(line) - 1;
    const char *words = line.data + 1;

    if (begins(line, "-WRONGPASS") ||
        (replica->stage == STAGE_AUTHENTICATES && !begins(line, "-LOADING"))) {
        replica_link_explain(replica,
                             "the primary does not take our password "
                             "(masteruser, masterauth): %.*s",
                             shown, words);
    } else if (begins(line, "-NOAUTH")) {
        replica_link_explain(replica,
                             "the primary wants a password (masteruser, "
                             "masterauth): %.*s",
                             shown, words);
    } else if (replica->stage >= STAGE_LOADS) {
        replica_link_explain(replica, "the primary closed the link: %.*s",
                             shown, words);
    } else {
        replica_link_explain(replica, "the primary refused %s: %.*s",
                             replica_talk_step(replica), shown, words);
    }
    replica_link_lose(replica, now_ms);
}

/* Returns whether any RESP server could have sent this error. The other errors
 * show that the server is not a Bloomery server. */
static bool
is_common_error(struct slice line)
{
    static const char *const common[] = { "-NOAUTH",  "-WRONGPASS", "-NOPERM",
                                          "-LOADING", "-BUSY",      "-DENIED" };

    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
        if (begins(line, common[i])) {
            return true;
        }
    }
    return false;
}

static bool
same_chain(const struct wire_hello *one, const struct wire_hello *other)
{
    bool same = strcmp(one->run_id, other->run_id) == 0 &&
                one->chain_count == other->chain_count;

    for (size_t i = 0; same && i < one->chain_count; i++) {
        same = strcmp(one->chain[i], other->chain[i]) == 0;
    }
    return same;
}

/* Returns whether we may follow the primary: its chain does not contain us, and
 * has room for us. If we are a primary that has lost its data, we may take
 * slots from our own replica, which refuses that while it has a link to us.
 */
static bool
fits_below(struct replica *replica)
{
    const struct wire_hello *primary = &replica->primary;

    if (strcmp(primary->run_id, replica->run_id) == 0) {
        replica_link_explain(replica, "the primary is this server itself");
        return false;
    }
    for (size_t i = 0; i < primary->chain_count; i++) {
        if (replica->slots[0] == '\0' &&
            strcmp(primary->chain[i], replica->run_id) == 0) {
            replica_link_explain(replica,
                                 "a ring: the primary is itself a replica of "
                                 "this server, %zu steps down",
                                 i + 1);
            return false;
        }
    }
    if (primary->chain_count == WIRE_CHAIN_MAX) {
        replica_link_explain(replica,
                             "the primary has %d primaries above it: no chain "
                             "may be longer",
                             WIRE_CHAIN_MAX);
        return false;
    }
    return true;
}

static void
greeted(struct replica *replica, struct slice line, uint64_t now_ms)
{
    struct wire_hello hello;
    char reason[STATUS_TEXT_MAX];
    bool same;

    if (is_common_error(line)) {
        refused(replica, line, now_ms);
        return;
    }
    if (!wire_parse_hello(line, &hello, reason, sizeof(reason))) {
        replica_link_explain(replica, "%s", reason);
        replica_link_lose(replica, now_ms);
        return;
    }
    if (replica_asks_failover(replica)) {
        /* The primary still follows us, but is about to lead. */
        hello.chain_count = 0;
    }
    same = same_chain(&hello, &replica->primary);
    replica->primary = hello;
    if (!same) {
        replica->hooks.chained(replica->hooks.ctx);
    }
    if (fits_below(replica)) {
        if (replica_secrets_begin(replica, now_ms)) {
            announce(replica, now_ms);
        }
    } else {
        replica_link_lose(replica, now_ms);
    }
}

/* Handles that the primary has accepted us. A failover that we asked for is
 * then done. */
static void
accepted(struct replica *replica, const char *how)
{
    if (replica->failover != REPLICA_FAILOVER_NONE) {
        replica->failover = REPLICA_FAILOVER_DONE;
    }
    log_notice("repl.replica", how,
               "primary=%s:%u history=%s position=%" PRIu64, replica->host,
               replica->port, replica->answer.history, replica->position);
}

void
replica_talk_follow(struct replica *replica, const struct replica_place *from,
                    uint64_t key, uint64_t now_ms)
{
    CHECK(replica->link.number != 0);
    replica->hooks.key(replica->hooks.ctx, key);
    replica->position = from->position;
    replica->sequence = from->sequence;
    replica->link.progressed = false;
    replica->synced_ms = now_ms;
    replica->reason[0] = '\0';
    replica_link_enter(replica, STAGE_FOLLOWS, now_ms);
    replica_talk_acknowledge(replica, now_ms);
}

static void
go_on_from(struct replica *replica, const struct wire_answer *answer,
           uint64_t now_ms)
{
    struct replica_place place = { 0 };

    replica->hooks.where(replica->hooks.ctx, &place);
    if (replica->link.asked.history[0] == '\0' || replica->retry.distrusted ||
        strcmp(place.history, replica->link.asked.history) != 0 ||
        place.position != replica->link.asked.position ||
        place.sequence != replica->link.asked.sequence) {
        replica_link_explain(
            replica, "the primary resumes at a position that is not ours");
        replica_link_lose(replica, now_ms);
        return;
    }
    replica->link.reader.phase = WIRE_GROUPS;
    replica->link.reader.key = answer->key;
    replica->answer = *answer;
    replica->position = place.position;
    accepted(replica, "resumes");
    replica_talk_follow(replica, &place, answer->key, now_ms);
}

static void
begin_load(struct replica *replica, const struct wire_answer *answer,
           uint64_t now_ms)
{
    char reason[STATUS_TEXT_MAX] = "no reason given";

    if (!replica->hooks.load_begin(replica->hooks.ctx, answer, reason,
                                   sizeof(reason))) {
        replica_link_explain(replica, "the snapshot cannot be loaded: %s",
                             reason);
        replica_link_refuse(replica, now_ms);
        return;
    }
    replica->link.reader.phase = WIRE_SNAPSHOT;
    replica->link.reader.key = answer->key;
    replica->link.reader.chunk_left = 0;
    replica->answer = *answer;
    replica->read_bytes = 0;
    replica->read_ms = now_ms;
    replica_link_enter(replica, STAGE_LOADS, now_ms);
    replica->position = answer->position;
    accepted(replica, "gets a snapshot");
}

static void
answered(struct replica *replica, struct slice line, uint64_t now_ms)
{
    struct wire_answer answer = { 0 };
    char reason[STATUS_TEXT_MAX];

    if (begins(line, "-")) {
        if (replica_asks_failover(replica)) {
            replica->failover = REPLICA_FAILOVER_REFUSED;
        }
        refused(replica, line, now_ms);
    } else if (!wire_parse_answer(line, &answer, reason, sizeof(reason))) {
        replica_link_explain(replica, "%s", reason);
        replica_link_lose(replica, now_ms);
    } else if (answer.kind == WIRE_CONTINUE) {
        go_on_from(replica, &answer, now_ms);
    } else {
        begin_load(replica, &answer, now_ms);
    }
}

void
replica_talk_look(struct replica *replica, uint64_t now_ms)
{
    if (replica->stage == STAGE_SECRETS &&
        replica_secrets_look(replica, now_ms)) {
        announce(replica, now_ms);
    }
}

void
replica_talk_line(struct replica *replica, struct slice line, uint64_t now_ms)
{
    bool asked = replica->stage >= STAGE_ASKS;

    if (line.len == 0 || (asked && slice_equal(line, slice_lit("+PING")))) {
        return;
    }
    if (asked && slice_equal(line, slice_lit("+GETACK"))) {
        replica->link.ack_due = true;
    } else if (replica->stage == STAGE_ASKS) {
        answered(replica, line, now_ms);
    } else if (replica->stage == STAGE_GREETS) {
        greeted(replica, line, now_ms);
    } else if (replica->stage == STAGE_SECRETS) {
        if (replica_secrets_line(replica, line, now_ms)) {
            announce(replica, now_ms);
        }
    } else if (begins(line, "-")) {
        refused(replica, line, now_ms);
    } else if (asked || !slice_equal(line, slice_lit("+OK"))) {
        replica_link_bad(replica, "an unexpected answer", now_ms);
    } else if (replica->stage == STAGE_AUTHENTICATES) {
        greet(replica, now_ms);
    } else {
        ask_log(replica, now_ms);
    }
}
