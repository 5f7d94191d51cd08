/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The public functions, with a server that is a thread of the test and knows no
 * key.
 */
#include <bloomery/local.h>

#include "../test.h"
#include "fake_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASKERS = 2, ROUNDS = 20 };

static struct bloomery_local_options
options_for(const struct fake_server *fake)
{
    static char url[64];

    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%s", fake->port);
    return (struct bloomery_local_options){
        .struct_size = sizeof(struct bloomery_local_options),
        .url = url,
        .key = "k",
        .flags = BLOOMERY_LOCAL_MISSING_IS_ABSENT
    };
}

static struct bloomery_local *
open_copy(const struct bloomery_local_options *options)
{
    struct bloomery_local *local = NULL;

    assert_int_equal(bloomery_local_open(options, &local, NULL),
                     BLOOMERY_LOCAL_OK);
    return local;
}

static void
refuse(const struct bloomery_local_options *options,
       enum bloomery_local_code code, const char *why)
{
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    struct bloomery_local *local = NULL;

    assert_int_equal(bloomery_local_open(options, &local, &status), code);
    assert_null(local);
    assert_int_equal(status.error, code);
    if (strstr(status.error_text, why) == NULL) {
        fail_msg("\"%s\" in \"%s\"", why, status.error_text);
    }
}

TEST(wrong_options_are_refused_with_a_reason)
{
    struct bloomery_local_options options = { .struct_size = sizeof(options) };
    struct bloomery_local_status status = { .struct_size = sizeof(status) };
    struct bloomery_local *local;

    refuse(&options, BLOOMERY_LOCAL_INVALID, "missing");
    options.url = "redis://127.0.0.1:1";
    refuse(&options, BLOOMERY_LOCAL_INVALID, "missing");
    options.key = "k";
    options.max_stale_ms = 99;
    refuse(&options, BLOOMERY_LOCAL_INVALID, "max_stale_ms");
    options.max_stale_ms = 100;
    options.flags = 1U << 31;
    refuse(&options, BLOOMERY_LOCAL_INVALID, "flag");
    options.flags = 0;
    options.struct_size--;
    refuse(&options, BLOOMERY_LOCAL_INVALID, "struct_size");
    options.struct_size++;
    options.url = "redis://me:secret@h:x";
    refuse(&options, BLOOMERY_LOCAL_INVALID, "port");
    options.url = "rediss://127.0.0.1:1";
    options.ca_file = "/nonexistent";
    refuse(&options, BLOOMERY_LOCAL_TLS, "/nonexistent");
    options.url = "redis://127.0.0.1:1";
    options.timeout_ms = 50;
    assert_int_equal(bloomery_local_open(&options, &local, &status),
                     BLOOMERY_LOCAL_LATE);
    assert_int_equal(status.error, BLOOMERY_LOCAL_CONNECT);
    assert_string_equal(status.error_text,
                        "cannot connect: Connection refused");
}

TEST(a_program_may_wait_later)
{
    struct fake_server fake;
    struct bloomery_local_options options;
    struct bloomery_local *local;

    fake_begin(&fake);
    options = options_for(&fake);
    options.flags |= BLOOMERY_LOCAL_NO_WAIT;
    local = open_copy(&options);
    assert_int_equal(bloomery_local_wait(local, 60000), BLOOMERY_LOCAL_OK);
    assert_int_equal(bloomery_local_wait(local, 0), BLOOMERY_LOCAL_OK);
    bloomery_local_close(local);
    assert_int_equal(bloomery_local_wait(local, 60000), BLOOMERY_LOCAL_CLOSED);
    bloomery_local_free(local);
    fake_end(&fake);
    options.url = "redis://127.0.0.1:1";
    local = open_copy(&options);
    assert_int_equal(bloomery_local_wait(local, 50), BLOOMERY_LOCAL_LATE);
    bloomery_local_free(local);
}

TEST(each_code_has_a_text)
{
    for (int code = BLOOMERY_LOCAL_OK; code <= BLOOMERY_LOCAL_CLOSED; code++) {
        assert_string_not_equal(
            bloomery_local_text((enum bloomery_local_code)code),
            "unknown code");
    }
}

TEST(a_program_may_be_older_or_newer_than_the_library)
{
    struct fake_server fake;
    struct bloomery_local_options options;
    struct {
        struct bloomery_local_status known;
        uint64_t newer;
    } status = { .known = { .struct_size = sizeof(status) }, .newer = 7 };
    struct bloomery_local *local;

    fake_begin(&fake);
    options = options_for(&fake);
    local = open_copy(&options);
    bloomery_local_status(local, &status.known);
    assert_int_equal(status.known.struct_size, sizeof(status));
    assert_int_equal(status.known.state, BLOOMERY_LOCAL_MISSING);
    assert_int_equal(status.newer, 0);
    bloomery_local_free(local);
    fake_end(&fake);
}

TEST(a_status_that_is_too_small_is_an_error_and_is_left_alone)
{
    struct bloomery_local_options options = { .struct_size = sizeof(options),
                                              .url = "redis://127.0.0.1:1",
                                              .key = "k",
                                              .flags = BLOOMERY_LOCAL_NO_WAIT };
    struct bloomery_local_status status = { .loads = 7 };
    struct bloomery_local *local = NULL;
    static const size_t sizes[] = { 0, sizeof(size_t), 583 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        status.struct_size = sizes[i];
        assert_int_equal(bloomery_local_open(&options, &local, &status),
                         BLOOMERY_LOCAL_INVALID);
        assert_null(local);
        assert_int_equal(status.loads, 7);
    }
    local = open_copy(&options);
    bloomery_local_status(local, &status);
    assert_int_equal(status.loads, 7);
    bloomery_local_free(local);
}

