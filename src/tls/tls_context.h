/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all TLS connections share: certificates, private keys, authorities,
 * protocols and ciphers, as contexts of OpenSSL: one for each side that the
 * settings want. A load replaces both or, if anything is wrong, neither;
 * connections that are open keep the context that they began with.
 * tls_contexts_load and the functions that make a struct tls (tls/tls.h) may
 * run on any threads at the same time.
 *
 * TLS 1.2 is the oldest protocol. Renegotiation is off.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum tls_auth { TLS_AUTH_NO, TLS_AUTH_OPTIONAL, TLS_AUTH_YES };

enum { TLS_REASON_MAX = 512 };

/* The values of the options tls-*. Texts are borrowed; "" means none. */
struct tls_settings {
    const char *cert_file, *key_file, *key_file_pass;
    /* For the side that dials; "": as the three above. */
    const char *client_cert_file, *client_key_file, *client_key_file_pass;
    const char *ca_cert_file, *ca_cert_dir;
    const char *protocols; /* "TLSv1.2 TLSv1.3"; "": both */
    const char *ciphers, *ciphersuites;
    enum tls_auth auth_clients;
    bool prefer_server_ciphers;
    bool session_caching;
    uint64_t session_cache_size, session_cache_timeout_s;
    bool serves, dials;  /* which of the two sides are wanted */
    bool check_names;    /* a dialled server's certificate must be for its
                            host */
    bool partial_chains; /* a server's certificate may itself be in ca_cert_file
                          */
    bool known_authorities; /* without ca_cert_file and ca_cert_dir, the
                               dialling side trusts those of the machine */
};

/* The settings of a program that only dials: all texts are empty, names are
 * checked, and the authorities of the machine are trusted. */
extern const struct tls_settings tls_settings_of_client;

struct ssl_ctx_st;

struct tls_contexts {
    pthread_mutex_t mutex;            /* a leaf; guards what is below */
    struct ssl_ctx_st *server, *dial; /* NULL: not loaded */
    bool check_names;
};

enum tls_certificate {
    TLS_SERVER_CERTIFICATE,
    TLS_CLIENT_CERTIFICATE, /* of the side that dials */
    TLS_AUTHORITY,          /* the trusted authority that expires first */
    TLS_CERTIFICATE_COUNT
};

enum { TLS_SERIAL_MAX = 64 };

/* A certificate in use. */
struct tls_validity {
    char serial[TLS_SERIAL_MAX]; /* in hexadecimal digits; "": there is none */
    uint64_t until_s;            /* UNIX time */
};

/* Makes OpenSSL allocate through base/mem.h. Call it before any other function
 * of OpenSSL. */
void tls_use_mem(void);

/* Frees what OpenSSL keeps for the calling thread: for a process that exits
 * without waiting for the thread's end. */
void tls_end_thread(void);

void tls_contexts_init(struct tls_contexts *contexts);
void tls_contexts_fini(struct tls_contexts *contexts);

/* Returns whether the protocols and ciphers exist. Reads no files: it is for
 * settings that neither serve nor dial yet. */
bool tls_settings_check(const struct tls_settings *settings,
                        char ret_reason[TLS_REASON_MAX]);

/* Returns "server", "client" or "ca". */
const char *tls_certificate_name(enum tls_certificate certificate);

/* Returns until when the certificates in use are valid. */
void tls_contexts_validity(struct tls_contexts *contexts,
                           struct tls_validity ret_all[TLS_CERTIFICATE_COUNT]);

/* Reads the files and replaces the contexts. On failure returns false with a
 * reason that names the option and its file, and changes nothing. */
bool tls_contexts_load(struct tls_contexts *contexts,
                       const struct tls_settings *settings,
                       char ret_reason[TLS_REASON_MAX]);
