/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf/conf_tls.h"

#include "conf/conf.h"

struct tls_settings
conf_tls_settings(const struct conf *conf, bool serves)
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
