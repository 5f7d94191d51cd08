/* SPDX-License-Identifier: BSD-3-Clause
 *
 * OpenSSL reads and writes through a BIO of our own, which works on the
 * arguments of the present call: it copies nothing and keeps nothing. OpenSSL
 * itself keeps at most the part of a record that has come.
 *
 * Every call empties OpenSSL's error queue of the thread, because the queue
 * would otherwise explain the failure of another connection.
 */
#include "tls/tls.h"

#include "base/err.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum {
    TLS_MAGIC = 0x746c7321,
    RECORD_BYTES = 16 * 1024,
    WAITING_KEEP_BYTES = 1024 * 1024,
    /* Measured with OpenSSL 3.0 (tests/unit/tls/test_tls.c): a connection
     * after its handshake, during it, and what a part of a record adds. */
    OPEN_BYTES = 22 * 1024,
    HANDSHAKE_BYTES = 40 * 1024,
    PART_BYTES = 17 * 1024,
};

struct tls {
    unsigned magic;
    SSL *ssl;
    struct slice received; /* during a call: what is not read yet */
    struct buf *sealed;    /* during a call */
    bool failed;
    bool ended, said_end; /* close_notify came; it was sent */
    const char *reason;
};

/* ---- the BIO ------------------------------------------------------------- */

