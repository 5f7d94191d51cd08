/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A log names a secret where a keyed filter is created, and where a whole keyed
 * filter arrives.
 */
#include "dial/secrets.h"

#include "base/hex.h"
#include "base/log.h"
#include "core/codec.h"
#include "core/keyed.h"
#include "engine/effect_words.h"
#include "engine/logged.h"
#include "persist/hash_secret.h"
#include "persist/learn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAYLOAD_AT = 3 /* of RESTORE and of BF.LOADCHUNK */ };

bool
secrets_wants(uint64_t fingerprint)
{
    return !keyed_is_held(fingerprint);
}

enum replica_learned
secrets_learn(struct persist *persist, uint64_t fingerprint, const char *digits)
{
    uint8_t secret[BLOOM_SECRET_BYTES];
    enum replica_learned learned = REPLICA_NOT_LEARNED;

    if (!hex_get_bytes(slice_of(digits), secret, sizeof(secret)) ||
        keyed_fingerprint_of(secret) != fingerprint) {
        log_warn("server.secrets",
                 "refused a hash secret: it is not that of its fingerprint",
                 "fingerprint=%016" PRIx64, fingerprint);
        return REPLICA_NOT_LEARNED;
    }
    switch (learn_secret(persist, secret)) {
    case LEARN_DONE:
        learned = REPLICA_LEARNED;
        break;
    case LEARN_RUNS:
        learned = REPLICA_LEARNING;
        break;
    case LEARN_FAILED:
        break;
    }
    explicit_bzero(secret, sizeof(secret));
    return learned;
}

bool
secrets_reload(struct persist *persist)
{
    unsigned added = hash_secret_read_others(persist);

    if (added > 0) {
        log_notice("server.secrets", "read hash secrets", "new=%u", added);
    }
    return added > 0;
}

/* ---- what a group needs -------------------------------------------------- */

/* Returns whether a group may need a secret: most groups have none of these
 * words. The second begins a filter in our own form (core/codec.h), whatever
 * the command's name looks like: a client chooses its letters' case. */
static bool
may_need(struct slice commands)
{
    static const char *const words[] = { "FINGERPRINT", "BLMY" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (memmem(commands.data, commands.len, words[i], strlen(words[i])) !=
            NULL) {
            return true;
        }
    }
    return false;
}

/* Returns the fingerprint that a command names; 0: none. */
static uint64_t
named(const struct logged *logged)
{
    const struct slice *argv = logged->argv;
    struct codec_head head;
    uint64_t fingerprint = 0;

    switch (logged->kind) {
    case LOGGED_INSERT: {
        size_t at = insert_words_of(argv, logged->argc).fingerprint;

        return at > 0 && hex_parse_u64(argv[at], &fingerprint) ? fingerprint
                                                               : 0;
    }
    case LOGGED_MAKE:
    case LOGGED_CHUNK:
        return logged->argc > PAYLOAD_AT &&
                       codec_read_head(argv[PAYLOAD_AT].data,
                                       argv[PAYLOAD_AT].len, &head) == BLOOM_OK
                   ? head.params.fingerprint
                   : 0;
    default:
        return 0;
    }
}

bool
secrets_are_missing(struct slice commands, char *ret_reason, size_t reason_size)
{
    struct logged_reader reader = { 0 };
    struct logged logged;
    uint64_t missing = 0;

    if (!may_need(commands)) {
        return false;
    }
    logged_begin(&reader, commands);
    while (missing == 0 && logged_next(&reader, &logged)) {
        uint64_t fingerprint = named(&logged);

        missing =
            fingerprint != 0 && !keyed_is_held(fingerprint) ? fingerprint : 0;
    }
    logged_fini(&reader); /* the executor says what is wrong with the bytes */
    if (missing != 0) {
        (void)snprintf(ret_reason, reason_size,
                       "the log needs the hash secret of fingerprint "
                       "%016" PRIx64 ", which is not here (hash-secret-file)",
                       missing);
    }
    return missing != 0;
}
