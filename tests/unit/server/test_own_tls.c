/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS options in force: loaded as a whole or not at all.
 */
#include "server/own_tls.h"

#include "../capture.h"
#include "../tls/certs.h"
#include "base/mem.h"
#include "server/server_state.h"

static void
set(struct conf *conf, const char *name, const char *value)
{
    struct conf_error error;

    if (!conf_set(conf, conf_find(slice_of(name)), slice_of(value), &error)) {
        fail_msg("%s: %s", name, error.text);
    }
}

static struct server *
server_new(const char *tls_port)
{
    struct server *server = mem_zalloc(sizeof(*server));

    conf_init(&server->conf);
    set(&server->conf, "tls-port", tls_port);
    tls_contexts_init(&server->tls);
    return server;
}

static void
server_free(struct server *server)
{
    tls_contexts_fini(&server->tls);
    conf_fini(&server->conf);
    mem_free(server);
}

/* Changes an option as CONFIG SET does, in a copy. */
static bool
change(struct server *server, const char *name, const char *value,
       char reason[TLS_REASON_MAX])
{
    struct conf_changes changes = { .changed = { false } };
    struct conf_error error;
    struct conf fresh;
    bool good;

    assert_true(conf_copy(&server->conf, &fresh, &error));
    set(&fresh, name, value);
    changes.changed[conf_find(slice_of(name)) - conf_table] = true;
    reason[0] = '\0';
    good = own_tls_change(server, &fresh, &changes, reason);
    conf_fini(&fresh);
    return good;
}

TEST(without_a_port_for_tls_no_file_is_read)
{
    struct server *server = server_new("0");
    char reason[TLS_REASON_MAX] = "";

    set(&server->conf, "tls-cert-file", "/nothing/here");
    assert_true(own_tls_load(server, &server->conf, reason));
    assert_string_equal("", reason);
    server_free(server);
}

TEST(a_file_that_is_missing_is_the_reason)
{
    const struct certs *certs = certs_get();
    struct server *server = server_new("7380");
    char reason[TLS_REASON_MAX] = "";

    assert_false(own_tls_load(server, &server->conf, reason));
    assert_true(reason[0] != '\0');
    set(&server->conf, "tls-cert-file", "/nothing/here");
    set(&server->conf, "tls-key-file", certs->server);
    set(&server->conf, "tls-ca-cert-file", certs->ca);
    assert_false(own_tls_load(server, &server->conf, reason));
    assert_contains(reason, "/nothing/here");
    server_free(server);
}

TEST(changes_take_the_files_anew_and_bad_ones_change_nothing)
{
    const struct certs *certs = certs_get();
    struct server *server = server_new("7380");
    char reason[TLS_REASON_MAX] = "";

    set(&server->conf, "tls-cert-file", certs->server);
    set(&server->conf, "tls-key-file", certs->server);
    set(&server->conf, "tls-ca-cert-file", certs->ca);
    assert_true(own_tls_load(server, &server->conf, reason));
    assert_true(change(server, "maxclients", "100", reason));
    assert_true(change(server, "tls-cert-file", certs->server, reason));
    assert_false(change(server, "tls-cert-file", certs->stranger, reason));
    assert_true(reason[0] != '\0'); /* its key is another one */
    assert_false(change(server, "tls-ca-cert-file", "/nothing/here", reason));
    assert_contains(reason, "/nothing/here");
    /* An option of another section reads no file. */
    set(&server->conf, "tls-cert-file", "/nothing/here");
    assert_true(change(server, "maxclients", "100", reason));
    server_free(server);
}

TEST(where_tls_is_off_values_are_checked_and_files_are_not_read)
{
    struct server *server = server_new("0");
    char reason[TLS_REASON_MAX];

    assert_true(change(server, "tls-cert-file", "/nothing/here", reason));
    assert_false(change(server, "tls-ciphers", "no such cipher", reason));
    assert_true(reason[0] != '\0');
    server_free(server);
}
