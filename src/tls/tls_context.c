/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls/tls_context.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/slice.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

const struct tls_settings tls_settings_of_client = {
    .cert_file = "",
    .key_file = "",
    .key_file_pass = "",
    .client_cert_file = "",
    .client_key_file = "",
    .client_key_file_pass = "",
    .ca_cert_file = "",
    .ca_cert_dir = "",
    .protocols = "",
    .ciphers = "",
    .ciphersuites = "",
    .dials = true,
    .check_names = true,
    .known_authorities = true,
};

/* ---- memory -------------------------------------------------------------- */

static void *
ssl_alloc(size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    return bytes > 0 ? mem_try_alloc(bytes) : NULL;
}

static void
ssl_free(void *ptr, const char *file, int line)
{
    (void)file;
    (void)line;
    mem_free(ptr);
}

static void *
ssl_resize(void *ptr, size_t bytes, const char *file, int line)
{
    if (bytes == 0) {
        ssl_free(ptr, file, line);
        return NULL;
    }
    return mem_try_realloc(ptr, bytes);
}

void
tls_use_mem(void)
{
    CHECK(CRYPTO_set_mem_functions(ssl_alloc, ssl_resize, ssl_free) == 1);
}

/* ---- loading ------------------------------------------------------------- */

/* The state of a load: what it reads, and where it writes what is wrong. */
struct load {
    const struct tls_settings *settings;
    SSL_CTX *ctx;
    const char *password; /* of the key that is read next */
    char *reason;
};

__attribute__((format(printf, 2, 3))) static bool
fail(struct load *load, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(load->reason, TLS_REASON_MAX, format, args);
    va_end(args);
    ERR_clear_error();
    return false;
}

/* Fails with the text of OpenSSL's first error, which may be one of errno. */
static bool
fail_file(struct load *load, const char *option, const char *file)
{
    unsigned long code = ERR_peek_error();
    const char *why = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code))
                                             : ERR_reason_error_string(code);

    return fail(load, "%s \"%s\": %s", option, file,
                why != NULL ? why : "not usable");
}

/* OpenSSL asks for the password of a key. Without one the key is refused;
 * OpenSSL's own function would ask on the terminal. */
static int
give_password(char *to, int size, int writing, void *ctx)
{
    const struct load *load = ctx;
    size_t len = strlen(load->password);

    (void)writing;
    if (len == 0 || len > (size_t)size) {
        return -1;
    }
    memcpy(to, load->password, len);
    return (int)len;
}

/* One certificate with its key, and the options that named them. */
struct identity {
    const char *cert_option, *cert_file;
    const char *key_option, *key_file, *password;
};

