/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG, for tests and for comparing servers; admit.c checks who may use it.
 * Runs under the raised gate. Loop 0 does a RELOAD, and the connection waits
 * for it.
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "base/num.h"
#include "command/digest.h"
#include "command/help.h"
#include "core/codec.h"
#include "engine/admit.h"
#include "engine/refusal.h"
#include "keyspace/access.h"
#include "persist/persist.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

enum { SLEEP_SECONDS_MAX = 24 * 60 * 60 };

static enum err
debug_sleep(struct request *req)
{
    double seconds = 0;
    struct timespec left;

    if (!num_parse_double(req->argv[2], &seconds) || !isfinite(seconds) ||
        seconds < 0 || seconds > SLEEP_SECONDS_MAX) {
        return request_fail(req, ERR_CUSTOM,
                            "DEBUG SLEEP takes seconds, from 0 to %d",
                            SLEEP_SECONDS_MAX);
    }
    left.tv_sec = (time_t)seconds;
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    reply_ok(req->reply);
    return OK;
}

static void
reply_digest(struct request *req, const struct digest *digest, bool simple)
{
    char hex[DIGEST_HEX];

    digest_format(digest, hex);
    if (simple) {
        reply_simple(req->reply, hex);
    } else {
        reply_bulk_text(req->reply, hex);
    }
}

static enum err
debug_digest(struct request *req)
{
    struct digest digest;

    digest_all(req->keyspace, req->now_ms, &digest);
    reply_digest(req, &digest, true);
    return OK;
}

static enum err
debug_digest_value(struct request *req)
{
    reply_array(req->reply, req->argc - 2);
    for (size_t i = 2; i < req->argc; i++) {
        struct key key = request_key(req, i);
        const struct entry *entry =
            keyspace_find(req->keyspace, &key, req->now_ms);
        struct digest digest = { { 0 } };

        if (entry != NULL) {
            digest_value(&entry->bloom,
                         keyspace_expiry(req->keyspace, &key, entry), &digest);
        }
        reply_digest(req, &digest, false);
    }
    return OK;
}

/* Replies with an error, for tests of clients. As in Redis, the error does not
 * count as a failure of the command. */
static enum err
debug_error(struct request *req)
{
    reply_error(req->reply, "", req->argv[2]);
    return OK;
}

static enum err
debug_object(struct request *req)
{
    struct key key = request_key(req, 2);
    const struct entry *entry = keyspace_find(req->keyspace, &key, req->now_ms);
    char text[256];

    if (entry == NULL) {
        return ERR_NO_KEY;
    }
    (void)snprintf(
        text, sizeof(text),
        "Value at:%p refcount:1 encoding:raw serializedlength:%llu lru:%u "
        "lru_seconds_idle:%u incarnation:%llu",
        (const void *)&entry->bloom,
        (unsigned long long)codec_dump_bytes(&entry->bloom),
        (unsigned)atomic_load(&entry->access) >> ACCESS_FREQUENCY_BITS,
        (unsigned)access_idle_s(keyspace_access(req->keyspace), entry),
        (unsigned long long)entry->incarnation);
    reply_simple(req->reply, text);
    return OK;
}

static enum err
debug_set_active_expire(struct request *req)
{
    int64_t on;

    if (!slice_to_i64(req->argv[2], &on) || on < 0 || on > 1) {
        return request_fail(req, ERR_CUSTOM,
                            "DEBUG SET-ACTIVE-EXPIRE takes 0 or 1");
    }
    atomic_store(&req->service->keeps_expired, on == 0);
    reply_ok(req->reply);
    return OK;
}

/* ---- RELOAD -------------------------------------------------------------- */

static enum persist_request
reload_request(const struct request *req)
{
    return req->argc == 2 ? PERSIST_RELOAD : PERSIST_RELOAD_NOSAVE;
}

