/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handshake, what follows it, and who says what:
 *
 *   REPLCONF capa eof capa psync2       +OK
 *   REPLCONF version <Valkey's>         +OK, or an error, which does no harm
 *   PSYNC ? -1                          +FULLRESYNC <history> <offset>
 *                                       LF as long as the RDB is being made
 *                                       $<bytes> CRLF <RDB>, or
 *                                       $EOF:<40 bytes> CRLF <RDB> <40 bytes>
 *                                       commands
 *   REPLCONF ACK <offset>  each second, and after REPLCONF GETACK *
 *
 * After a broken link, PSYNC <history> <offset + 1> asks for +CONTINUE. The
 * offsets that we acknowledge are those that the server has confirmed. A second
 * connection to the source asks how far it is, which gives the lag.
 */
#include "load/load_follow.h"

#include "base/clock.h"
#include "base/num.h"
#include "load/load_report.h"
#include "load/load_stream.h"
#include "load/load_ttl.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>

enum {
    HISTORY_BYTES = 40,
    MARK_BYTES = 40,
    LINE_MAX = 1024,
    TURN_MS = 100,
    BROKEN_MAX = 3,
    HOLD_MS = 600000, /* a lag of so much loses no filter */
};

#define SECOND_NS UINT64_C(1000000000)

static volatile sig_atomic_t signals;

enum outcome { OUTCOME_STOP, OUTCOME_LOST, OUTCOME_DONE };

struct following {
    struct load *load;
    struct load_link source;
    struct load_link asker; /* the link that asks for INFO */
    struct load_target target;
    struct load_apply apply;
    struct load_stream stream;
    uint64_t confirmed; /* offset up to which the server has everything */
    uint64_t acked_ns, asked_ns;
    uint64_t source_offset; /* at the last INFO */
    uint64_t goal;          /* after a signal: the offset at which to end */
    uint64_t applied, changed_ns; /* for --until-idle */
    uint64_t syncs, resumed;
    uint64_t rdb_left;  /* bytes of the RDB, if it has no mark */
    size_t handed_over; /* bytes of the link that the reader of the RDB has */
    char mark[MARK_BYTES];
    char history[HISTORY_BYTES + 1];
    bool has_asker, has_goal, knows_offset;
    bool streaming; /* `stream` is begun */
    bool complete;  /* the last full copy has come to its end */
    bool marked;    /* the RDB ends with a mark */
};

static void
on_signal(int number)
{
    (void)number;
    signals = signals + 1;
}

/* ---- turns --------------------------------------------------------------- */

/* Writes and reads on all links for a moment. False: the tool must stop. */
static bool
turn(struct following *following)
{
    struct load_link *links[3] = { &following->target.link, &following->source,
                                   &following->asker };
    size_t count = following->has_asker ? 3 : 2;

    (void)load_link_wait(links, count, TURN_MS);
    if (following->has_asker &&
        (following->asker.failed || following->asker.client.ended)) {
        load_link_close(&following->asker);
        following->has_asker = false;
        following->knows_offset = false;
    }
    return !following->target.link.failed &&
           load_target_push(&following->target);
}

/* Waits until at least so many bytes of the source are here. False: it has
 * closed the connection or sends no more of them, the tool must stop, or a
 * second signal came. */
static bool
await_bytes(struct following *following, size_t least)
{
    uint64_t heard_ns = clock_mono_ns();
    size_t seen = 0, len;

    while ((len = load_link_bytes(&following->source).len) < least) {
        if (len > seen) {
            seen = len;
            heard_ns = clock_mono_ns();
        }
        if (following->source.client.ended || following->source.failed ||
            signals > 1 || !turn(following)) {
            return false;
        }
        if (clock_mono_ns() - heard_ns >
            following->load->timeout_s * SECOND_NS) {
            load_link_fail(&following->source,
                           "sent nothing for %" PRIu64 " s (--timeout)",
                           following->load->timeout_s);
            return false;
        }
    }
    return true;
}

/* ---- handshake ----------------------------------------------------------- */