static bool
use_identity(struct load *load, const struct identity *identity)
{
    bool has_key;

    if (SSL_CTX_use_certificate_chain_file(load->ctx, identity->cert_file) !=
        1) {
        return fail_file(load, identity->cert_option, identity->cert_file);
    }
    if (identity->key_file[0] == '\0') {
        return fail(load, "%s is set, but %s is not", identity->cert_option,
                    identity->key_option);
    }
    load->password = identity->password;
    SSL_CTX_set_default_passwd_cb(load->ctx, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(load->ctx, load);
    has_key = SSL_CTX_use_PrivateKey_file(load->ctx, identity->key_file,
                                          SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(load->ctx, NULL);
    if (!has_key) {
        return fail_file(load, identity->key_option, identity->key_file);
    }
    return true;
}

static bool
names_authorities(const struct tls_settings *settings)
{
    return settings->ca_cert_file[0] != '\0' ||
           settings->ca_cert_dir[0] != '\0';
}

/* Trusts the authorities of the machine, where OpenSSL and distributions have
 * them: an OpenSSL that was built elsewhere may look elsewhere. With none of
 * these, no server is trusted. */
static void
use_known_authorities(const struct load *load)
{
    static const char *const files[] = {
        "/etc/pki/tls/certs/ca-bundle.crt", /* Fedora, RHEL */
        "/etc/ssl/cert.pem"                 /* Alpine */
    };

    (void)SSL_CTX_set_default_verify_paths(load->ctx);
    (void)SSL_CTX_load_verify_dir(load->ctx, "/etc/ssl/certs");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (access(files[i], R_OK) == 0) {
            (void)SSL_CTX_load_verify_file(load->ctx, files[i]);
        }
    }
    ERR_clear_error();
}

/* Reads the authorities. A server also tells clients those of the file. */
static bool
use_authorities(struct load *load, bool serves)
{
    const struct tls_settings *settings = load->settings;
    const char *file = settings->ca_cert_file;
    const char *dir = settings->ca_cert_dir;
    STACK_OF(X509_NAME) * names;

    if (!serves && !names_authorities(settings)) {
        use_known_authorities(load);
    }
    if (file[0] != '\0' && SSL_CTX_load_verify_file(load->ctx, file) != 1) {
        return fail_file(load, "tls-ca-cert-file", file);
    }
    if (dir[0] != '\0' && SSL_CTX_load_verify_dir(load->ctx, dir) != 1) {
        return fail_file(load, "tls-ca-cert-dir", dir);
    }
    if (!serves || file[0] == '\0') {
        return true;
    }
    names = SSL_load_client_CA_file(file);
    if (names == NULL) {
        return fail_file(load, "tls-ca-cert-file", file);
    }
    SSL_CTX_set_client_CA_list(load->ctx, names);
    return true;
}

static bool
use_protocols(struct load *load)
{
    struct slice rest = slice_of(load->settings->protocols);
    struct slice word;
    bool tls2 = rest.len == 0, tls3 = tls2;

    while (slice_next_word(&rest, &word)) {
        if (slice_is_word(word, "TLSv1.2")) {
            tls2 = true;
        } else if (slice_is_word(word, "TLSv1.3")) {
            tls3 = true;
        } else {
            return fail(load,
                        "tls-protocols: \"%.*s\" is not TLSv1.2 or TLSv1.3",
                        slice_shown(word), word.data);
        }
    }
    if (!tls2 && !tls3) {
        return fail(load, "tls-protocols names no protocol");
    }
    CHECK(SSL_CTX_set_min_proto_version(load->ctx, tls2 ? TLS1_2_VERSION
                                                        : TLS1_3_VERSION) == 1);
    CHECK(SSL_CTX_set_max_proto_version(load->ctx, tls3 ? TLS1_3_VERSION
                                                        : TLS1_2_VERSION) == 1);
    return true;
}

static bool
use_ciphers(struct load *load)
{
    const struct tls_settings *settings = load->settings;

    if (settings->ciphers[0] != '\0' &&
        SSL_CTX_set_cipher_list(load->ctx, settings->ciphers) != 1) {
        return fail_file(load, "tls-ciphers", settings->ciphers);
    }
    if (settings->ciphersuites[0] != '\0' &&
        SSL_CTX_set_ciphersuites(load->ctx, settings->ciphersuites) != 1) {
        return fail_file(load, "tls-ciphersuites", settings->ciphersuites);
    }
    return true;
}

static void
use_sessions(const struct load *load)
{
    static const unsigned char context[] = "bloomery";
    const struct tls_settings *settings = load->settings;
    uint64_t most = settings->session_cache_size;

    if (!settings->session_caching) {
        (void)SSL_CTX_set_session_cache_mode(load->ctx, SSL_SESS_CACHE_OFF);
        (void)SSL_CTX_set_options(load->ctx, SSL_OP_NO_TICKET);
        (void)SSL_CTX_set_num_tickets(load->ctx, 0);
        return;
    }
    (void)SSL_CTX_set_session_cache_mode(load->ctx, SSL_SESS_CACHE_SERVER);
    (void)SSL_CTX_sess_set_cache_size(load->ctx,
                                      most < LONG_MAX ? (long)most : LONG_MAX);
    (void)SSL_CTX_set_timeout(load->ctx,
                              (long)settings->session_cache_timeout_s);
    CHECK(SSL_CTX_set_session_id_context(load->ctx, context,
                                         sizeof(context) - 1) == 1);
}

static SSL_CTX *
new_context(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);

    if (ctx != NULL) {
        (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
                                           SSL_OP_NO_COMPRESSION);
        /* An encrypted record that could not be sent yet may have moved in
         * memory before the next try. Idle connections keep no buffers. */
        (void)SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
        (void)SSL_CTX_set_dh_auto(ctx, 1);
    }
    return ctx;
}