static enum err
reload_begin(struct request *req)
{
    uint64_t *ticket;

    if (req->argc > 3 ||
        (req->argc == 3 && !slice_is_word(req->argv[2], "nosave"))) {
        return request_fail(req, ERR_CUSTOM,
                            "DEBUG RELOAD only supports the NOSAVE option.");
    }
    if (reload_request(req) == PERSIST_RELOAD_NOSAVE &&
        req->service->conf->appendonly) {
        return request_fail(req, ERR_CUSTOM,
                            "DEBUG RELOAD NOSAVE would leave the journal with "
                            "other data than the server: appendonly is on");
    }
    if (!request_may_pause(req)) {
        return request_fail(req, ERR_CUSTOM,
                            "DEBUG RELOAD is not possible in a transaction");
    }
    ticket = mem_try_alloc(sizeof(*ticket));
    if (ticket == NULL) {
        return ERR_NOMEM;
    }
    *ticket = persist_ask(req->service->persist, reload_request(req));
    request_wait(req, ticket, mem_free);
    return ERR_AGAIN;
}

static enum err
debug_reload(struct request *req)
{
    uint64_t *ticket = request_resumed(req);

    if (req->service->persist == NULL) {
        return request_fail(req, ERR_CUSTOM, "this server has no persistence");
    }
    if (ticket == NULL) {
        return reload_begin(req);
    }
    switch (
        persist_outcome(req->service->persist, reload_request(req), *ticket)) {
    case PERSIST_DONE:
        reply_ok(req->reply);
        return OK;
    case PERSIST_FAILED:
        return request_fail(req, ERR_CUSTOM,
                            "Error trying to load the RDB dump, check server "
                            "logs.");
    case PERSIST_PENDING:
        break;
    }
    request_wait(req, ticket, mem_free);
    return ERR_AGAIN;
}

/* ---- all of them --------------------------------------------------------- */

static enum err debug_help(struct request *req);

static const struct sub {
    const char *name;
    enum err (*run)(struct request *req);
    size_t argc_min, argc_max;
    bool needs_data;
    const char *syntax, *text;
} subs[] = {
    { "digest", debug_digest, 2, 2, true, "DIGEST",
      "Shows a digest of all data: equal data has equal ones." },
    { "digest-value", debug_digest_value, 2, SIZE_MAX, true,
      "DIGEST-VALUE <key> [<key> ...]",
      "Shows a digest of each filter and the time at which its key ends." },
    { "error", debug_error, 3, 3, false, "ERROR <text>",
      "Replies an error with this text." },
    { "help", debug_help, 2, 2, false, "HELP", "Shows the subcommands." },
    { "object", debug_object, 3, 3, true, "OBJECT <key>",
      "Shows where a filter lies, how long its stored form is, and when it was "
      "used last." },
    { "reload", debug_reload, 2, SIZE_MAX, true, "RELOAD [NOSAVE]",
      "Writes the snapshot, drops all data and loads it again; with NOSAVE it "
      "loads the snapshot that is there." },
    { "set-active-expire", debug_set_active_expire, 3, 3, false,
      "SET-ACTIVE-EXPIRE <0|1>",
      "With 0, expired keys are not removed in the background." },
    { "sleep", debug_sleep, 3, 3, false, "SLEEP <seconds>",
      "Stops the whole server for so long; decimals are allowed." },
};

enum { SUB_COUNT = sizeof(subs) / sizeof(subs[0]) };

static enum err
debug_help(struct request *req)
{
    reply_array(req->reply, 1 + 2 * SUB_COUNT);
    reply_simple(req->reply,
                 "DEBUG <subcommand> [<arg> ...]. Subcommands are:");
    for (size_t i = 0; i < SUB_COUNT; i++) {
        char text[128];

        (void)snprintf(text, sizeof(text), "    %s", subs[i].text);
        reply_simple(req->reply, subs[i].syntax);
        reply_simple(req->reply, text);
    }
    return OK;
}

enum err
cmd_debug(struct request *req)
{
    for (size_t i = 0; i < SUB_COUNT; i++) {
        if (slice_is_word(req->argv[1], subs[i].name) &&
            req->argc >= subs[i].argc_min && req->argc <= subs[i].argc_max) {
            /* While loading, the data belongs to the loader. */
            return subs[i].needs_data && refusal_is_loading(req->service)
                       ? ERR_LOADING
                       : subs[i].run(req);
        }
    }
    return help_wrong_subcommand(req);
}