static int
bio_read(BIO *bio, char *to, int size)
{
    struct tls *tls = BIO_get_data(bio);
    size_t len =
        tls->received.len < (size_t)size ? tls->received.len : (size_t)size;

    BIO_clear_retry_flags(bio);
    if (len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(to, tls->received.data, len);
    tls->received.data += len;
    tls->received.len -= len;
    return (int)len;
}

static int
bio_write(BIO *bio, const char *from, int size)
{
    const struct tls *tls = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    buf_append(tls->sealed, from, (size_t)size);
    return tls->sealed->failed ? -1 : size;
}

static long
bio_control(BIO *bio, int command, long number, void *ptr)
{
    (void)bio;
    (void)number;
    (void)ptr;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;

static void
make_bio_method(void)
{
    int type = BIO_get_new_index();

    CHECK(type != -1);
    bio_method = BIO_meth_new(type | BIO_TYPE_SOURCE_SINK, "bloomery");
    CHECK(bio_method != NULL);
    (void)BIO_meth_set_read(bio_method, bio_read);
    (void)BIO_meth_set_write(bio_method, bio_write);
    (void)BIO_meth_set_ctrl(bio_method, bio_control);
}

/* ---- from beginning to end ----------------------------------------------- */

static BIO *
new_bio(struct tls *tls)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    BIO *bio;

    CHECK(pthread_once(&once, make_bio_method) == 0);
    bio = BIO_new(bio_method);
    if (bio != NULL) {
        BIO_set_data(bio, tls);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* Returns a new SSL, which has a reference to one of the contexts, or NULL. */
static SSL *
new_ssl(struct tls_contexts *contexts, SSL_CTX *const *which,
        bool *ret_check_names)
{
    SSL *ssl;

    CHECK(pthread_mutex_lock(&contexts->mutex) == 0);
    ssl = *which != NULL ? SSL_new(*which) : NULL;
    *ret_check_names = contexts->check_names;
    CHECK(pthread_mutex_unlock(&contexts->mutex) == 0);
    return ssl;
}

static struct tls *
new_tls(SSL *ssl)
{
    struct tls *tls = ssl != NULL ? mem_try_zalloc(sizeof(*tls)) : NULL;
    BIO *bio = tls != NULL ? new_bio(tls) : NULL;

    ERR_clear_error();
    if (bio == NULL) {
        SSL_free(ssl);
        mem_free(tls);
        return NULL;
    }
    SSL_set_bio(ssl, bio, bio);
    tls->magic = TLS_MAGIC;
    tls->ssl = ssl;
    return tls;
}

struct tls *
tls_new_server(struct tls_contexts *contexts)
{
    bool check_names;
    struct tls *tls =
        new_tls(new_ssl(contexts, &contexts->server, &check_names));

    if (tls != NULL) {
        SSL_set_accept_state(tls->ssl);
    }
    return tls;
}

/* Tells the server which name was dialled. OpenSSL takes a copy, but asks for
 * bytes that are not const. */
static bool
tell_name(SSL *ssl, const char *host)
{
    char name[TLSEXT_MAXLEN_host_name + 1];
    int len = snprintf(name, sizeof(name), "%s", host);

    return len < (int)sizeof(name) && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/* Says which host the certificate must be for. */
static bool
expect_host(SSL *ssl, const char *host, bool check_name)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool is_address = inet_pton(AF_INET, host, address) == 1 ||
                      inet_pton(AF_INET6, host, address) == 1;

    if (!is_address && !tell_name(ssl, host)) {
        return false;
    }
    if (!check_name) {
        return true;
    }
    if (is_address) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1;
}

struct tls *
tls_new_dial(struct tls_contexts *contexts, const char *host)
{
    bool check_names;
    struct tls *tls = new_tls(new_ssl(contexts, &contexts->dial, &check_names));

    if (tls != NULL && !expect_host(tls->ssl, host, check_names)) {
        ERR_clear_error();
        tls_free(tls);
        return NULL;
    }
    if (tls != NULL) {
        SSL_set_connect_state(tls->ssl);
    }
    return tls;
}

void
tls_free(struct tls *tls)
{
    if (tls != NULL) {
        CHECK(tls->magic == TLS_MAGIC);
        tls->magic = 0;
        SSL_free(tls->ssl);
        mem_free(tls);
    }
}

/* ---- bytes --------------------------------------------------------------- */

static void
begin_call(struct tls *tls, struct slice received, struct buf *sealed)
{
    CHECK(tls->magic == TLS_MAGIC && tls->sealed == NULL);
    tls->received = received;
    tls->sealed = sealed;
    ERR_clear_error();
}

static void
end_call(struct tls *tls)
{
    tls->received = (struct slice){ NULL, 0 };
    tls->sealed = NULL;
    ERR_clear_error();
}

static void
note_failure(struct tls *tls)
{
    long verified = SSL_get_verify_result(tls->ssl);
    const char *why = verified != X509_V_OK
                          ? X509_verify_cert_error_string(verified)
                          : ERR_reason_error_string(ERR_peek_error());

    tls->failed = true;
    tls->reason = why != NULL ? why : "the connection broke";
}

static void
fail_without_memory(struct tls *tls)
{
    tls->failed = true;
    tls->reason = "no memory";
}

/* Reads the next record into `plain`. False: none, or a failure. */
static bool
open_next(struct tls *tls, struct buf *plain)
{
    char *to = buf_reserve(plain, RECORD_BYTES);
    int got;

    if (to == NULL) {
        fail_without_memory(tls);
        return false;
    }
    got = SSL_read(tls->ssl, to, RECORD_BYTES);
    if (got > 0) {
        plain->len += (size_t)got;
        return true;
    }
    switch (SSL_get_error(tls->ssl, got)) {
    case SSL_ERROR_WANT_READ:
        break;
    case SSL_ERROR_ZERO_RETURN:
        tls->ended = true;
        break;
    default:
        note_failure(tls);
        break;
    }
    return false;
}

enum tls_result
tls_open(struct tls *tls, struct slice received, struct buf *plain,
         struct buf *sealed)
{
    if (!tls->failed && !tls->ended) {
        begin_call(tls, received, sealed);
        while (open_next(tls, plain)) {
        }
        if (sealed->failed && !tls->failed) {
            fail_without_memory(tls);
        }
        end_call(tls);
    }
    return tls->failed ? TLS_FAILED : tls->ended ? TLS_ENDED : TLS_MORE;
}

bool
tls_seal(struct tls *tls, struct slice plain, struct buf *sealed)
{
    if (tls->failed || tls->said_end || !tls_is_established(tls)) {
        return false;
    }
    begin_call(tls, (struct slice){ NULL, 0 }, sealed);
    while (plain.len > 0 && !tls->failed) {
        int len = plain.len < INT_MAX ? (int)plain.len : INT_MAX;
        int put = SSL_write(tls->ssl, plain.data, len);

        if (put > 0) {
            plain.data += put;
            plain.len -= (size_t)put;
        } else {
            note_failure(tls);
        }
    }
    end_call(tls);
    return !tls->failed;
}

bool
tls_seal_piece(struct tls *tls, struct buf *waiting, size_t *at, size_t most,
               struct buf *sealed)
{
    struct slice piece = { waiting->data + *at, waiting->len - *at };

    if (piece.len > most) {
        piece.len = most;
    }
    if (piece.len > 0 && !tls_seal(tls, piece, sealed)) {
        return false;
    }
    *at += piece.len;
    if (*at == waiting->len) {
        buf_reset(waiting, WAITING_KEEP_BYTES);
        *at = 0;
    } else if (*at > waiting->len - *at) {
        buf_consume(waiting, *at);
        *at = 0;
    }
    return true;
}

void
tls_end(struct tls *tls, struct buf *sealed)
{
    if (!tls->failed && !tls->said_end && tls_is_established(tls)) {
        begin_call(tls, (struct slice){ NULL, 0 }, sealed);
        (void)SSL_shutdown(tls->ssl);
        end_call(tls);
        tls->said_end = true;
    }
}

/* ---- state --------------------------------------------------------------- */

bool
tls_is_established(const struct tls *tls)
{
    return SSL_is_init_finished(tls->ssl) == 1;
}

bool
tls_has_ended(const struct tls *tls)
{
    return tls->ended;
}

/* The state "RH" means that OpenSSL waits for the header of a record. */
bool
tls_is_inside_record(const struct tls *tls)
{
    return SSL_has_pending(tls->ssl) == 1 ||
           strcmp(SSL_rstate_string(tls->ssl), "RH") != 0;
}

const char *
tls_reason(const struct tls *tls)
{
    return tls->reason;
}

size_t
tls_memory_bytes(const struct tls *tls)
{
    size_t bytes = tls_is_established(tls) ? OPEN_BYTES : HANDSHAKE_BYTES;

    return bytes + (tls_is_inside_record(tls) ? (size_t)PART_BYTES : 0);
}

bool
tls_has_certificate(const struct tls *tls)
{
    X509 *certificate = SSL_get_peer_certificate(tls->ssl);
    bool has = certificate != NULL &&
               SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE &&
               SSL_get_verify_result(tls->ssl) == X509_V_OK;

    X509_free(certificate);
    return has;
}
