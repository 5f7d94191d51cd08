/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a load refuses, and that it says why and changes nothing.
 */
#include "tls/tls_context.h"

#include "../test.h"
#include "certs.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void
expect_refused(const struct tls_settings *settings, const char *text)
{
    struct tls_contexts contexts;
    struct tls_settings good = certs_settings();
    const struct ssl_ctx_st *server, *dial;
    char reason[TLS_REASON_MAX] = "";

    tls_contexts_init(&contexts);
    assert_false(tls_contexts_load(&contexts, settings, reason));
    if (strstr(reason, text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, reason);
    }
    assert_null(contexts.server);
    certs_load(&contexts, &good);
    server = contexts.server;
    dial = contexts.dial;
    assert_false(tls_contexts_load(&contexts, settings, reason));
    assert_ptr_equal(server, contexts.server);
    assert_ptr_equal(dial, contexts.dial);
    assert_int_equal(0, ERR_peek_error());
    tls_contexts_fini(&contexts);
}

TEST(a_load_replaces_both_contexts)
{
    struct tls_contexts contexts;
    struct tls_settings settings = certs_settings();
    const struct ssl_ctx_st *server, *dial;

    tls_contexts_init(&contexts);
    certs_load(&contexts, &settings);
    server = contexts.server;
    dial = contexts.dial;
    settings.auth_clients = TLS_AUTH_NO;
    settings.session_caching = false;
    settings.prefer_server_ciphers = true;
    settings.protocols = "TLSv1.3";
    settings.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";
    settings.ciphersuites = "TLS_AES_128_GCM_SHA256";
    certs_load(&contexts, &settings);
    assert_ptr_not_equal(server, contexts.server);
    assert_ptr_not_equal(dial, contexts.dial);
    tls_contexts_fini(&contexts);
}

TEST(the_validity_is_that_of_the_certificates_in_use)
{
    struct tls_validity all[TLS_CERTIFICATE_COUNT];
    struct tls_settings settings = certs_settings();
    struct tls_contexts contexts;
    uint64_t now_s = (uint64_t)time(NULL);

    tls_contexts_init(&contexts);
    tls_contexts_validity(&contexts, all);
    for (unsigned i = 0; i < TLS_CERTIFICATE_COUNT; i++) {
        assert_string_equal("", all[i].serial);
        assert_int_equal(0, all[i].until_s);
    }
    certs_load(&contexts, &settings);
    tls_contexts_validity(&contexts, all);
    for (unsigned i = 0; i < TLS_CERTIFICATE_COUNT; i++) {
        assert_true(all[i].serial[0] != '\0');
        assert_true(all[i].until_s > now_s);
    }
    tls_contexts_fini(&contexts);
}

TEST(a_missing_certificate_is_named)
{
    struct tls_settings settings = certs_settings();

    settings.cert_file = "";
    expect_refused(&settings, "tls-cert-file is not set");
    settings.cert_file = "/nowhere/x.pem";
    expect_refused(&settings, "tls-cert-file \"/nowhere/x.pem\": No such file");
    settings = certs_settings();
    settings.key_file = "";
    expect_refused(&settings, "tls-key-file is not");
    settings.key_file = "/nowhere/x.key";
    expect_refused(&settings, "tls-key-file \"/nowhere/x.key\": No such file");
    settings = certs_settings();
    settings.client_cert_file = "/nowhere/y.pem";
    expect_refused(&settings, "tls-client-cert-file \"/nowhere/y.pem\"");
}

TEST(a_key_of_another_certificate_is_refused)
{
    struct tls_settings settings = certs_settings();

    settings.key_file = certs_get()->client;
    expect_refused(&settings, "key values mismatch");
}

TEST(a_file_that_holds_no_certificate_is_refused)
{
    struct tls_settings settings = certs_settings();

    settings.cert_file = certs_get()->locked_key;
    expect_refused(&settings, "tls-cert-file");
    settings = certs_settings();
    settings.ca_cert_file = certs_get()->locked_key;
    expect_refused(&settings, "tls-ca-cert-file");
}

TEST(a_locked_key_needs_its_password)
{
    struct tls_settings settings = certs_settings();
    struct tls_contexts contexts;

    settings.cert_file = certs_get()->locked;
    settings.key_file = certs_get()->locked_key;
    expect_refused(&settings, "tls-key-file");
    settings.key_file_pass = "wrong";
    expect_refused(&settings, "tls-key-file");
    settings.key_file_pass = LOCKED_PASSWORD;
    tls_contexts_init(&contexts);
    certs_load(&contexts, &settings);
    tls_contexts_fini(&contexts);
}

TEST(clients_cannot_be_checked_without_an_authority)
{
    struct tls_settings settings = certs_settings();

    settings.ca_cert_file = "";
    expect_refused(&settings, "tls-auth-clients needs tls-ca-cert-file");
    settings.ca_cert_file = "/nowhere/ca.pem";
    expect_refused(&settings, "tls-ca-cert-file \"/nowhere/ca.pem\"");
}

TEST(a_side_that_is_not_wanted_is_not_loaded)
{
    struct tls_settings settings = certs_settings();
    struct tls_contexts contexts;

    tls_contexts_init(&contexts);
    settings.serves = false;
    settings.cert_file = "";
    certs_load(&contexts, &settings);
    assert_null(contexts.server);
    assert_non_null(contexts.dial);
    settings = certs_settings();
    settings.dials = false;
    settings.client_cert_file = "/nowhere/y.pem";
    certs_load(&contexts, &settings);
    assert_non_null(contexts.server);
    assert_null(contexts.dial);
    tls_contexts_fini(&contexts);
}

TEST(a_side_that_dials_needs_an_authority)
{
    struct tls_settings settings = certs_settings();

    settings.ca_cert_file = "";
    settings.auth_clients = TLS_AUTH_NO;
    expect_refused(&settings, "tls-replication needs tls-ca-cert-file");
}

TEST(old_protocols_and_unknown_ciphers_are_refused)
{
    struct tls_settings settings = certs_settings();
    char reason[TLS_REASON_MAX];

    settings.protocols = "TLSv1.1 TLSv1.2";
    expect_refused(&settings, "\"TLSv1.1\" is not TLSv1.2 or TLSv1.3");
    settings.protocols = " ";
    expect_refused(&settings, "names no protocol");
    settings = certs_settings();
    settings.ciphers = "NO-SUCH-CIPHER";
    expect_refused(&settings, "tls-ciphers \"NO-SUCH-CIPHER\"");
    settings = certs_settings();
    settings.ciphersuites = "TLS_NOTHING";
    expect_refused(&settings, "tls-ciphersuites \"TLS_NOTHING\"");
    settings.serves = settings.dials = false;
    assert_false(tls_settings_check(&settings, reason));
    assert_non_null(strstr(reason, "tls-ciphersuites \"TLS_NOTHING\""));
    settings.ciphersuites = "";
    settings.cert_file = "/none";
    assert_true(tls_settings_check(&settings, reason));
}