/* Reads a line without its end, past empty ones. */
static bool
take_line(struct following *following, char *ret_line)
{
    size_t seen = 0; /* bytes of a line whose end is missing */

    for (;;) {
        struct slice bytes;
        const char *lf;
        size_t len;

        if (!await_bytes(following, seen + 1)) {
            return false;
        }
        bytes = load_link_bytes(&following->source);
        lf = memchr(bytes.data, '\n', bytes.len);
        if (lf == NULL && bytes.len >= LINE_MAX) {
            load_link_fail(&following->source, "sent too long a line");
            return false;
        }
        if (lf == NULL) {
            seen = bytes.len;
            continue;
        }
        seen = 0;
        len = (size_t)(lf - bytes.data);
        if (len >= LINE_MAX) {
            load_link_fail(&following->source, "sent too long a line");
            return false;
        }
        memcpy(ret_line, bytes.data, len);
        load_link_consume(&following->source, len + 1);
        len -= len > 0 && ret_line[len - 1] == '\r';
        ret_line[len] = '\0';
        if (len > 0) {
            return true;
        }
    }
}

/* Sends the source a command whose reply is a line, or that has no reply. */
static void
say_words(struct following *following, const struct slice *words, size_t count)
{
    load_link_send(&following->source, words, count);
    following->source.awaited = 0;
}

static bool
parse_full(struct following *following, const char *line, uint64_t *ret_offset)
{
    struct slice text = slice_of(line);
    struct slice word, history, offset;

    if (!slice_next_word(&text, &word) || !slice_next_word(&text, &history) ||
        !slice_next_word(&text, &offset) || history.len != HISTORY_BYTES ||
        !slice_to_u64(offset, ret_offset)) {
        load_link_fail(&following->source, "sent a bad line: %s", line);
        return false;
    }
    memcpy(following->history, history.data, HISTORY_BYTES);
    return true;
}

static bool
refuse_line(struct following *following, const char *line)
{
    load_link_fail(&following->source,
                   "cannot be followed: %s (a Bloomery follows another by "
                   "REPLICAOF; without --follow its filters are copied)",
                   line);
    return false;
}

static void
send_psync(struct following *following)
{
    char digits[NUM_U64_MAX];
    struct slice words[3] = { slice_lit("PSYNC"), slice_lit("?"),
                              slice_lit("-1") };

    if (following->complete) {
        words[1] = slice_of(following->history);
        words[2] =
            (struct slice){ digits, num_format_u64(following->stream.offset + 1,
                                                   digits) };
    }
    say_words(following, words, 3);
}

/* Introduces the tool and asks to continue, or for everything. */
static bool
shake(struct following *following, bool *ret_full, uint64_t *ret_offset)
{
    static const struct slice capable[] = {
        { "REPLCONF", 8 }, { "capa", 4 },   { "eof", 3 },
        { "capa", 4 },     { "psync2", 6 },
    };
    static const struct slice version[] = {
        { "REPLCONF", 8 },
        { "version", 7 },
        { "9.1.0", 5 },
    };
    char line[LINE_MAX];

    say_words(following, capable, 5);
    if (!take_line(following, line)) { /* an old source refuses; no matter */
        return false;
    }
    /* If it hears no version, Valkey 9 writes an RDB for older replicas, and
     * breaks it off at a value that they do not know. */
    say_words(following, version, 3);
    if (!take_line(following, line)) {
        return false;
    }
    send_psync(following);
    if (!take_line(following, line)) {
        return false;
    }
    if (strncmp(line, "+FULLRESYNC ", 12) == 0) {
        *ret_full = true;
        return parse_full(following, line, ret_offset);
    }
    if (strncmp(line, "+CONTINUE", 9) != 0 || !following->complete) {
        return refuse_line(following, line);
    }
    *ret_full = false;
    if (strlen(line) == 10 + HISTORY_BYTES) {
        memcpy(following->history, line + 10, HISTORY_BYTES);
    }
    return true;
}

/* ---- the RDB ------------------------------------------------------------- */