/* ---- threads ------------------------------------------------------------- */

struct asker {
    struct bloomery_local *local;
    atomic_bool done;
};

static void *
ask_until_done(void *arg)
{
    struct asker *asker = arg;
    struct bloomery_local_status status = { .struct_size = sizeof(status) };

    while (!atomic_load(&asker->done)) {
        assert_int_not_equal(bloomery_local_contains(asker->local, "x", 1),
                             BLOOMERY_LOCAL_PRESENT);
        bloomery_local_status(asker->local, &status);
    }
    assert_int_equal(bloomery_local_contains(asker->local, "x", 1),
                     BLOOMERY_LOCAL_UNKNOWN);
    return NULL;
}

TEST(a_copy_is_closed_while_others_ask)
{
    struct fake_server fake;
    struct bloomery_local_options options;

    fake_begin(&fake);
    options = options_for(&fake);
    for (int round = 0; round < ROUNDS; round++) {
        struct asker asker = { .local = open_copy(&options) };
        pthread_t threads[ASKERS];

        for (int i = 0; i < ASKERS; i++) {
            assert_int_equal(
                pthread_create(&threads[i], NULL, ask_until_done, &asker), 0);
        }
        assert_int_equal(bloomery_local_contains(asker.local, "x", 1),
                         BLOOMERY_LOCAL_ABSENT);
        bloomery_local_close(asker.local);
        bloomery_local_close(asker.local);
        atomic_store(&asker.done, true);
        for (int i = 0; i < ASKERS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        bloomery_local_free(asker.local);
    }
    fake_end(&fake);
}

static void
close_at_once(void *context, enum bloomery_local_event event, const char *text)
{
    _Atomic(struct bloomery_local *) *local = context;
    struct bloomery_local *mine;

    (void)event;
    (void)text;
    while ((mine = atomic_load(local)) == NULL) {
    }
    bloomery_local_close(mine);
}

TEST(an_event_may_close_its_copy)
{
    struct fake_server fake;
    struct bloomery_local_options options;
    _Atomic(struct bloomery_local *) shared = NULL;
    struct bloomery_local *local;

    fake_begin(&fake);
    options = options_for(&fake);
    options.flags |= BLOOMERY_LOCAL_NO_WAIT;
    options.on_event = close_at_once;
    options.context = &shared;
    local = open_copy(&options);
    atomic_store(&shared, local);
    for (uint64_t end = fake_now_ms() + 60000;;) {
        struct bloomery_local_status status = { .struct_size = sizeof(status) };

        bloomery_local_status(local, &status);
        if (status.error == BLOOMERY_LOCAL_CLOSED) {
            break;
        }
        assert_true(fake_now_ms() < end);
        (void)usleep(1000);
    }
    bloomery_local_free(local);
    fake_end(&fake);
}

TEST(copies_of_one_server_share_a_thread)
{
    enum { COPIES = 70 }; /* more than one thread has */
    struct fake_server fake;
    struct bloomery_local_options options;
    struct bloomery_local *locals[COPIES];

    fake_begin(&fake);
    options = options_for(&fake);
    for (int i = 0; i < COPIES; i++) {
        locals[i] = open_copy(&options);
    }
    assert_in_range(fake_threads("bloomery-local"), 2, 3);
    for (int i = 0; i < COPIES; i++) {
        assert_int_equal(bloomery_local_contains(locals[i], "x", 1),
                         BLOOMERY_LOCAL_ABSENT);
        bloomery_local_free(locals[i]);
    }
    for (uint64_t end = fake_now_ms() + 60000;
         fake_threads("bloomery-local") > 0;) {
        assert_true(fake_now_ms() < end);
        (void)usleep(1000);
    }
    fake_end(&fake);
}

/* The thread sanitizer allows no threads after a fork. */
#ifndef __SANITIZE_THREAD__
/* The child exits with what it found: 0 if all is right. */
static int
live_as_child(struct bloomery_local *parents,
              const struct bloomery_local_options *options)
{
    struct bloomery_local *own;

    if (bloomery_local_contains(parents, "x", 1) != BLOOMERY_LOCAL_UNKNOWN) {
        return 1;
    }
    bloomery_local_free(parents);
    if (bloomery_local_open(options, &own, NULL) != BLOOMERY_LOCAL_OK) {
        return 2;
    }
    if (bloomery_local_contains(own, "x", 1) != BLOOMERY_LOCAL_ABSENT) {
        return 3;
    }
    bloomery_local_free(own);
    return 0;
}

TEST(a_forked_child_opens_its_own)
{
    struct fake_server fake;
    struct bloomery_local_options options;
    struct bloomery_local *local;
    int status = 0;
    pid_t child;

    fake_begin(&fake);
    options = options_for(&fake);
    local = open_copy(&options);
    child = fork();
    if (child == 0) {
        _exit(live_as_child(local, &options));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(bloomery_local_contains(local, "x", 1),
                     BLOOMERY_LOCAL_ABSENT);
    bloomery_local_free(local);
    fake_end(&fake);
}
#endif
