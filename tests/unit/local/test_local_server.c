/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of the library: whose copies share one, and when it ends.
 */
#include "local/local_server.h"

#include "../test.h"
#include "fake_server.h"

#include <bloomery/local.h>
#include <dlfcn.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct local_files no_files = { "", "", "" };

static struct bloomery_local *
new_member(void)
{
    const struct bloomery_local_options options = {
        .struct_size = sizeof(options),
        .key = "k",
        .key_bytes = 1,
        .max_stale_ms = 1000,
        .max_bytes = UINT64_MAX,
        .flags = BLOOMERY_LOCAL_MISSING_IS_ABSENT
    };
    struct bloomery_local *member = local_member_new(&options, "fake");

    assert_non_null(member);
    return member;
}

static void
await_threads(unsigned count)
{
    for (uint64_t end = fake_now_ms() + 60000;
         fake_threads("bloomery-local") != count;) {
        assert_true(fake_now_ms() < end);
        (void)usleep(1000);
    }
}

static void
end_member(struct bloomery_local *member)
{
    local_member_close(member);
    local_server_wake(member);
    local_member_release(member);
}

TEST(copies_of_one_user_of_one_server_share_a_thread)
{
    struct fake_server fake;
    struct bloomery_local *members[3];
    struct local_url url;
    const char *reason;
    char text[64], why[512];

    fake_begin(&fake);
    (void)snprintf(text, sizeof(text), "redis://127.0.0.1:%s", fake.port);
    assert_true(local_url_parse(text, &url, &reason));
    for (int i = 0; i < 3; i++) {
        members[i] = new_member();
        if (i == 2) {
            url.database = 1;
        }
        assert_int_equal(local_server_join(&url, &no_files, members[i], why),
                         BLOOMERY_LOCAL_OK);
        assert_int_equal(local_member_wait(members[i], 60000),
                         BLOOMERY_LOCAL_OK);
    }
    await_threads(2);
    end_member(members[2]);
    await_threads(1);
    end_member(members[0]);
    assert_int_equal(local_place_contains(&members[1]->place, "x", 1),
                     BLOOMERY_LOCAL_ABSENT);
    end_member(members[1]);
    await_threads(0);
    fake_end(&fake);
}

TEST(a_server_whose_files_are_wrong_gets_no_thread)
{
    const struct local_files files = { "/nonexistent", "", "" };
    struct bloomery_local *member = new_member();
    struct local_url url;
    const char *reason;
    char why[512] = "";

    assert_true(local_url_parse("rediss://127.0.0.1", &url, &reason));
    assert_int_equal(local_server_join(&url, &files, member, why),
                     BLOOMERY_LOCAL_TLS);
    assert_non_null(strstr(why, "/nonexistent"));
    assert_int_equal(fake_threads("bloomery-local"), 0);
    local_member_abandon(member);
}

/* The library's own calls of SSL_CTX_free() take long, and are counted. */
static atomic_uint frees_begun, frees_ended;

void
SSL_CTX_free(SSL_CTX *ctx)
{
    static _Atomic(void (*)(SSL_CTX *)) real;
    void (*fn)(SSL_CTX *) = atomic_load(&real);

    if (fn == NULL) {
        *(void **)&fn = dlsym(RTLD_NEXT, "SSL_CTX_free");
        atomic_store(&real, fn);
    }
    atomic_fetch_add(&frees_begun, 1);
    if (ctx != NULL) {
        (void)usleep(200000);
    }
    fn(ctx);
    atomic_fetch_add(&frees_ended, 1);
}

/* The thread sanitizer allows no threads after a fork. */
#ifndef __SANITIZE_THREAD__
/* Runs when the library's own function for the exit has returned. */
static void
end_child(void)
{
    unsigned begun = atomic_load(&frees_begun);

    _exit(begun > 0 && atomic_load(&frees_ended) == begun ? 0 : 1);
}

static void
exit_with_a_copy(void)
{
    struct local_url url;
    const char *reason;
    char why[512];

    if (!local_url_parse("rediss://127.0.0.1:1", &url, &reason) ||
        atexit(end_child) != 0 ||
        local_server_join(&url, &no_files, new_member(), why) !=
            BLOOMERY_LOCAL_OK) {
        _exit(2);
    }
    exit(3);
}

TEST(a_thread_has_left_openssl_when_the_program_exits)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        exit_with_a_copy();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#endif
