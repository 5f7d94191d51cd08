/* SPDX-License-Identifier: BSD-3-Clause */
#include "certs.h"

#include "../test.h"
#include "tls/tls_context.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { YEAR_S = 365 * 24 * 3600 };

static struct certs certs;

/* A name, and what signs it. */
struct made {
    X509 *cert;
    EVP_PKEY *key;
};

static void
add_extension(X509 *cert, X509 *issuer, int kind, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX ctx;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &ctx, kind, value);
    assert_non_null(extension);
    assert_int_equal(1, X509_add_ext(cert, extension, -1));
    X509_EXTENSION_free(extension);
}

/* Signed by `by`, or by itself if that is NULL; valid for `seconds` from a day
 * ago. */
static struct made
make(const char *name, const struct made *by, long seconds)
{
    static long serial;
    struct made made = { X509_new(), EVP_EC_gen("P-256") };
    X509 *issuer = by != NULL ? by->cert : made.cert;
    X509_NAME *subject;

    assert_non_null(made.key);
    (void)X509_set_version(made.cert, 2);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(made.cert), ++serial);
    (void)X509_gmtime_adj(X509_getm_notBefore(made.cert), -24 * 3600);
    (void)X509_gmtime_adj(X509_getm_notAfter(made.cert), seconds);
    subject = X509_get_subject_name(made.cert);
    (void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                     (const unsigned char *)name, -1, -1, 0);
    (void)X509_set_issuer_name(made.cert, X509_get_subject_name(issuer));
    (void)X509_set_pubkey(made.cert, made.key);
    if (by == NULL) {
        add_extension(made.cert, issuer, NID_basic_constraints,
                      "critical,CA:TRUE");
    } else {
        add_extension(made.cert, issuer, NID_subject_alt_name,
                      "DNS:localhost,IP:127.0.0.1");
    }
    assert_true(X509_sign(made.cert, by != NULL ? by->key : made.key,
                          EVP_sha256()) > 0);
    return made;
}

static void
write_made(char *ret_path, const char *name, const struct made *made,
           bool with_key)
{
    FILE *file;

    (void)snprintf(ret_path, 96, "%s/%s.pem", certs.dir, name);
    file = fopen(ret_path, "w");
    assert_non_null(file);
    assert_int_equal(1, PEM_write_X509(file, made->cert));
    if (with_key) {
        assert_int_equal(1, PEM_write_PrivateKey(file, made->key, NULL, NULL, 0,
                                                 NULL, NULL));
    }
    assert_int_equal(0, fclose(file));
}

static void
write_locked(const struct made *made)
{
    FILE *file;

    write_made(certs.locked, "locked", made, false);
    (void)snprintf(certs.locked_key, sizeof(certs.locked_key), "%s/locked.key",
                   certs.dir);
    file = fopen(certs.locked_key, "w");
    assert_non_null(file);
    assert_int_equal(1, PEM_write_PKCS8PrivateKey(
                            file, made->key, EVP_aes_128_cbc(), LOCKED_PASSWORD,
                            (int)strlen(LOCKED_PASSWORD), NULL, NULL));
    assert_int_equal(0, fclose(file));
}

static void
remove_all(void)
{
    (void)unlink(certs.ca);
    (void)unlink(certs.other_ca);
    (void)unlink(certs.server);
    (void)unlink(certs.client);
    (void)unlink(certs.stale);
    (void)unlink(certs.stranger);
    (void)unlink(certs.locked);
    (void)unlink(certs.locked_key);
    (void)rmdir(certs.dir);
}

static void
free_made(struct made *made)
{
    X509_free(made->cert);
    EVP_PKEY_free(made->key);
}

const struct certs *
certs_get(void)
{
    struct made ca, other, made;

    if (certs.dir[0] != '\0') {
        return &certs;
    }
    (void)snprintf(certs.dir, sizeof(certs.dir), "/tmp/bloomery-certs-XXXXXX");
    assert_non_null(mkdtemp(certs.dir));
    (void)atexit(remove_all);
    ca = make("authority", NULL, YEAR_S);
    other = make("another authority", NULL, YEAR_S);
    write_made(certs.ca, "ca", &ca, false);
    write_made(certs.other_ca, "other", &other, false);
    made = make("server", &ca, YEAR_S);
    write_made(certs.server, "server", &made, true);
    write_locked(&made);
    free_made(&made);
    made = make("client", &ca, YEAR_S);
    write_made(certs.client, "client", &made, true);
    free_made(&made);
    made = make("stale", &ca, -3600);
    write_made(certs.stale, "stale", &made, true);
    free_made(&made);
    made = make("stranger", &other, YEAR_S);
    write_made(certs.stranger, "stranger", &made, true);
    free_made(&made);
    free_made(&ca);
    free_made(&other);
    return &certs;
}

struct tls_settings
certs_settings(void)
{
    const struct certs *all = certs_get();
    struct tls_settings settings = tls_settings_of_client;

    settings.cert_file = settings.key_file = all->server;
    settings.client_cert_file = settings.client_key_file = all->client;
    settings.ca_cert_file = all->ca;
    settings.auth_clients = TLS_AUTH_YES;
    settings.session_caching = true;
    settings.session_cache_size = 100;
    settings.session_cache_timeout_s = 300;
    settings.serves = true;
    settings.known_authorities = false;
    return settings;
}

void
certs_load(struct tls_contexts *contexts, const struct tls_settings *settings)
{
    char reason[TLS_REASON_MAX] = "";

    if (!tls_contexts_load(contexts, settings, reason)) {
        fail_msg("%s", reason);
    }
}
