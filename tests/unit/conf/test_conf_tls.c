/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which options make a server dial by TLS, and whose texts its settings are.
 */
#include "conf/conf_tls.h"

#include "../test.h"
#include "conf/conf.h"

static void
set(struct conf *conf, const char *name, const char *value)
{
    struct conf_error error = { .text = "" };

    assert_true(
        conf_set(conf, conf_find(slice_of(name)), slice_of(value), &error));
}

TEST(settings_are_the_options)
{
    struct conf conf;
    struct tls_settings settings;

    conf_init(&conf);
    set(&conf, "tls-cert-file", "/c.crt");
    set(&conf, "tls-session-cache-size", "7");
    settings = conf_tls_settings(&conf, true);
    assert_string_equal(settings.cert_file, "/c.crt");
    assert_int_equal(settings.session_cache_size, 7);
    assert_true(settings.serves);
    assert_false(conf_tls_settings(&conf, false).serves);
    conf_fini(&conf);
}

TEST(replication_is_dialled_by_tls)
{
    struct conf conf;

    conf_init(&conf);
    assert_false(conf_tls_settings(&conf, true).dials);
    set(&conf, "tls-replication", "yes");
    assert_true(conf_tls_settings(&conf, false).dials);
    conf_fini(&conf);
}