static const int verify_modes[] = {
    [TLS_AUTH_NO] = SSL_VERIFY_NONE,
    [TLS_AUTH_OPTIONAL] = SSL_VERIFY_PEER,
    [TLS_AUTH_YES] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
};

static bool
load_server(struct load *load)
{
    const struct tls_settings *settings = load->settings;
    const struct identity identity = {
        .cert_option = "tls-cert-file",
        .cert_file = settings->cert_file,
        .key_option = "tls-key-file",
        .key_file = settings->key_file,
        .password = settings->key_file_pass,
    };

    if (settings->cert_file[0] == '\0') {
        return fail(load, "tls-cert-file is not set");
    }
    if (settings->auth_clients != TLS_AUTH_NO && !names_authorities(settings)) {
        return fail(load, "tls-auth-clients needs tls-ca-cert-file or "
                          "tls-ca-cert-dir");
    }
    load->ctx = new_context(TLS_server_method());
    if (load->ctx == NULL) {
        return fail(load, "no memory for TLS");
    }
    if (settings->prefer_server_ciphers) {
        (void)SSL_CTX_set_options(load->ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    }
    SSL_CTX_set_verify(load->ctx, verify_modes[settings->auth_clients], NULL);
    use_sessions(load);
    return use_identity(load, &identity) && use_authorities(load, true) &&
           use_protocols(load) && use_ciphers(load);
}

static bool
load_dial(struct load *load)
{
    const struct tls_settings *settings = load->settings;
    bool own = settings->client_cert_file[0] != '\0';
    const struct identity identity = {
        .cert_option = own ? "tls-client-cert-file" : "tls-cert-file",
        .cert_file = own ? settings->client_cert_file : settings->cert_file,
        .key_option = own ? "tls-client-key-file" : "tls-key-file",
        .key_file = own ? settings->client_key_file : settings->key_file,
        .password =
            own ? settings->client_key_file_pass : settings->key_file_pass,
    };

    if (!names_authorities(settings) && !settings->known_authorities) {
        return fail(load, "tls-replication needs tls-ca-cert-file or "
                          "tls-ca-cert-dir");
    }
    load->ctx = new_context(TLS_client_method());
    if (load->ctx == NULL) {
        return fail(load, "no memory for TLS");
    }
    SSL_CTX_set_verify(load->ctx, SSL_VERIFY_PEER, NULL);
    if (settings->partial_chains) {
        (void)X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(load->ctx),
                                          X509_V_FLAG_PARTIAL_CHAIN);
    }
    return (identity.cert_file[0] == '\0' || use_identity(load, &identity)) &&
           use_authorities(load, false) && use_protocols(load) &&
           use_ciphers(load);
}

bool
tls_settings_check(const struct tls_settings *settings,
                   char ret_reason[TLS_REASON_MAX])
{
    struct load load = { .settings = settings, .reason = ret_reason };
    bool good;

    ret_reason[0] = '\0';
    ERR_clear_error();
    load.ctx = new_context(TLS_method());
    good = load.ctx != NULL ? use_protocols(&load) && use_ciphers(&load)
                            : fail(&load, "no memory for TLS");
    SSL_CTX_free(load.ctx);
    return good;
}

