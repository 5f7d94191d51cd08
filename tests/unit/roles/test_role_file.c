/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of the role: writing and reading it, damaged and unreadable files.
 */
#include "roles/role_file.h"

#include "../home.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { DEADLINE_MS = 20000, TEXT_MAX = 2048, REASON_MAX = 256 };

struct home {
    char dir[64], path[96], damaged[112];
    int fd;
    struct kept_file *file;
    atomic_uint attempts;
};

static void
home_open(struct home *home)
{
    memset(home, 0, sizeof(*home));
    log_set_level((enum log_level)CONF_LOG_NOTHING);
    (void)snprintf(home->dir, sizeof(home->dir), "/tmp/role-file-XXXXXX");
    home_make(home->dir);
    (void)snprintf(home->path, sizeof(home->path), "%s/%s", home->dir,
                   ROLE_FILE_NAME);
    (void)snprintf(home->damaged, sizeof(home->damaged), "%s/%s", home->dir,
                   ROLE_FILE_DAMAGED);
    assert_int_equal(0, file_open_dir(home->dir, false, &home->fd));
}

static void
home_close(struct home *home)
{
    kept_file_free(home->file);
    file_close(home->fd);
    home_remove(home->dir);
}

static void
on_written(void *ctx)
{
    struct home *home = ctx;

    atomic_fetch_add(&home->attempts, 1);
}

static void
home_start(struct home *home)
{
    home->file = role_file_new(home->dir, on_written, home);
}

static void
put(const char *path, const char *text, size_t len)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(len, fwrite(text, 1, len, file));
    assert_int_equal(0, fclose(file));
}

/* Returns the length; 0 if there is no such file. */
static size_t
get(const char *path, char text[TEXT_MAX])
{
    FILE *file = fopen(path, "r");
    size_t len;

    if (file == NULL) {
        return 0;
    }
    len = fread(text, 1, TEXT_MAX - 1, file);
    text[len] = '\0';
    assert_int_equal(0, fclose(file));
    return len;
}

static struct role_state
a_primary(void)
{
    return (struct role_state){
        .key = 0x0123456789abcdef,
        .replicas = true,
        .history = "0123456789abcdef0123456789abcdef01234567"
    };
}

static struct role_state
a_replica(const char *host, uint32_t port)
{
    struct role_state state = { .replica = true, .port = port, .key = port };

    (void)snprintf(state.host, sizeof(state.host), "%s", host);
    return state;
}

#define wait_until(cond)                                                       \
    do {                                                                       \
        uint64_t give_up_ = clock_mono_ns() + DEADLINE_MS * 1000000ULL;        \
                                                                               \
        while (!(cond)) {                                                      \
            assert_true(clock_mono_ns() < give_up_);                           \
            (void)usleep(200);                                                 \
        }                                                                      \
    } while (0)

static void
keep(struct home *home, const struct role_state *state)
{
    uint64_t ticket = role_file_write(home->file, state);

    wait_until(kept_file_outcome(home->file, ticket) == 1);
}

static void
assert_read(struct home *home, const struct role_state *want)
{
    struct role_state got = { .port = 7 };
    char reason[REASON_MAX] = "?";

    assert_true(role_file_read(home->fd, &got, reason, sizeof(reason)));
    assert_string_equal("", reason);
    assert_true(got.known);
    assert_int_equal(want->replica, got.replica);
    assert_string_equal(want->host, got.host);
    assert_int_equal(want->port, got.port);
    assert_int_equal(want->key, got.key);
    assert_int_equal(want->replicas, got.replicas);
    assert_string_equal(want->history, got.history);
    for (size_t i = 0; i < ROLE_BEFORE_MAX; i++) {
        assert_string_equal(want->before[i], got.before[i]);
    }
    assert_memory_equal(want->followers, got.followers,
                        sizeof(want->followers));
    assert_int_equal(want->more_followers, got.more_followers);
}

static void
assert_unknown(const struct role_state *state)
{
    static const struct role_state unknown = { 0 };

    assert_memory_equal(&unknown, state, sizeof(unknown));
}

/* ---- writing and reading ------------------------------------------------- */

TEST(without_a_file_nothing_is_known)
{
    struct home home;
    struct role_state role = a_primary();
    char reason[REASON_MAX] = "?";

    home_open(&home);
    assert_true(role_file_read(home.fd, &role, reason, sizeof(reason)));
    assert_string_equal("", reason);
    assert_unknown(&role);
    home_close(&home);
}

