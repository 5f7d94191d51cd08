/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First the fingerprints are listed in pages, since a reply is one line. Then
 * each missing secret is requested, and must be on the disk before the next
 * step.
 */
#include "repl/replica_secrets.h"

#include "base/hex.h"
#include "repl/replica_link.h"

#include <stdio.h>

static void
ask_for(struct replica *replica, const char *what, uint64_t now_ms)
{
    const struct slice argv[] = { slice_lit("REPLCONF"),
                                  slice_lit("hash-secret"), slice_of(what) };

    replica_link_say(replica, STAGE_SECRETS, argv, 3, now_ms);
}

/* Asks for the next page of fingerprints. */
static void
ask_page(struct replica *replica, uint64_t now_ms)
{
    char word[24];

    (void)snprintf(word, sizeof(word), "?%zu", replica->secrets.listed);
    ask_for(replica, word, now_ms);
}

/* Asks for the next missing secret. Returns true if there is none. */
static bool
ask_next(struct replica *replica, uint64_t now_ms)
{
    struct replica_secrets *secrets = &replica->secrets;
    char digits[HEX_U64_CHARS + 1] = "";

    if (secrets->at == secrets->count) {
        return true;
    }
    hex_put_u64(digits, secrets->wanted[secrets->at]);
    ask_for(replica, digits, now_ms);
    return false;
}

bool
replica_secrets_begin(struct replica *replica, uint64_t now_ms)
{
    replica->secrets = (struct replica_secrets){ .count = 0 };
    if (replica->hooks.wants == NULL) {
        return true;
    }
    ask_page(replica, now_ms);
    return false;
}

/* Notes why the primary gives no secret. */
static bool
give_up(struct replica *replica, struct slice why)
{
    (void)snprintf(replica->secrets.refusal, sizeof(replica->secrets.refusal),
                   "%.*s", slice_shown(why), why.data);
    return true;
}

/* Reads a page of fingerprints: 16 digits each, with blanks between them. */
static bool
listed(struct replica *replica, struct slice line, uint64_t now_ms)
{
    struct replica_secrets *secrets = &replica->secrets;
    size_t count = 0;

    for (size_t at = 1; at + HEX_U64_CHARS <= line.len;
         at += HEX_U64_CHARS + 1) {
        uint64_t fingerprint;

        if (!hex_get_u64(line.data + at, &fingerprint)) {
            return give_up(replica, slice_lit("it does not list them"));
        }
        count++;
        if (secrets->count < REPLICA_SECRETS_MAX &&
            replica->hooks.wants(replica->hooks.ctx, fingerprint)) {
            secrets->wanted[secrets->count++] = fingerprint;
        }
    }
    secrets->listed += count;
    if (count == REPLICA_SECRETS_PAGE &&
        secrets->listed < REPLICA_SECRETS_MAX) {
        ask_page(replica, now_ms);
        return false;
    }
    secrets->asks = true;
    return ask_next(replica, now_ms);
}

/* Passes the secret that has arrived to the owner. */
static bool
pass_on(struct replica *replica, uint64_t now_ms)
{
    struct replica_secrets *secrets = &replica->secrets;

    switch (replica->hooks.learn(
        replica->hooks.ctx, secrets->wanted[secrets->at], secrets->arrived)) {
    case REPLICA_LEARNING:
        return false;
    case REPLICA_NOT_LEARNED:
        (void)give_up(replica,
                      slice_lit("it cannot be kept here: see the log"));
        break;
    case REPLICA_LEARNED:
        replica->retry.refused_ms = 0;
        break;
    }
    explicit_bzero(secrets->arrived, sizeof(secrets->arrived));
    secrets->at++;
    return ask_next(replica, now_ms);
}

bool
replica_secrets_line(struct replica *replica, struct slice line,
                     uint64_t now_ms)
{
    struct replica_secrets *secrets = &replica->secrets;
    struct slice text = { line.data + 1, line.len > 0 ? line.len - 1 : 0 };

    if (line.len == 0 || line.data[0] != '+') {
        return give_up(replica, text);
    }
    if (!secrets->asks) {
        return listed(replica, line, now_ms);
    }
    if (secrets->arrived[0] != '\0' || text.len >= sizeof(secrets->arrived)) {
        return give_up(replica, slice_lit("it says what nobody asked for"));
    }
    memcpy(secrets->arrived, text.data, text.len);
    return pass_on(replica, now_ms);
}

bool
replica_secrets_look(struct replica *replica, uint64_t now_ms)
{
    return replica->secrets.arrived[0] != '\0' && pass_on(replica, now_ms);
}
