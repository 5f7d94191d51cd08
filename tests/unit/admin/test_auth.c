/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Logins with and without a password, and the count of failures.
 */
#include "admin/auth.h"

#include "../test.h"
#include "base/metrics.h"
#include "conf/conf.h"

static struct conf
conf_with(const char *password)
{
    struct conf conf;
    struct conf_error error;

    conf_init(&conf);
    assert_true(conf_set(&conf, &conf_table[CONF_OPTION_requirepass],
                         slice_of(password), &error));
    return conf;
}

static bool
check(const struct conf *conf, const char *user, const char *password)
{
    return auth_check(conf, slice_of(user), slice_of(password));
}

TEST(auth_without_a_password_lets_the_default_user_in_with_any)
{
    struct conf conf = conf_with("");

    assert_false(auth_required(&conf));
    assert_true(check(&conf, "default", "anything"));
    assert_true(check(&conf, "default", ""));
    assert_false(check(&conf, "nobody", "anything"));
    conf_fini(&conf);
}

TEST(auth_with_a_password_wants_exactly_it)
{
    struct conf conf = conf_with("s3cret");

    assert_true(auth_required(&conf));
    assert_true(check(&conf, "default", "s3cret"));
    assert_false(check(&conf, "default", "s3cre"));
    assert_false(check(&conf, "default", "s3cret "));
    assert_false(check(&conf, "default", "S3cret"));
    assert_false(check(&conf, "default", ""));
    assert_false(
        auth_check(&conf, slice_lit("default"), slice_lit("s3cret\0more")));
    assert_false(check(&conf, "Default", "s3cret"));
    assert_false(check(&conf, "", "s3cret"));
    conf_fini(&conf);
}

TEST(auth_follows_a_change_of_the_password)
{
    struct conf conf = conf_with("one");
    struct conf_error error;

    assert_true(check(&conf, "default", "one"));
    assert_true(conf_set(&conf, &conf_table[CONF_OPTION_requirepass],
                         slice_lit("two"), &error));
    assert_false(check(&conf, "default", "one"));
    assert_true(check(&conf, "default", "two"));
    conf_fini(&conf);
}

TEST(auth_counts_failures_and_only_them)
{
    struct conf conf = conf_with("one");
    int64_t before = metric_sum(METRIC_AUTH_FAILURES);

    assert_true(check(&conf, "default", "one"));
    assert_int_equal(metric_sum(METRIC_AUTH_FAILURES), before);
    assert_false(check(&conf, "default", "two"));
    assert_false(check(&conf, "nobody", "one"));
    assert_int_equal(metric_sum(METRIC_AUTH_FAILURES), before + 2);
    conf_fini(&conf);
}

TEST(auth_shows_the_password_as_its_digest)
{
    struct conf conf = conf_with("foo");
    char hex[AUTH_DIGEST_HEX];

    auth_digest(&conf, hex);
    assert_string_equal("2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e"
                        "886266e7ae",
                        hex);
    conf_fini(&conf);
}