TEST(a_role_comes_back_as_it_was)
{
    char longest[ROLE_HOST_MAX];
    struct role_state states[] = { a_primary(),
                                   a_replica("10.0.0.1", 6379),
                                   { 0 },
                                   a_replica("fe80::1%eth0", 65535),
                                   a_replica("a", 1),
                                   a_replica("", 0),
                                   a_primary() };
    struct home home;

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    states[5] = a_replica(longest, 10000);
    states[5].key = UINT64_MAX;
    home_open(&home);
    home_start(&home);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        keep(&home, &states[i]);
        assert_read(&home, &states[i]);
        assert_read(&home, &states[i]); /* reading changes nothing */
    }
    home_close(&home);
}

TEST(the_file_is_as_it_is_drawn)
{
    struct role_state role = a_replica("db.example", 7379);
    struct home home;
    struct stat info;
    char text[TEXT_MAX];

    home_open(&home);
    home_start(&home);
    keep(&home, &role);
    assert_true(get(home.path, text) > 0);
    assert_string_equal("bloomery-role 1\n"
                        "role replica db.example 7379\n"
                        "key 0000000000001cd3\n"
                        "replicas no\nhistory -\n"
                        "checksum 6b76ed9691bf02a6\n",
                        text);
    assert_int_equal(0, stat(home.path, &info));
    assert_int_equal(0600, info.st_mode & 07777);
    home_close(&home);
}

/* ---- damage -------------------------------------------------------------- */

/* Appends the checksum. */
static size_t
seal(const char *body, char text[TEXT_MAX])
{
    size_t len = strlen(body);

    return (size_t)snprintf(text, TEXT_MAX, "%schecksum %016" PRIx64 "\n", body,
                            (uint64_t)XXH3_64bits(body, len));
}

static void
assert_set_aside(struct home *home, const char *text, size_t len)
{
    struct role_state role = a_primary();
    char reason[REASON_MAX] = "";
    char aside[TEXT_MAX];

    put(home->path, text, len);
    assert_true(role_file_read(home->fd, &role, reason, sizeof(reason)));
    if (reason[0] == '\0') {
        fail_msg("accepted: %.*s", (int)len, text);
    }
    assert_non_null(strstr(reason, "replication.state was damaged ("));
    assert_non_null(strstr(reason, "it is replication.state.damaged now"));
    assert_unknown(&role);
    assert_int_equal(-1, access(home->path, F_OK));
    assert_int_equal(len, get(home->damaged, aside));
    assert_memory_equal(text, aside, len);
}

TEST(a_flip_and_a_cut_anywhere_are_noticed_and_set_aside)
{
    struct role_state role = a_replica("10.0.0.1", 6379);
    struct home home;
    char text[TEXT_MAX];
    size_t len;

    home_open(&home);
    home_start(&home);
    keep(&home, &role);
    len = get(home.path, text);
    for (size_t at = 0; at < len; at++) {
        text[at] = (char)(text[at] ^ (1 << at % 8));
        assert_set_aside(&home, text, len);
        text[at] = (char)(text[at] ^ (1 << at % 8));
    }
    for (size_t cut = 0; cut < len; cut++) {
        assert_set_aside(&home, text, cut);
    }
    memcpy(text + len, "\n", 1);
    assert_set_aside(&home, text, len + 1);
    put(home.path, text, len);
    assert_read(&home, &role);
    home_close(&home);
}

#define FIRST "bloomery-role 1\n"
#define LAST  "key 00000000000000aa\nreplicas no\nhistory -\n"

