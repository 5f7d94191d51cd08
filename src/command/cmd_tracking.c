/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT TRACKING CACHING TRACKINGINFO GETREDIR. Each runs on the loop of its
 * connection.
 */
#include "access/handlers.h"
#include "base/mem.h"
#include "engine/observe.h"
#include "net/conn.h"
#include "net/registry.h"
#include "push/tracking.h"

/* ---- TRACKING ------------------------------------------------------------ */

static void
note_loop(void *ctx, struct conn *conn)
{
    unsigned *loop = ctx;

    *loop = conn->loop->index;
}

/* Parses REDIRECT. If that client ends later, the tracking client gets a
 * message. */
static enum err
parse_redirect(struct request *req, struct tracking_options *options)
{
    int64_t id;

    if (options->redirect != 0) {
        return request_fail(req, ERR_CUSTOM, "%s",
                            "A client can only redirect to a single other "
                            "client");
    }
    id = args_i64(&req->args);
    if (req->args.err != OK) {
        return req->args.err;
    }
    if (id <= 0 || !registry_visit_one(req->service->registry, (uint64_t)id,
                                       note_loop, &options->redirect_loop)) {
        return request_fail(req, ERR_CUSTOM, "%s",
                            "The client ID you want redirect to does not "
                            "exist");
    }
    options->redirect = (uint64_t)id;
    return OK;
}

/* Parses all options; prefixes has space for all arguments. */
static enum err
parse_options(struct request *req, struct tracking_options *options,
              struct slice *prefixes)
{
    struct args *args = &req->args;
    enum err err = OK;

    options->prefixes = prefixes;
    while (err == OK && args_left(args) > 0) {
        if (args_left(args) > 1 && args_word(args, "redirect")) {
            err = parse_redirect(req, options);
        } else if (args_word(args, "bcast")) {
            options->bcast = true;
        } else if (args_word(args, "optin")) {
            options->optin = true;
        } else if (args_word(args, "optout")) {
            options->optout = true;
        } else if (args_word(args, "noloop")) {
            options->noloop = true;
        } else if (args_left(args) > 1 && args_word(args, "prefix")) {
            prefixes[options->prefix_count++] = args_bytes(args);
        } else {
            err = ERR_SYNTAX;
        }
    }
    return err;
}

/* Returns whether one begins with the other. */
static bool
overlap(struct slice a, struct slice b)
{
    size_t both = a.len < b.len ? a.len : b.len;

    return both == 0 || memcmp(a.data, b.data, both) == 0;
}

/* Returns the one of the first `count` that overlaps with prefix; NULL if none.
 */
static const struct slice *
overlapping(struct slice prefix, const struct slice *others, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (overlap(prefix, others[i])) {
            return &others[i];
        }
    }
    return NULL;
}

static enum err
check_prefixes(struct request *req, const struct tracking_options *options,
               const struct tracking_options *now)
{
    size_t limit = (size_t)req->service->conf->tracking_prefixes_max_bytes;
    size_t bytes = tracking_prefix_bytes(options) +
                   (now != NULL ? tracking_prefix_bytes(now) : 0);

    if (bytes > limit) {
        return request_fail(req, ERR_CUSTOM,
                            "The prefixes of this client would take more than "
                            "tracking-prefixes-max-bytes (%zu)",
                            limit);
    }
    for (size_t i = 0; i < options->prefix_count; i++) {
        struct slice prefix = options->prefixes[i];
        const char *what = "an existing";
        const struct slice *other =
            now != NULL ? overlapping(prefix, now->prefixes, now->prefix_count)
                        : NULL;

        if (other == NULL) {
            what = "another provided";
            other = overlapping(prefix, &options->prefixes[i + 1],
                                options->prefix_count - i - 1);
        }
        if (other != NULL) {
            return request_fail(req, ERR_CUSTOM,
                                "Prefix '%.*s' overlaps with %s prefix "
                                "'%.*s'. Prefixes for a single client must "
                                "not overlap.",
                                slice_shown(prefix), prefix.data, what,
                                slice_shown(*other), other->data);
        }
    }
    return OK;
}

/* Checks the options in Redis's order and with its texts. */
static enum err
check_options(struct request *req, const struct tracking_options *options,
              const struct tracking_options *now)
{
    const char *text = NULL;

    if (!options->bcast && options->prefix_count > 0) {
        text = "PREFIX option requires BCAST mode to be enabled";
    } else if (now != NULL && now->bcast != options->bcast) {
        text = "You can't switch BCAST mode on/off before disabling tracking "
               "for this client, and then re-enabling it with a different "
               "mode.";
    } else if (options->bcast && (options->optin || options->optout)) {
        text = "OPTIN and OPTOUT are not compatible with BCAST";
    } else if (options->optin && options->optout) {
        text = "You can't specify both OPTIN mode and OPTOUT mode";
    } else if (now != NULL && ((options->optin && now->optout) ||
                               (options->optout && now->optin))) {
        text = "You can't switch OPTIN/OPTOUT mode before disabling tracking "
               "for this client, and then re-enabling it with a different "
               "mode.";
    }
    if (text != NULL) {
        return request_fail(req, ERR_CUSTOM, "%s", text);
    }
    return options->bcast ? check_prefixes(req, options, now) : OK;
}

