/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/own_tls.h"

#include "server/server_state.h"

#include <string.h>

struct tls_settings
own_tls_settings(const struct conf *conf, bool serves)
{
    return (struct tls_settings){
        .cert_file = conf->tls_cert_file,
        .key_file = conf->tls_key_file,
        .key_file_pass = conf->tls_key_file_pass,
        .client_cert_file = conf->tls_client_cert_file,
        .client_key_file = conf->tls_client_key_file,
        .client_key_file_pass = conf->tls_client_key_file_pass,
        .ca_cert_file = conf->tls_ca_cert_file,
        .ca_cert_dir = conf->tls_ca_cert_dir,
        .protocols = conf->tls_protocols,
        .ciphers = conf->tls_ciphers,
        .ciphersuites = conf->tls_ciphersuites,
        .auth_clients = (enum tls_auth)conf->tls_auth_clients,
        .prefer_server_ciphers = conf->tls_prefer_server_ciphers,
        .session_caching = conf->tls_session_caching,
        .session_cache_size = (uint64_t)conf->tls_session_cache_size,
        .session_cache_timeout_s = (uint64_t)conf->tls_session_cache_timeout,
        .serves = serves,
        .dials = conf->tls_replication || conf->sidecar_tls,
        .check_names = conf->tls_check_names,
    };
}

/* Whether it listens for TLS, or dials its neighbour, is fixed at the start. */
static struct tls_settings
settings_of(const struct server *server, const struct conf *conf)
{
    struct tls_settings settings =
        own_tls_settings(conf, server->conf.tls_port > 0);

    settings.dials = conf->tls_replication || server->conf.sidecar_tls;
    return settings;
}

bool
own_tls_load(struct server *server, const struct conf *conf,
             char ret_reason[TLS_REASON_MAX])
{
    const struct tls_settings settings = settings_of(server, conf);

    return (!settings.serves && !settings.dials) ||
           tls_contexts_load(&server->tls, &settings, ret_reason);
}

bool
own_tls_change(void *ctx, const struct conf *conf,
               const struct conf_changes *changes,
               char ret_reason[TLS_REASON_MAX])
{
    for (unsigned i = 0; i < CONF_OPTION_COUNT; i++) {
        if (changes->changed[i] && strcmp(conf_table[i].section, "tls") == 0) {
            const struct tls_settings settings = settings_of(ctx, conf);

            return settings.serves || settings.dials
                       ? own_tls_load(ctx, conf, ret_reason)
                       : tls_settings_check(&settings, ret_reason);
        }
    }
    return true;
}