TEST(malformed_lines_are_damage_even_with_a_valid_checksum)
{
    static const char *const bodies[] = {
        "",
        "\n",
        FIRST,
        LAST,
        "bloomery-role 0\nrole primary\n" LAST,
        "bloomery-role 01\nrole primary\n" LAST,
        "bloomery-role\nrole primary\n" LAST,
        "bloomery-role 1 \nrole primary\n" LAST,
        "Bloomery-role 1\nrole primary\n" LAST,
        FIRST "role primary \n" LAST,
        FIRST "role primary\r\n" LAST,
        FIRST "role master\n" LAST,
        FIRST "role replica\n" LAST,
        FIRST "role replica \n" LAST,
        FIRST "role replica a\n" LAST,
        FIRST "role replica a \n" LAST,
        FIRST "role replica  1\n" LAST,
        FIRST "role replica a 0\n" LAST,
        FIRST "role replica a 65536\n" LAST,
        FIRST "role replica a 99999999999999999999\n" LAST,
        FIRST "role replica a -1\n" LAST,
        FIRST "role replica a 06379\n" LAST,
        FIRST "role replica a 6379 \n" LAST,
        FIRST "role replica a b 6379\n" LAST,
        FIRST "role replica a\tb 6379\n" LAST,
        FIRST "role replica a\"b 6379\n" LAST,
        FIRST "role replica \x7f 6379\n" LAST,
        FIRST "role replica \xc3\xa4 6379\n" LAST,
        FIRST "role primary\nrole primary\n" LAST,
        FIRST "role primary\nkey aa\nreplicas no\nhistory -\n",
        FIRST "role primary\nkey 00000000000000AA\nreplicas no\nhistory -\n",
        FIRST "role primary\nkey 000000000000000g\nreplicas no\nhistory -\n",
        FIRST "role primary\nkey 00000000000000aaa\nreplicas no\nhistory -\n",
        FIRST "role primary\nreplicas no\nhistory -\n",
        FIRST "role primary\nkey 00000000000000aa\n",
        FIRST "role primary\nkey 00000000000000aa\nreplicas maybe\nhistory -\n",
        FIRST "role primary\nkey 00000000000000aa\nreplicas no \nhistory -\n",
        FIRST "role primary\nkey 00000000000000aa\nreplicas no\n",
        FIRST "role primary\nkey 00000000000000aa\nreplicas no\nhistory \n",
        FIRST "role primary\nkey 00000000000000aa\nreplicas no\nhistory ab\n",
        FIRST "role primary\n" LAST "more\n",
        FIRST "role primary\n" LAST "\n",
    };
    struct home home;
    char text[TEXT_MAX];

    home_open(&home);
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_set_aside(&home, text, seal(bodies[i], text));
    }
    put(home.path, text, seal(FIRST "role primary\n" LAST, text));
    assert_read(&home, &(struct role_state){ .key = 0xaa });
    home_close(&home);
}

TEST(a_host_that_is_too_long_and_a_file_that_is_too_large_are_damage)
{
    struct home home;
    char host[ROLE_HOST_MAX + 1];
    char body[TEXT_MAX];
    char text[TEXT_MAX];

    home_open(&home);
    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    (void)snprintf(body, sizeof(body), FIRST "role replica %s 1\n" LAST, host);
    assert_set_aside(&home, text, seal(body, text));
    memset(text, 'x', sizeof(text));
    assert_set_aside(&home, text, 512);
    assert_set_aside(&home, text, 513);
    assert_set_aside(&home, text, sizeof(text) - 1);
    home_close(&home);
}

TEST(random_bytes_are_damage)
{
    uint64_t seed = test_seed();
    struct home home;
    char text[600];

    home_open(&home);
    for (unsigned round = 0; round < 50 * test_rounds(); round++) {
        size_t len;

        for (size_t i = 0; i < sizeof(text); i++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            text[i] = (char)(seed >> 56);
        }
        len = (size_t)(seed >> 40) % sizeof(text);
        assert_set_aside(&home, text, len);
    }
    home_close(&home);
}

/* ---- files that cannot be read ------------------------------------------- */

static void
assert_unreadable(struct home *home, const char *reason)
{
    struct role_state role = a_primary();
    char got[REASON_MAX] = "";

    assert_false(role_file_read(home->fd, &role, got, sizeof(got)));
    if (strstr(got, reason) == NULL) {
        fail_msg("the reason is [%s], without [%s]", got, reason);
    }
    assert_unknown(&role);
    assert_int_equal(-1, access(home->damaged, F_OK));
    assert_int_equal(0, access(home->path, F_OK));
}