static enum err
turn_on(struct request *req, const struct tracking_options *options)
{
    struct receiver *receiver = &req->session->receiver;
    const struct tracking_options *now = tracking_get(receiver);
    enum err err = check_options(req, options, now);

    if (err != OK) {
        return err;
    }
    if (!tracking_on(req->service->tracking, receiver, options)) {
        return ERR_NOMEM;
    }
    if (now == NULL) {
        observe_count(req->service, OBSERVED_TRACKING, true);
    }
    return OK;
}

static void
turn_off(struct request *req)
{
    struct receiver *receiver = &req->session->receiver;

    if (tracking_get(receiver) != NULL) {
        tracking_off(req->service->tracking, receiver);
        observe_count(req->service, OBSERVED_TRACKING, false);
    }
}

enum err
cmd_client_tracking(struct request *req)
{
    struct tracking_options options = { 0 };
    struct slice status = args_bytes(&req->args);
    struct slice *prefixes = NULL;
    enum err err = OK;

    if (args_left(&req->args) > 0) {
        prefixes = mem_try_alloc(args_left(&req->args) * sizeof(*prefixes));
        err = prefixes != NULL ? parse_options(req, &options, prefixes)
                               : ERR_NOMEM;
    }
    if (err == OK && slice_is_word(status, "on")) {
        err = turn_on(req, &options);
    } else if (err == OK && slice_is_word(status, "off")) {
        turn_off(req);
    } else if (err == OK) {
        err = ERR_SYNTAX;
    }
    mem_free(prefixes);
    if (err == OK) {
        reply_ok(req->reply);
    }
    return err;
}

/* ---- CACHING ------------------------------------------------------------- */

enum err
cmd_client_caching(struct request *req)
{
    struct receiver *receiver = &req->session->receiver;
    const struct tracking_options *now = tracking_get(receiver);
    bool yes = args_word(&req->args, "yes");
    const char *text = NULL;

    if (now == NULL) {
        text = "CLIENT CACHING can be called only when the client is in "
               "tracking mode with OPTIN or OPTOUT mode enabled";
    } else if (yes && !now->optin) {
        text = "CLIENT CACHING YES is only valid when tracking is enabled in "
               "OPTIN mode.";
    } else if (!yes && !args_word(&req->args, "no")) {
        return ERR_SYNTAX;
    } else if (!yes && !now->optout) {
        text = "CLIENT CACHING NO is only valid when tracking is enabled in "
               "OPTOUT mode.";
    }
    if (text != NULL) {
        return request_fail(req, ERR_CUSTOM, "%s", text);
    }
    tracking_set_caching(receiver, yes ? CACHING_YES : CACHING_NO);
    reply_ok(req->reply);
    return OK;
}

/* ---- what is in force ---------------------------------------------------- */

static void
reply_redirect(struct request *req)
{
    const struct tracking_options *now = tracking_get(&req->session->receiver);

    reply_int(req->reply, now != NULL ? (int64_t)now->redirect : -1);
}

enum err
cmd_client_getredir(struct request *req)
{
    reply_redirect(req);
    return OK;
}

static void
reply_mode(struct request *req, const struct tracking_options *now)
{
    const struct receiver *receiver = &req->session->receiver;
    enum tracking_caching caching = tracking_caching(receiver);
    bool broken = (atomic_load(&receiver->tracks) & TRACKS_BROKEN) != 0;
    const struct {
        bool is;
        const char *word;
    } flags[] = {
        { true, "on" },
        { now->bcast, "bcast" },
        { now->optin, "optin" },
        { now->optin && caching == CACHING_YES, "caching-yes" },
        { now->optout, "optout" },
        { now->optout && caching == CACHING_NO, "caching-no" },
        { now->noloop, "noloop" },
        { broken, "broken_redirect" },
    };
    const size_t all = sizeof(flags) / sizeof(flags[0]);
    size_t count = 0;

    for (size_t i = 0; i < all; i++) {
        count += flags[i].is;
    }
    reply_set(req->reply, count);
    for (size_t i = 0; i < all; i++) {
        if (flags[i].is) {
            reply_bulk_text(req->reply, flags[i].word);
        }
    }
}

enum err
cmd_client_trackinginfo(struct request *req)
{
    const struct tracking_options *now = tracking_get(&req->session->receiver);
    struct reply *reply = req->reply;

    reply_map(reply, 3);
    reply_bulk_text(reply, "flags");
    if (now != NULL) {
        reply_mode(req, now);
    } else {
        reply_set(reply, 1);
        reply_bulk_text(reply, "off");
    }
    reply_bulk_text(reply, "redirect");
    reply_redirect(req);
    reply_bulk_text(reply, "prefixes");
    reply_array(reply, now != NULL ? now->prefix_count : 0);
    for (size_t i = 0; now != NULL && i < now->prefix_count; i++) {
        reply_bulk(reply, now->prefixes[i]);
    }
    return OK;
}