static bool
next(void *ctx, struct slice *ret_bytes)
{
    struct following *following = ctx;
    struct slice bytes;

    load_link_consume(&following->source, following->handed_over);
    following->handed_over = 0;
    if ((!following->marked && following->rdb_left == 0) ||
        !await_bytes(following, 1)) {
        return false;
    }
    bytes = load_link_bytes(&following->source);
    if (!following->marked) {
        if (bytes.len > following->rdb_left) {
            bytes.len = (size_t)following->rdb_left;
        }
        following->rdb_left -= bytes.len;
    }
    following->handed_over = bytes.len;
    tool_bar_add(&following->load->tool, bytes.len);
    *ret_bytes = bytes;
    return true;
}

/* Reads the line before the RDB. */
static bool
take_size(struct following *following)
{
    char line[LINE_MAX];

    if (!take_line(following, line)) {
        return false;
    }
    if (strncmp(line, "$EOF:", 5) == 0 && strlen(line) == 5 + MARK_BYTES) {
        following->marked = true;
        memcpy(following->mark, line + 5, MARK_BYTES);
        return true;
    }
    following->marked = false;
    if (line[0] != '$' ||
        !slice_to_u64(slice_of(line + 1), &following->rdb_left)) {
        return refuse_line(following, line);
    }
    return true;
}

/* Checks what follows the RDB: nothing, or the mark. */
static bool
take_end(struct following *following, struct slice rest)
{
    struct load_link *source = &following->source;
    struct slice bytes;

    load_link_consume(source, following->handed_over - rest.len);
    following->handed_over = 0;
    if (!following->marked && (following->rdb_left > 0 || rest.len > 0)) {
        load_link_fail(source, "sent an RDB shorter than it said");
        return false;
    }
    if (following->marked && !await_bytes(following, MARK_BYTES)) {
        return false;
    }
    bytes = load_link_bytes(source);
    if (following->marked &&
        memcmp(bytes.data, following->mark, MARK_BYTES) != 0) {
        load_link_fail(source, "sent an RDB without its mark at the end");
        return false;
    }
    load_link_consume(source, following->marked ? MARK_BYTES : 0);
    return true;
}

/* Restores the filters of the RDB that the source sends. */
static bool
take_rdb(struct following *following)
{
    const struct rdb_source source = { next, following };
    const struct rdb_visitor visitor = { load_target_on_filter,
                                         &following->target,
                                         (size_t)following->load->value_bytes };
    struct rdb_result result;
    bool ok;

    if (!load_apply_end(&following->apply) || !take_size(following)) {
        return false;
    }
    load_target_begin_round(&following->target);
    following->handed_over = 0;
    tool_bar_begin(&following->load->tool, TOOL_UNIT_MIB,
                   following->marked ? 0 : following->rdb_left);
    ok = rdb_read(&source, &visitor, &result);
    tool_bar_end(&following->load->tool);
    if (!ok && result.status != RDB_STOPPED && result.status != RDB_CUT) {
        load_link_fail(&following->source, "its RDB, at offset %" PRIu64 ": %s",
                       result.offset, result.why);
    }
    ok = ok && take_end(following, result.rest) &&
         load_target_delete_old(&following->target) &&
         load_target_drain(&following->target);
    if (ok) {
        load_report_begin(following->load,
                          slice_of(following->load->from.address));
        load_rdb_report(&result);
        (void)fflush(stdout);
        load_create_version(&following->apply.rule, slice_of(result.product));
    }
    return ok;
}

/* ---- the stream ---------------------------------------------------------- */

static void
acknowledge(struct following *following)
{
    char digits[NUM_U64_MAX];
    const struct slice words[] = {
        slice_lit("REPLCONF"),
        slice_lit("ACK"),
        { digits, num_format_u64(following->confirmed, digits) },
    };

    say_words(following, words, 3);
    following->acked_ns = clock_mono_ns();
    following->apply.asked = false;
}

static void
ask_offset(struct following *following)
{
    if (following->has_asker && following->asker.awaited == 0) {
        load_link_say(&following->asker, "INFO", "replication", NULL);
        following->asked_ns = clock_mono_ns();
    }
}