TEST(a_primary_stores_its_followers_and_earlier_histories)
{
    struct role_state role = a_primary();
    struct role_state other = role;
    struct home home;

    home_open(&home);
    home_start(&home);
    for (size_t i = 0; i < ROLE_FOLLOWERS_MAX; i++) {
        other = role;
        role.followers[i] = 0x8000000000000001 + i;
        assert_false(role_state_same(&role, &other));
        keep(&home, &role);
        assert_read(&home, &role);
    }
    for (size_t i = 0; i < ROLE_BEFORE_MAX; i++) {
        other = role;
        memset(role.before[i], 'a' + (int)i, HISTORY_ID_CHARS);
        assert_false(role_state_same(&role, &other));
        keep(&home, &role);
        assert_read(&home, &role);
    }
    memset(role.followers, 0, sizeof(role.followers));
    role.more_followers = true;
    keep(&home, &role);
    assert_read(&home, &role);
    assert_true(role_state_same(&role, &role));
    home_close(&home);
}

#define OLD   "bloomery-role 2\nrole primary\n" LAST
#define ID    "0123456789abcdef0123456789abcdef01234567"
#define NAMED "0123456789abcdef"

TEST(malformed_lines_of_version_2_are_damage)
{
    static const char *const bodies[] = {
        OLD,
        OLD "before -\n",
        OLD "followers -\n",
        OLD "followers -\nbefore -\n",
        OLD "before \nfollowers -\n",
        OLD "before ab\nfollowers -\n",
        OLD "before " ID " " ID " " ID " " ID "\nfollowers -\n",
        OLD "before " ID " \nfollowers -\n",
        OLD "before " ID "  " ID "\nfollowers -\n",
        OLD "before  " ID "\nfollowers -\n",
        OLD "before -\nfollowers \n",
        OLD "before -\nfollowers 12\n",
        OLD "before -\nfollowers 0000000000000000\n",
        OLD "before -\nfollowers " NAMED " many\n",
        OLD "before -\nfollowers -\nmore\n",
        "bloomery-role 1\nrole primary\n" LAST "before -\nfollowers -\n",
    };
    struct role_state want = { .known = true, .key = 0xaa };
    struct home home;
    char text[TEXT_MAX];

    home_open(&home);
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct role_state role;
        char reason[REASON_MAX];

        put(home.path, text, seal(bodies[i], text));
        assert_true(role_file_read(home.fd, &role, reason, sizeof(reason)));
        assert_false(role.known);
        assert_non_null(strstr(reason, "or of followers is wrong"));
        assert_int_equal(0, unlink(home.damaged));
    }
    put(home.path, text, seal(OLD "before -\nfollowers -\n", text));
    assert_read(&home, &want);
    want.followers[0] = 0x0123456789abcdef;
    memcpy(want.before[0], ID, sizeof(ID));
    put(home.path, text,
        seal(OLD "before " ID "\nfollowers " NAMED "\n", text));
    assert_read(&home, &want);
    home_close(&home);
}

TEST(a_file_of_a_newer_version_is_left_where_it_is)
{
    static const char *const bodies[] = {
        ("bloomery-role 3\nrole primary\n" LAST),
        "bloomery-role 3\n",
        "bloomery-role 18446744073709551615\nsomething else\n",
    };
    struct home home;
    char text[TEXT_MAX];

    home_open(&home);
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        put(home.path, text, seal(bodies[i], text));
        assert_unreadable(&home, "a newer version");
    }
    home_close(&home);
}

TEST(an_unreadable_file_is_no_damage)
{
    struct home home;
    char text[TEXT_MAX];

    home_open(&home);
    put(home.path, text, seal(FIRST "role primary\n" LAST, text));
    file_fail_at(FILE_CALL_OPEN, 1, EACCES, false);
    assert_unreadable(&home, strerror(EACCES));
    file_fail_at(FILE_CALL_READ, 1, EIO, false);
    assert_unreadable(&home, strerror(EIO));
    assert_true(file_fail_clear());
    put(home.path, "damage", 6);
    file_fail_at(FILE_CALL_RENAME, 1, EROFS, false);
    assert_unreadable(&home, strerror(EROFS));
    assert_true(file_fail_clear());
    assert_int_equal(0, unlink(home.path));
    assert_int_equal(0, mkfifo(home.path, 0600));
    assert_unreadable(&home, strerror(EMEDIUMTYPE));
    assert_int_equal(0, unlink(home.path));
    assert_int_equal(0, mkdir(home.path, 0700));
    assert_unreadable(&home, strerror(EISDIR));
    home_close(&home);
}
