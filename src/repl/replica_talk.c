/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handshake, one step at a time, and the lines beside the stream.
 */
#include "repl/replica_internal.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- what is said -------------------------------------------------------- */

static void
say(struct replica *replica, enum stage stage, const struct slice *argv,
    size_t argc, uint64_t now_ms)
{
    wire_command(&replica->out, argv, argc);
    replica_link_enter(replica, stage, now_ms);
    (void)replica_link_flush(replica, now_ms);
}

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
    say(replica, GREETS, argv, 5, now_ms);
}

static void
authenticate(struct replica *replica, uint64_t now_ms)
{
    struct slice argv[3] = { slice_lit("AUTH") };
    size_t argc = 1;

    if (replica->user[0] != '\0') {
        argv[argc++] = slice_of(replica->user);
    }
    argv[argc++] = slice_of(replica->password);
    say(replica, AUTHENTICATES, argv, argc, now_ms);
}

void
replica_talk_begin(struct replica *replica, uint64_t now_ms)
{
    if (replica->password[0] != '\0') {
        authenticate(replica, now_ms);
    } else {
        greet(replica, now_ms);
    }
}

static void
announce(struct replica *replica, uint64_t now_ms)
{
    char port[16];
    struct slice argv[5] = { slice_lit("REPLCONF"),
                             slice_lit("listening-port") };
    size_t argc = 3;

    (void)snprintf(port, sizeof(port), "%u", replica->port);
    argv[2] = slice_of(port);
    if (replica->announce_ip[0] != '\0') {
        argv[argc++] = slice_lit("ip-address");
        argv[argc++] = slice_of(replica->announce_ip);
    }
    say(replica, ANNOUNCES, argv, argc, now_ms);
}

static void
ask(struct replica *replica, uint64_t now_ms)
{
    char position[24];
    struct slice argv[4] = { slice_lit("PSYNC"), slice_lit("?"),
                             slice_lit("-1"), slice_lit("FAILOVER") };

    replica->asked = (struct replica_place){ 0 };
    replica->hooks.where(replica->hooks.ctx, &replica->asked);
    replica->asked_all =
        replica->distrusted || replica->asked.history[0] == '\0';
    if (!replica->asked_all) {
        (void)snprintf(position, sizeof(position), "%" PRIu64,
                       replica->asked.position);
        argv[1] = slice_of(replica->asked.history);
        argv[2] = slice_of(position);
    }
    replica->heard_since = false;
    say(replica, ASKS, argv, replica->failover ? 4 : 3, now_ms);
}

/* Says how far we are, or, before that means something, only that we are. */
void
replica_talk_acknowledge(struct replica *replica, uint64_t now_ms)
{
    struct replica_place place = { 0 };

    if (replica->stage == FOLLOWS) {
        replica->hooks.where(replica->hooks.ctx, &place);
    }
    if (replica->ack_due && place.synced < place.position) {
        replica->disk_due = place.position;
    } else if (place.synced >= replica->disk_due) {
        replica->disk_due = 0;
    }
    replica->ack_due = false;
    replica->acked_ms = now_ms;
    replica->told_synced = place.synced;
    wire_ack(&replica->out, place.position, place.synced);
    (void)replica_link_flush(replica, now_ms);
}

/* ---- what is answered ---------------------------------------------------- */

