/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/own_tls.h"

#include "conf/conf_tls.h"
#include "server/server_state.h"

#include <string.h>

/* Whether the server listens for TLS, and whether it dials its neighbour by
 * TLS, is fixed at the start; the other settings are those of conf. */
static struct tls_settings
settings_of(const struct server *server, const struct conf *conf)
{
    struct tls_settings settings =
        conf_tls_settings(conf, server->conf.tls_port > 0);

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
