/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Secrets go from a directory or a server into the folder of another directory,
 * all of them or none. The keyring of the process stays, so each test has
 * secrets of its own.
 */
#include "load/load_secrets.h"

#include "../capture.h"
#include "../script.h"
#include "base/hex.h"
#include "snapshot/keyring.h"

struct home {
    char dir[64], from[96], to[96];
    struct load load;
};

static void
home_open(struct home *home)
{
    *home = (struct home){ .dir = "/tmp/load-secrets-XXXXXX",
                           .load = { .tool = { .name = "test" },
                                     .timeout_s = 20,
                                     .value_bytes = 10000 } };
    home_make(home->dir);
    (void)snprintf(home->from, sizeof(home->from), "%s/from", home->dir);
    (void)snprintf(home->to, sizeof(home->to), "%s/to", home->dir);
    assert_int_equal(0, mkdir(home->from, 0700));
    assert_int_equal(0, mkdir(home->to, 0700));
    home->load.from.address = home->from;
}

struct secret {
    uint8_t bytes[BLOOM_SECRET_BYTES];
    char hex[2 * BLOOM_SECRET_BYTES + 1];
    char name[KEYRING_DIGITS + 1]; /* its fingerprint */
};

static struct secret
secret_of(uint8_t number)
{
    struct secret secret = { .hex = "" };

    for (size_t i = 0; i < sizeof(secret.bytes); i++) {
        secret.bytes[i] = (uint8_t)(number + i);
        (void)snprintf(secret.hex + 2 * i, 3, "%02x", secret.bytes[i]);
    }
    (void)snprintf(secret.name, sizeof(secret.name), "%0*llx", KEYRING_DIGITS,
                   (unsigned long long)keyring_fingerprint(secret.bytes));
    return secret;
}

static void
put(const char *dir, const struct secret *secret, const char *text)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/" KEYRING_NAME, dir);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/" KEYRING_NAME "/%s", dir,
                   secret->name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%s\n", text) > 0);
    assert_int_equal(0, fclose(file));
    assert_int_equal(0, chmod(path, 0600));
}

static bool
has(const char *dir, const struct secret *secret)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/" KEYRING_NAME "/%s", dir,
                   secret->name);
    return access(path, F_OK) == 0;
}

TEST(secrets_of_a_directory_are_copied_and_those_there_stay)
{
    const struct secret one = secret_of(1), two = secret_of(2);
    struct home home;

    home_open(&home);
    put(home.from, &one, one.hex);
    put(home.from, &two, two.hex);
    put(home.to, &one, one.hex);
    EXPECT_PRINTED(STDOUT_FILENO, load_secrets(&home.load, home.to),
                   "    secrets written    1\n");
    assert_int_equal(0, home.load.tool.status);
    assert_true(has(home.to, &one) && has(home.to, &two));
    EXPECT_PRINTED(STDOUT_FILENO, load_secrets(&home.load, home.to),
                   "    secrets written    0\n");
    home_remove(home.dir);
}

TEST(a_source_without_secrets_and_missing_directories_are_named)
{
    struct home home;

    home_open(&home);
    EXPECT_PRINTED(STDERR_FILENO, load_secrets(&home.load, home.to),
                   "/from: has no secrets");
    assert_int_equal(LOAD_UNREADABLE, home.load.tool.status);
    assert_int_equal(0, rmdir(home.to));
    EXPECT_PRINTED(STDERR_FILENO, load_secrets(&home.load, home.to),
                   "/to: cannot be opened: No such file");
    home_remove(home.dir);
}

TEST(a_damaged_secret_stops_before_any_is_copied)
{
    const struct secret one = secret_of(11), two = secret_of(12);
    struct home home;

    home_open(&home);
    put(home.from, &one, one.hex);
    put(home.from, &two, one.hex); /* not of its name */
    EXPECT_PRINTED(STDERR_FILENO, load_secrets(&home.load, home.to),
                   "; no secret was copied");
    assert_int_equal(LOAD_UNREADABLE, home.load.tool.status);
    assert_false(has(home.to, &one) || has(home.to, &two));
    home_remove(home.dir);
}

/* Copies from a server that lists a secret and gives it as `hex`. */
static void
copy_from_server(struct home *home, const struct secret *secret,
                 const char *hex, struct capture *output)
{
    char listed[64], given[128];
    const char *const replies[] = { "+PONG\r\n", "+OK\r\n", listed, given,
                                    NULL };
    struct script script;

    (void)snprintf(listed, sizeof(listed), "$16\r\n%s\r\n", secret->name);
    (void)snprintf(given, sizeof(given), "$%zu\r\n%s\r\n", strlen(hex), hex);
    script_begin(&script, replies);
    home->load.from.address = script.path;
    capture_begin(output, STDERR_FILENO);
    load_secrets(&home->load, home->to);
    (void)capture_end(output);
    script_end(&script, NULL);
}

TEST(a_server_gives_its_secrets_and_a_wrong_one_is_refused)
{
    const struct secret one = secret_of(21), two = secret_of(22);
    struct capture output;
    struct home home;

    home_open(&home);
    copy_from_server(&home, &two, one.hex, &output);
    assert_contains(output.text, "gives a wrong secret for ");
    assert_int_equal(LOAD_UNREADABLE, home.load.tool.status);
    assert_false(has(home.to, &two));
    copy_from_server(&home, &two, "xyz", &output);
    assert_contains(output.text, "gives a wrong secret for ");
    home.load.tool.status = 0;
    copy_from_server(&home, &one, one.hex, &output);
    assert_string_equal("", output.text);
    assert_int_equal(0, home.load.tool.status);
    assert_true(has(home.to, &one));
    home_remove(home.dir);
}

TEST(servers_that_give_none_are_named)
{
    static const struct {
        const char *introduced, *listed, *text;
    } rows[] = {
        { "-ERR no\r\n", NULL, "is no Bloomery that has secrets" },
        { "+OK\r\n", "-NOPERM no\r\n", "NOPERM no" },
        { "+OK\r\n", "$16\r\nno hexadecimal..\r\n",
          "does not list its secrets" },
        { "+OK\r\n", "$0\r\n\r\n", ": has no secrets" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const replies[] = { "+PONG\r\n", rows[i].introduced,
                                        rows[i].listed, NULL };
        struct script script;
        struct home home;

        home_open(&home);
        script_begin(&script, replies);
        home.load.from.address = script.path;
        EXPECT_PRINTED(STDERR_FILENO, load_secrets(&home.load, home.to),
                       rows[i].text);
        script_end(&script, NULL);
        assert_int_equal(LOAD_UNREADABLE, home.load.tool.status);
        home_remove(home.dir);
    }
}

TEST(the_hint_comes_once_and_only_for_that_error)
{
    static const char error[] = "ERR the secret of fingerprint 1 is not here";
    struct load load = { .tool = { .name = "test" } };

    EXPECT_OUTPUT(STDERR_FILENO, load_secrets_hint(&load, slice_lit(error)),
                  "");
    load.from.address = "h:1";
    EXPECT_OUTPUT(STDERR_FILENO, load_secrets_hint(&load, slice_lit("ERR")),
                  "");
    EXPECT_OUTPUT(STDERR_FILENO, load_secrets_hint(&load, slice_lit("")), "");
    EXPECT_PRINTED(STDERR_FILENO, load_secrets_hint(&load, slice_lit(error)),
                   "`bloomery-load secrets h:1 DIR` copies the secrets");
    EXPECT_OUTPUT(STDERR_FILENO, load_secrets_hint(&load, slice_lit(error)),
                  "");
}