const char *
replica_talk_step(const struct replica *replica)
{
    switch (replica->stage) {
    case DIALS:
        return "a connection";
    case AUTHENTICATES:
        return "AUTH";
    case GREETS:
    case ANNOUNCES:
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

/* A line that begins with '-'. */
static void
refused(struct replica *replica, struct slice line, uint64_t now_ms)
{
    int shown = slice_shown(line) - 1;
    const char *words = line.data + 1;

    if (begins(line, "-WRONGPASS") ||
        (replica->stage == AUTHENTICATES && !begins(line, "-LOADING"))) {
        replica_link_explain(replica,
                             "the primary does not take our password "
                             "(masteruser, masterauth): %.*s",
                             shown, words);
    } else if (begins(line, "-NOAUTH")) {
        replica_link_explain(replica,
                             "the primary wants a password (masteruser, "
                             "masterauth): %.*s",
                             shown, words);
    } else if (replica->stage >= LOADS) {
        replica_link_explain(replica, "the primary ended it: %.*s", shown,
                             words);
    } else {
        replica_link_explain(replica, "the primary refused %s: %.*s",
                             replica_talk_step(replica), shown, words);
    }
    replica_link_lose(replica, now_ms);
}

/* Errors of every server, which say nothing about what it is. */
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

/* Whether the chain that the primary is the begin of can have us below it. */
static bool
fits_below(struct replica *replica)
{
    const struct wire_hello *primary = &replica->primary;

    if (strcmp(primary->run_id, replica->run_id) == 0) {
        replica_link_explain(replica, "the primary is this very server");
        return false;
    }
    for (size_t i = 0; i < primary->chain_count; i++) {
        if (strcmp(primary->chain[i], replica->run_id) == 0) {
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
    if (replica->failover) {
        hello.chain_count = 0; /* it still follows us, and is about to lead */
    }
    same = same_chain(&hello, &replica->primary);
    replica->primary = hello;
    if (!same) {
        replica->hooks.chained(replica->hooks.ctx);
    }
    if (fits_below(replica)) {
        announce(replica, now_ms);
    } else {
        replica_link_lose(replica, now_ms);
    }
}

/* From here on what was asked for a failover is the primary. */
static void
taken(struct replica *replica, const char *how)
{
    replica->failover_done = replica->failover_done || replica->failover;
    replica->failover = false;
    log_notice("repl.replica", how,
               "primary=%s:%u history=%s position=%" PRIu64, replica->host,
               replica->primary_port, replica->answer.history,
               replica->position);
}

void
replica_talk_follow(struct replica *replica, const struct replica_place *from,
                    uint64_t key, uint64_t now_ms)
{
    replica->hooks.key(replica->hooks.ctx, key);
    replica->position = from->position;
    replica->sequence = from->sequence;
    replica->progressed = false;
    replica->synced_once = true;
    replica->synced_ms = now_ms;
    replica->reason[0] = '\0';
    replica_link_enter(replica, FOLLOWS, now_ms);
    replica_talk_acknowledge(replica, now_ms);
}

static void
go_on_from(struct replica *replica, const struct wire_answer *answer,
           uint64_t now_ms)
{
    struct replica_place place = { 0 };

    replica->hooks.where(replica->hooks.ctx, &place);
    if (replica->asked_all || replica->distrusted ||
        strcmp(place.history, replica->asked.history) != 0 ||
        place.position != replica->asked.position ||
        place.sequence != replica->asked.sequence) {
        replica_link_explain(
            replica, "the primary goes on from a place that is not ours");
        replica_link_lose(replica, now_ms);
        return;
    }
    replica->reader.phase = WIRE_GROUPS;
    replica->reader.key = answer->key;
    replica->answer = *answer;
    replica->position = place.position;
    taken(replica, "goes on where it was");
    replica_talk_follow(replica, &place, answer->key, now_ms);
}

static void
begin_load(struct replica *replica, const struct wire_answer *answer,
           uint64_t now_ms)
{
    char reason[STATUS_TEXT_MAX] = "no reason given";

    if (!replica->hooks.load_begin(replica->hooks.ctx, answer, reason,
                                   sizeof(reason))) {
        replica_link_explain(replica, "the snapshot cannot be taken: %s",
                             reason);
        replica_link_lose(replica, now_ms);
        return;
    }
    replica->reader.phase = WIRE_SNAPSHOT;
    replica->reader.key = answer->key;
    replica->reader.chunk_left = 0;
    replica->answer = *answer;
    replica->read_bytes = 0;
    replica->read_ms = now_ms;
    replica_link_enter(replica, LOADS, now_ms);
    replica->position = answer->position;
    taken(replica, "gets a snapshot");
}

static void
answered(struct replica *replica, struct slice line, uint64_t now_ms)
{
    struct wire_answer answer = { 0 };
    char reason[STATUS_TEXT_MAX];

    if (begins(line, "-")) {
        replica->failover_refused = replica->failover;
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
replica_talk_line(struct replica *replica, struct slice line, uint64_t now_ms)
{
    bool asked = replica->stage >= ASKS;

    if (line.len == 0 || (asked && slice_equal(line, slice_lit("+PING")))) {
        return;
    }
    if (asked && slice_equal(line, slice_lit("+GETACK"))) {
        replica->ack_due = true;
    } else if (replica->stage == ASKS) {
        answered(replica, line, now_ms);
    } else if (replica->stage == GREETS) {
        greeted(replica, line, now_ms);
    } else if (begins(line, "-")) {
        refused(replica, line, now_ms);
    } else if (asked || !slice_equal(line, slice_lit("+OK"))) {
        replica_link_bad(replica, "an answer that means nothing here", now_ms);
    } else if (replica->stage == AUTHENTICATES) {
        greet(replica, now_ms);
    } else {
        ask(replica, now_ms);
    }
}