bool
tls_contexts_load(struct tls_contexts *contexts,
                  const struct tls_settings *settings,
                  char ret_reason[TLS_REASON_MAX])
{
    struct load server = { .settings = settings, .reason = ret_reason };
    struct load dial = server;
    SSL_CTX *old_server, *old_dial;

    ret_reason[0] = '\0';
    ERR_clear_error();
    if ((settings->serves && !load_server(&server)) ||
        (settings->dials && !load_dial(&dial))) {
        SSL_CTX_free(server.ctx);
        SSL_CTX_free(dial.ctx);
        return false;
    }
    CHECK(pthread_mutex_lock(&contexts->mutex) == 0);
    old_server = contexts->server;
    old_dial = contexts->dial;
    contexts->server = server.ctx;
    contexts->dial = dial.ctx;
    contexts->check_names = settings->check_names;
    CHECK(pthread_mutex_unlock(&contexts->mutex) == 0);
    SSL_CTX_free(old_server);
    SSL_CTX_free(old_dial);
    return true;
}

/* ---- validity ------------------------------------------------------------ */

const char *
tls_certificate_name(enum tls_certificate certificate)
{
    static const char *const names[TLS_CERTIFICATE_COUNT] = {
        [TLS_SERVER_CERTIFICATE] = "server",
        [TLS_CLIENT_CERTIFICATE] = "client",
        [TLS_AUTHORITY] = "ca",
    };

    return names[certificate];
}

static void
describe_certificate(X509 *certificate, struct tls_validity *ret_validity)
{
    BIGNUM *number = NULL;
    char *digits = NULL;
    struct tm until;

    if (certificate == NULL ||
        ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until) != 1) {
        return;
    }
    number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    digits = number != NULL ? BN_bn2hex(number) : NULL;
    if (digits != NULL) {
        time_t seconds = timegm(&until);

        (void)snprintf(ret_validity->serial, TLS_SERIAL_MAX, "%s", digits);
        ret_validity->until_s = seconds > 0 ? (uint64_t)seconds : 0;
    }
    OPENSSL_free(digits);
    BN_free(number);
}

/* Describes the context's authority whose certificate expires first. */
static void
describe_authority(SSL_CTX *ctx, struct tls_validity *ret_validity)
{
    STACK_OF(X509_OBJECT) *all =
        X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
    X509 *first = NULL;

    /* The lock is needed: a handshake on another thread may add authorities
     * from tls-ca-cert-dir. */
    (void)X509_STORE_lock(SSL_CTX_get_cert_store(ctx));
    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        X509 *each = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));

        if (each != NULL &&
            (first == NULL ||
             ASN1_TIME_compare(X509_get0_notAfter(each),
                               X509_get0_notAfter(first)) < 0)) {
            first = each;
        }
    }
    describe_certificate(first, ret_validity);
    (void)X509_STORE_unlock(SSL_CTX_get_cert_store(ctx));
}

void
tls_contexts_validity(struct tls_contexts *contexts,
                      struct tls_validity ret_all[TLS_CERTIFICATE_COUNT])
{
    SSL_CTX *any;

    memset(ret_all, 0, TLS_CERTIFICATE_COUNT * sizeof(*ret_all));
    CHECK(pthread_mutex_lock(&contexts->mutex) == 0);
    any = contexts->server != NULL ? contexts->server : contexts->dial;
    if (contexts->server != NULL) {
        describe_certificate(SSL_CTX_get0_certificate(contexts->server),
                             &ret_all[TLS_SERVER_CERTIFICATE]);
    }
    if (contexts->dial != NULL) {
        describe_certificate(SSL_CTX_get0_certificate(contexts->dial),
                             &ret_all[TLS_CLIENT_CERTIFICATE]);
    }
    if (any != NULL) {
        describe_authority(any, &ret_all[TLS_AUTHORITY]);
    }
    CHECK(pthread_mutex_unlock(&contexts->mutex) == 0);
}

void
tls_contexts_init(struct tls_contexts *contexts)
{
    *contexts = (struct tls_contexts){ .server = NULL };
    CHECK(pthread_mutex_init(&contexts->mutex, NULL) == 0);
}

void
tls_end_thread(void)
{
    OPENSSL_thread_stop();
}

void
tls_contexts_fini(struct tls_contexts *contexts)
{
    SSL_CTX_free(contexts->server);
    SSL_CTX_free(contexts->dial);
    (void)pthread_mutex_destroy(&contexts->mutex);
}