static void
take_offset(struct following *following)
{
    struct slice reply;

    if (following->has_asker && load_link_next(&following->asker, &reply)) {
        following->knows_offset |=
            resp_field(reply, "master_repl_offset:", &following->source_offset);
    }
}

static uint64_t
lag(const struct following *following)
{
    return following->source_offset > following->confirmed
               ? following->source_offset - following->confirmed
               : 0;
}

static void
show_progress(struct following *following)
{
    uint64_t behind = lag(following);

    load_report_lag(following->load, following->apply.applied,
                    following->knows_offset ? &behind : NULL);
}

/* Does what is due each second. False: the tool must stop. */
static bool
tick(struct following *following)
{
    uint64_t now_ns = clock_mono_ns();

    take_offset(following);
    if (following->apply.asked || now_ns - following->acked_ns > SECOND_NS) {
        if (!load_target_drain(&following->target)) {
            return false;
        }
        following->confirmed = following->stream.offset;
        acknowledge(following);
    }
    if (now_ns - following->asked_ns > SECOND_NS) {
        ask_offset(following);
    }
    if (following->apply.applied != following->applied) {
        following->applied = following->apply.applied;
        following->changed_ns = now_ns;
    }
    show_progress(following);
    return true;
}

/* Waits for the reply of the last INFO. */
static bool
await_offset(struct following *following)
{
    while (following->has_asker && following->asker.awaited > 0) {
        if (signals > 1 || !turn(following)) {
            return false;
        }
        take_offset(following);
    }
    return true;
}

/* Sets the goal after a signal: the source's present offset or, if the source
 * does not tell it, the end of the bytes that have arrived. */
static bool
set_goal(struct following *following)
{
    if (following->has_goal) {
        return true;
    }
    tool_complain(&following->load->tool, 0,
                  "stopping when the source's present offset is reached; "
                  "a second signal stops at once");
    if (!await_offset(following)) {
        return false;
    }
    following->knows_offset = false;
    ask_offset(following);
    if (!await_offset(following)) {
        return false;
    }
    following->goal = following->knows_offset ? following->source_offset
                                              : following->stream.read;
    following->has_goal = true;
    return true;
}

/* Returns whether the end has come, and everything before it is applied. */
static bool
is_over(struct following *following)
{
    uint64_t idle_ns = following->load->until_idle_s * SECOND_NS;

    if (following->has_goal) {
        return following->stream.offset >= following->goal;
    }
    return idle_ns > 0 && following->knows_offset &&
           following->asked_ns > following->changed_ns &&
           clock_mono_ns() - following->changed_ns >= idle_ns &&
           following->asker.awaited == 0 && lag(following) == 0;
}

static enum outcome
follow_stream(struct following *following)
{
    struct load_link *source = &following->source;

    following->changed_ns = clock_mono_ns();
    acknowledge(following);
    for (;;) {
        struct slice bytes = load_link_bytes(source);

        if (!load_stream_feed(&following->stream, bytes)) {
            return OUTCOME_STOP;
        }
        load_link_consume(source, bytes.len);
        if (signals > 1 || !tick(following) ||
            (signals > 0 && !set_goal(following))) {
            return OUTCOME_STOP;
        }
        if (is_over(following) && !following->apply.multi) {
            if (!load_target_drain(&following->target)) {
                return OUTCOME_STOP;
            }
            following->confirmed = following->stream.offset;
            acknowledge(following);
            (void)load_link_wait(&source, 1, 0);
            return OUTCOME_DONE;
        }
        if (source->failed || source->client.ended) {
            return OUTCOME_LOST;
        }
        if (!turn(following)) {
            return OUTCOME_STOP;
        }
    }
}

/* ---- links --------------------------------------------------------------- */

static void
begin_stream(struct following *following, uint64_t offset)
{
    if (following->streaming) {
        load_stream_end(&following->stream);
    }
    load_stream_begin(&following->stream, &following->apply,
                      following->load->from.address, offset);
    following->streaming = true;
    following->confirmed = offset;
}

