/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Secrets are hidden as in the slow log. Words come from clients: they are
 * escaped, and cut, so that a line stays a line.
 */
#include "engine/audit.h"

#include "access/redact.h"
#include "access/user.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/conn.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

enum { WORDS_BYTES = 400, WORD_BYTES = 100, KINDS = CMD_ID_COUNT + 1 };

/* Counts of the lines of one second, for each command and for logins. */
static struct {
    uint64_t second;
    uint64_t logged, left_out;
} kinds[KINDS];

static const char login[] = "login";

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Whether lines of some kind were left out, and the log does not tell yet. */
static atomic_bool uncounted;

/* Returns whether one more line of this kind may be logged now. *ret_left_out
 * gets the number of lines that were left out since the last logged one. */
static bool
admits(unsigned kind, uint64_t most, uint64_t *ret_left_out)
{
    uint64_t second = clock_mono_ms() / 1000 + 1;
    bool admitted;

    CHECK(pthread_mutex_lock(&mutex) == 0);
    if (kinds[kind].second != second) {
        kinds[kind].second = second;
        kinds[kind].logged = 0;
    }
    admitted = kinds[kind].logged < most;
    if (admitted) {
        kinds[kind].logged++;
        *ret_left_out = kinds[kind].left_out;
        kinds[kind].left_out = 0;
    } else {
        kinds[kind].left_out++;
        atomic_store(&uncounted, true);
    }
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    return admitted;
}

/* Takes the count of a kind, if its second is over. *ret_more becomes true if
 * the count has to wait. Returns 0 if there is none to log. */
static uint64_t
take_left_out(unsigned kind, bool *ret_more)
{
    uint64_t second = clock_mono_ms() / 1000 + 1;
    uint64_t left_out = 0;

    CHECK(pthread_mutex_lock(&mutex) == 0);
    if (kinds[kind].left_out > 0 && kinds[kind].second == second) {
        *ret_more = true;
    } else {
        left_out = kinds[kind].left_out;
        kinds[kind].left_out = 0;
    }
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    return left_out;
}

void
audit_tick(void)
{
    bool more = false;

    if (!atomic_load_explicit(&uncounted, memory_order_relaxed)) {
        return;
    }
    atomic_store(&uncounted, false); /* before the counts are read */
    for (unsigned kind = 0; kind < KINDS; kind++) {
        uint64_t left_out = take_left_out(kind, &more);

        if (left_out > 0) {
            log_notice("audit", "audit", "what=\"%s\" left-out=%" PRIu64,
                       kind < CMD_ID_COUNT ? command_at(kind)->name : login,
                       left_out);
        }
    }
    if (more) {
        atomic_store(&uncounted, true);
    }
}

/* Appends a word, escaped and cut. */
static void
append_word(struct buf *to, struct slice word)
{
    struct slice shown = { word.data,
                           word.len < WORD_BYTES ? word.len : WORD_BYTES };

    buf_append_escaped(to, shown);
    if (shown.len < word.len) {
        buf_append_slice(to, slice_lit("..."));
    }
}

/* Returns whether a rule of a user is about commands, or switches the user on
 * or off: no secret, and not the name of a key. */
static bool
is_open_rule(struct slice rule)
{
    static const char *const words[] = {
        "on",          "off",        "nopass",      "resetpass",
        "allkeys",     "resetkeys",  "allchannels", "resetchannels",
        "allcommands", "nocommands", "reset",       "~*",
        "&*"
    };

    if (rule.len > 0 && (rule.data[0] == '+' || rule.data[0] == '-')) {
        return true;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (slice_is_word(rule, words[i])) {
            return true;
        }
    }
    return false;
}

/* Of ACL SETUSER, the user's name is shown, and rights that hold now. If it has
 * failed, a word may be a password without its sign. */
static struct slice
shown_word(const struct request *req, size_t index, bool done)
{
    bool open = command_id(req->command) == CMD_ID_ACL_SETUSER &&
                (index == 2 || (done && is_open_rule(req->argv[index])));

    return open ? req->argv[index]
                : redact_word(req->command, req->argv, req->argc, index);
}

static void
append_words(struct buf *to, const struct request *req, bool done)
{
    for (size_t i = 0; i < req->argc; i++) {
        if (to->len > WORDS_BYTES) {
            buf_append_slice(to, slice_lit(" ..."));
            return;
        }
        buf_append(to, " ", i > 0 ? 1 : 0);
        append_word(to, shown_word(req, i, done));
    }
}

/* Logs one line. user: the user's name, or the name that the client gave. */
static void
log_line(const struct request *req, const struct buf *what, struct slice user,
         const char *result, uint64_t left_out)
{
    const struct session *session = req->session;
    char address[CONN_ADDRESS_MAX] = "";
    struct buf who = { 0 };
    struct buf name = { 0 };

    append_word(&who, user);
    append_word(&name, slice_of(session->name != NULL ? session->name : ""));
    if (session->conn != NULL) {
        conn_peer_address(session->conn, address);
    }
    if (!what->failed && !who.failed && !name.failed) {
        log_notice("audit", "audit",
                   "what=\"%.*s\" user=\"%.*s\" address=\"%s\" name=\"%.*s\" "
                   "result=%s left-out=%" PRIu64,
                   (int)what->len, what->data, (int)who.len, who.data, address,
                   (int)name.len, name.data, result, left_out);
    }
    buf_free(&name);
    buf_free(&who);
}

void
audit_note(const struct request *req, enum err err)
{
    const struct user *user = req->session->user;
    struct buf what = { 0 };
    uint64_t left_out;

    if (!admits(command_id(req->command), AUDIT_A_SECOND, &left_out)) {
        return;
    }
    append_words(&what, req, err == OK);
    log_line(req, &what, user != NULL ? user_name(user) : slice_lit(""),
             err == OK ? "OK" : err_prefix(err), left_out);
    buf_free(&what);
}

void
audit_failed_login(const struct request *req, struct slice user)
{
    struct buf what = { 0 };
    uint64_t left_out;

    if (admits(CMD_ID_COUNT, AUDIT_LOGINS_A_SECOND, &left_out)) {
        buf_append_slice(&what, slice_of(login));
        log_line(req, &what, user, err_prefix(ERR_WRONGPASS), left_out);
        buf_free(&what);
    }
}
