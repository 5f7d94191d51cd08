/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Only the reply has the secret: no log, MONITOR or slow log shows replies.
 * What the buffer of the connection keeps of it is overwritten by later
 * replies.
 */
#include "command/give_secret.h"

#include "access/selector.h"
#include "access/user.h"
#include "base/hex.h"
#include "base/log.h"
#include "core/keyed.h"
#include "net/conn.h"

#include <stdio.h>
#include <string.h>

enum {
    WORD_AT = 2,
    PAGE = 32, /* fingerprints in one reply, which is one line */
    DIGITS = 2 * BLOOM_SECRET_BYTES
};

/* ---- who gets it --------------------------------------------------------- */

/* Returns whether one selector permits PSYNC and has all keys. */
static bool
may_replicate(const struct user *user)
{
    if (user == NULL || user->unrestricted) {
        return true;
    }
    for (const struct selector *selector = &user->rules.root; selector != NULL;
         selector = selector->next) {
        if (selector->all_keys && !selector->some_dbs &&
            selector_has_command(selector, CMD_ID_PSYNC)) {
            return true;
        }
    }
    return false;
}

/* Returns whether the client has shown a password or a certificate, or is on
 * this machine. */
static bool
is_vouched_for(const struct session *session)
{
    if (session->user != NULL && !session->user->rules.nopass &&
        session->authenticated) {
        return true;
    }
    return session->conn != NULL && conn_is_near(session->conn);
}

static enum err
check_taker(struct request *req)
{
    const struct session *session = req->session;
    const char *why = NULL;

    if (!req->service->conf->hash_secret_share) {
        why = "hash-secret-share is no";
    } else if (session->introduction == NULL ||
               !session->introduction->is_bloomery || req->worker->in_exec) {
        why = "only servers that replicate get one";
    } else if (!may_replicate(session->user)) {
        why = "the user may not use PSYNC and all keys";
    } else if (!is_vouched_for(session)) {
        why = "log in (masterauth) or show a client certificate";
    }
    return why == NULL ? OK
                       : request_fail(req, ERR_CUSTOM,
                                      "hash secrets are not given: %s", why);
}

/* ---- what it gets -------------------------------------------------------- */

/* Lists fingerprints, from the one with the index `from` on. */
static void
list(struct request *req, uint64_t from)
{
    uint64_t listed[KEYED_MAX];
    size_t count = keyed_list(listed);
    char text[PAGE * (HEX_U64_CHARS + 1) + 1] = "-";
    size_t len = 0;

    for (size_t i = (size_t)from; i < count && i < from + PAGE; i++) {
        if (len > 0) {
            text[len++] = ' ';
        }
        hex_put_u64(text + len, listed[i]);
        len += HEX_U64_CHARS;
        text[len] = '\0';
    }
    reply_simple(req->reply, text);
}

static enum err
give(struct request *req, uint64_t fingerprint)
{
    const struct session *session = req->session;
    uint8_t secret[BLOOM_SECRET_BYTES];
    char peer[CONN_ADDRESS_MAX] = "";
    char digits[DIGITS + 1] = "";

    if (!keyed_reveal(fingerprint, secret)) {
        return request_fail(req, ERR_CUSTOM,
                            "this server does not have that hash secret");
    }
    hex_put_bytes(digits, secret, BLOOM_SECRET_BYTES);
    reply_simple(req->reply, digits);
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(digits, sizeof(digits));
    if (session->conn != NULL) {
        conn_peer_address(session->conn, peer);
    }
    log_notice("command", "gave a hash secret to another server",
               "fingerprint=%016llx peer=\"%s\" user=\"%.*s\" run_id=%s",
               (unsigned long long)fingerprint, peer,
               session->user != NULL ? slice_shown(user_name(session->user))
                                     : 0,
               session->user != NULL ? session->user->name : "",
               session->introduction->run_id);
    return OK;
}

enum err
give_secret(struct request *req)
{
    struct slice word;
    uint64_t number = 0;
    enum err err;

    if (req->argc != WORD_AT + 1) {
        return ERR_SYNTAX;
    }
    word = req->argv[WORD_AT];
    err = check_taker(req);
    if (err != OK) {
        return err;
    }
    if (hex_parse_u64(word, &number)) {
        return give(req, number);
    }
    if (word.len < 1 || word.data[0] != '?' ||
        (word.len > 1 &&
         !slice_to_u64((struct slice){ word.data + 1, word.len - 1 },
                       &number))) {
        return ERR_SYNTAX;
    }
    list(req, number < KEYED_MAX ? number : KEYED_MAX);
    return OK;
}
