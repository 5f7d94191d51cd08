/* SPDX-License-Identifier: BSD-3-Clause
 *
 * URLs of servers, right and wrong.
 */
#include "local/local_url.h"

#include "../test.h"

static struct local_url
parse(const char *text)
{
    struct local_url url;
    const char *reason;

    assert_true(local_url_parse(text, &url, &reason));
    return url;
}

static void
refuse(const char *text, const char *why)
{
    struct local_url url;
    const char *reason = NULL;

    assert_false(local_url_parse(text, &url, &reason));
    assert_non_null(strstr(reason, why));
}

TEST(a_url_has_defaults)
{
    struct local_url url = parse("redis://example");

    assert_false(url.tls || url.has_password);
    assert_string_equal(url.host, "example");
    assert_string_equal(url.port, "7379");
    assert_string_equal(url.user, "");
    assert_int_equal(url.database, 0);
}

TEST(a_url_has_all_parts)
{
    struct local_url url = parse("rediss://me:a%2Fb%40:@[::1]:99/12");

    assert_true(url.tls && url.has_password);
    assert_string_equal(url.host, "::1");
    assert_string_equal(url.port, "99");
    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "a/b@:");
    assert_int_equal(url.database, 12);
    url = parse("redis://:x@h/");
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "x");
    assert_string_equal(parse("redis://[::1]/3").host, "::1");
}

TEST(a_url_may_name_a_socket)
{
    struct local_url url = parse("unix://:x@/run/a%20b.sock?db=3");

    assert_string_equal(url.host, "/run/a b.sock");
    assert_string_equal(url.password, "x");
    assert_int_equal(url.database, 3);
}

TEST(a_url_may_name_sentinels)
{
    struct local_url url =
        parse("rediss+sentinel://me:x@h:1,[::1]:2,[::2],last/the%2Fmain/5");
    struct local_host host;

    assert_true(url.tls && url.has_password);
    assert_string_equal(url.host, "the/main");
    assert_int_equal(url.database, 5);
    assert_true(local_url_sentinel(url.sentinels, 0, &host));
    assert_string_equal(host.name, "h");
    assert_string_equal(host.port, "1");
    assert_true(local_url_sentinel(url.sentinels, 1, &host));
    assert_string_equal(host.name, "::1");
    assert_string_equal(host.port, "2");
    assert_true(local_url_sentinel(url.sentinels, 2, &host));
    assert_string_equal(host.name, "::2");
    assert_string_equal(host.port, "26379");
    assert_true(local_url_sentinel(url.sentinels, 3, &host));
    assert_string_equal(host.name, "last");
    assert_false(local_url_sentinel(url.sentinels, 4, &host));
    assert_string_equal(parse("redis://h").sentinels, "");
}

TEST(a_wrong_url_is_refused_with_a_reason)
{
    refuse("redis+sentinel://h", "watch");
    refuse("redis+sentinel://h//3", "watch");
    refuse("redis+sentinel:///main", "host");
    refuse("redis+sentinel://h:1,:2/main", "host");
    refuse("redis+sentinel://h:1,g:x/main", "port");
    refuse("redis+sentinel://h/main/x", "database");
    refuse("http://x", "does not begin");
    refuse("redis://", "host");
    refuse("redis://:7379", "host");
    refuse("redis://h:0", "port");
    refuse("redis://h:x", "port");
    refuse("redis://h/x", "database");
    refuse("redis://me@h", "without a password");
    refuse("redis://me:%zz@h", "password");
    refuse("redis://me:%00@h", "password");
    refuse("redis://%2Fetc", "host");
    refuse("unix://run/x", "path");
    refuse("unix:///x?y=1", "option");
    refuse("unix:///x?db=y", "database");
}

TEST(urls_are_equal_if_they_are_one_server_and_one_user)
{
    struct local_url one = parse("redis://a:b@h:1/2");
    struct local_url same = parse("redis://a:b@h:1/2");
    struct local_url other = parse("redis://a:c@h:1/2");

    assert_true(local_url_equal(&one, &same));
    assert_false(local_url_equal(&one, &other));
    one = parse("redis+sentinel://h/main");
    other = parse("redis+sentinel://g/main");
    assert_false(local_url_equal(&one, &other));
}