/* Follows over one connection. */
static enum outcome
follow_once(struct following *following)
{
    uint64_t offset = following->stream.offset;
    bool full = false;

    if (!shake(following, &full, &offset)) {
        return following->source.failed || following->target.stopped
                   ? OUTCOME_STOP
                   : OUTCOME_LOST;
    }
    if (full) {
        following->complete = false;
        if (!take_rdb(following)) {
            return following->source.client.ended && !following->source.failed
                       ? OUTCOME_LOST
                       : OUTCOME_STOP;
        }
        following->complete = true;
        following->syncs++;
    } else { /* bytes up to the offset are confirmed before the first ACK */
        if (!load_target_drain(&following->target)) {
            return OUTCOME_STOP;
        }
        following->resumed++;
    }
    begin_stream(following, offset);
    return follow_stream(following);
}

/* Connects. AGAIN: repeats this for --timeout, unless a signal comes. */
static bool
connect_source(struct following *following, bool again)
{
    uint64_t begun_ns = clock_mono_ns();

    if (following->has_asker) {
        load_link_close(&following->asker);
        following->has_asker = false;
    }
    following->knows_offset = false;
    while (!load_link_open(following->load, &following->load->from,
                           &following->source)) {
        if (!again || signals > 0 ||
            clock_mono_ns() - begun_ns >
                following->load->timeout_s * SECOND_NS) {
            return false;
        }
        (void)poll(NULL, 0, 1000);
    }
    following->has_asker = load_link_open(
        following->load, &following->load->from, &following->asker);
    if (following->has_asker) {
        load_create_ask(&following->asker, following->load,
                        &following->apply.rule);
    }
    return true;
}

static bool
run_links(struct following *following)
{
    enum outcome outcome = OUTCOME_LOST;
    bool again = false;
    unsigned broken = 0; /* links in a row that ended before a first copy */

    /* Until there is a copy, nothing is gained by going on after a signal. */
    while (outcome == OUTCOME_LOST &&
           signals < (following->syncs > 0 ? 2 : 1)) {
        if (broken == BROKEN_MAX) {
            tool_complain(&following->load->tool, LOAD_UNREADABLE,
                          "%s: broke the link %u times before the end of its "
                          "first copy: its log has the reason",
                          following->load->from.address, broken);
            return false;
        }
        if (again) {
            tool_complain(
                &following->load->tool, 0,
                "%s: the link broke at offset %" PRIu64 "; connecting again",
                following->load->from.address, following->stream.offset);
            (void)poll(NULL, 0, 1000);
        }
        if (!connect_source(following, again)) {
            return false;
        }
        outcome = follow_once(following);
        load_link_close(&following->source);
        again = true;
        broken += following->syncs == 0;
    }
    return outcome == OUTCOME_DONE;
}

static void
report_follow(struct following *following, bool ok)
{
    load_report_begin(following->load, slice_lit("all"));
    load_target_report(&following->target);
    load_apply_report(&following->apply);
    load_report_number("full copies", following->syncs);
    load_report_number("links resumed", following->resumed);
    load_report_number("offset", following->confirmed);
    if (!ok) {
        tool_complain(&following->load->tool, LOAD_INCOMPLETE,
                      "stopped before the end: what the source did after its "
                      "offset %" PRIu64 " is missing",
                      following->confirmed);
    } else if (following->target.refused > 0 ||
               following->target.load->tool.status != 0) {
        load_report_text("missing", "what is named above");
    } else {
        load_report_text("missing", "nothing up to this offset");
    }
}

void
load_follow(struct load *load)
{
    static struct following following;
    const struct sigaction action = { .sa_handler = on_signal };
    bool ok;

    following.load = load;
    following.apply.target = &following.target;
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    if (!load_create_begin(load, &following.apply.rule) ||
        !load_target_open(load, &following.target)) {
        return;
    }
    following.target.hold_ms = HOLD_MS;
    ok = run_links(&following);
    ok = load_target_check_pieces(&following.target) && ok;
    ok = load_ttl_release(&following.target) && ok;
    tool_bar_hide(&load->tool);
    report_follow(&following, ok);
    if (following.has_asker) {
        load_link_close(&following.asker);
    }
    if (following.streaming) {
        load_stream_end(&following.stream);
    }
    load_target_close(&following.target);
}
