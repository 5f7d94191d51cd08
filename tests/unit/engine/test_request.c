/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What handlers call: texts of errors, keys, pauses, and effects that they put
 * together, also without memory and without anybody who listens.
 */
#include "engine/request.h"

#include "base/hash.h"
#include "base/metrics.h"
#include "engine/execute.h"
#include "rig.h"

#include <stdlib.h>

TEST(fail_fills_the_text_and_returns_the_error)
{
    struct rig *rig = rig_new();
    struct request req = madd_request(rig, NULL, 0);
    char long_text[2000];

    assert_int_equal(ERR_CUSTOM,
                     request_fail(&req, ERR_CUSTOM, "%d of %s", 3, "four"));
    assert_string_equal("3 of four", rig->worker->detail);
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_int_equal(ERR_ARITY, request_fail(&req, ERR_ARITY, "%s", long_text));
    assert_int_equal(sizeof(rig->worker->detail) - 1,
                     strlen(rig->worker->detail));
    rig_free(rig);
}

TEST(a_key_has_its_hash_and_the_session_s_database)
{
    struct rig *rig = rig_new();
    const struct slice argv[] = { slice_lit("del"), slice_lit("a"),
                                  slice_lit("b\0c") };
    struct request req = madd_request(rig, argv, 3);
    struct key key = request_key(&req, 2);

    assert_true(slice_equal(argv[2], key.name));
    assert_true(hash_name(argv[2]) == key.hash);
    assert_int_equal(0, key.db);
    rig->session.db = 7;
    assert_int_equal(7, request_key(&req, 1).db);
    rig_free(rig);
}

TEST(a_database_is_a_number_below_the_limit)
{
    static const struct {
        const char *text;
        enum err err;
    } cases[] = {
        { "0", OK },
        { "15", OK },
        { "16", ERR_DB_RANGE },
        { "-1", ERR_DB_RANGE },
        { "2147483648", ERR_CUSTOM },
        { "-2147483649", ERR_CUSTOM },
        { "99999999999999999999", ERR_NOT_INTEGER },
        { "", ERR_NOT_INTEGER },
        { "1 ", ERR_NOT_INTEGER },
    };
    struct rig *rig = rig_new();
    struct request req = madd_request(rig, NULL, 0);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t db = 99;

        assert_int_equal(cases[i].err,
                         request_parse_db(&req, slice_of(cases[i].text), &db));
        assert_int_equal(db, cases[i].err == OK ? atoi(cases[i].text) : 99);
    }
    rig_free(rig);
}

static unsigned freed;

static void
count_free(void *state)
{
    assert_non_null(state);
    freed++;
}

TEST(a_pause_is_kept_by_the_session_until_it_ends)
{
    struct rig *rig = rig_new();
    struct request req = madd_request(rig, NULL, 0);
    int pause = 0;

    freed = 0;
    assert_null(request_resumed(&req));
    assert_true(request_may_pause(&req));
    request_pause(&req, &pause, count_free);
    assert_ptr_equal(&pause, request_resumed(&req));
    rig->worker->in_exec = true; /* another's: in EXEC nothing is resumed */
    assert_false(request_may_pause(&req));
    assert_null(request_resumed(&req));
    rig->worker->in_exec = false;
    assert_int_equal(0, freed);
    rig_free(rig);
    assert_int_equal(1, freed);
}

TEST(an_effect_keeps_its_words)
{
    struct rig *rig = rig_new();
    const struct slice argv[] = { slice_lit("BF.MADD"), slice_lit("key") };
    struct request req = madd_request(rig, argv, 2);
    char number[16] = "12345";

    assert_int_equal(EFFECT_VERBATIM, req.effect.kind);
    assert_int_equal(OK, request_effect_begin(&req, 100));
    assert_int_equal(EFFECT_REWRITTEN, req.effect.kind);
    request_effect_add(&req, slice_lit("PEXPIREAT"));
    request_effect_add(&req, argv[1]);
    request_effect_add(&req, request_arena_copy(&req, slice_of(number)));
    memset(number, 'x', 5); /* the copy is ours */
    for (int i = 3; i < 100; i++) {
        request_effect_add(&req, slice_lit("word"));
    }
    assert_int_equal(100, req.effect.argc);
    assert_true(slice_equal(slice_lit("PEXPIREAT"), req.effect.argv[0]));
    assert_ptr_equal(argv[1].data, req.effect.argv[1].data);
    assert_true(slice_equal(slice_lit("12345"), req.effect.argv[2]));
    assert_true(slice_equal(slice_lit("word"), req.effect.argv[99]));
    rig_free(rig);
}

TEST(two_kilobytes_of_copies_do_not_move_the_words)
{
    struct rig *rig = rig_new();
    struct request req = madd_request(rig, NULL, 0);
    char bytes[64];
    struct slice copy[32];

    assert_int_equal(OK, request_effect_begin(&req, 32));
    for (int i = 0; i < 32; i++) {
        memset(bytes, 'a' + i % 26, sizeof(bytes));
        copy[i] =
            request_arena_copy(&req, (struct slice){ bytes, sizeof(bytes) });
        request_effect_add(&req, copy[i]);
    }
    for (int i = 0; i < 32; i++) {
        memset(bytes, 'a' + i % 26, sizeof(bytes));
        assert_memory_equal(bytes, req.effect.argv[i].data, sizeof(bytes));
    }
    rig_free(rig);
}

TEST(without_memory_an_effect_does_not_begin)
{
    struct rig *rig = rig_new();
    struct request req = madd_request(rig, NULL, 0);

    mem_fail_at(1);
    assert_int_equal(ERR_NOMEM, request_effect_begin(&req, 10));
    assert_true(mem_fail_clear());
    assert_int_equal(EFFECT_VERBATIM, req.effect.kind);
    assert_int_equal(OK, request_effect_begin(&req, 10)); /* no grudge */
    rig_free(rig);
}

TEST(nothing_is_put_together_while_nobody_listens)
{
    struct rig *rig = rig_new();
    struct request req = madd_request(rig, NULL, 0);
    struct slice word = slice_lit("word");
    uint64_t used = mem_used();

    rig->service.journal = NULL;
    assert_int_equal(OK, request_effect_begin(&req, 1000000));
    request_effect_add(&req, word);
    assert_ptr_equal(word.data, request_arena_copy(&req, word).data);
    assert_int_equal(0, req.effect.argc);
    assert_int_equal(used, mem_used());
    rig_free(rig);
}

TEST(client_unblock_ends_a_wait_once)
{
    struct rig *rig = rig_new();
    struct request req = madd_request(rig, NULL, 0);
    int waits = 0;

    request_block(&req, &waits, NULL);
    assert_int_equal(CONN_FOR_EVENT, rig->session.wait);
    assert_int_equal(SESSION_BLOCKED, atomic_load(&rig->session.blocked));
    assert_int_equal(SESSION_RUNS, request_unblocked(&req));
    /* Who wants to unblock it while it looks is told that it is blocked. */
    assert_int_equal(SESSION_BLOCKED, atomic_load(&rig->session.blocked));
    atomic_store(&rig->session.blocked, SESSION_UNBLOCK_ERROR);
    request_block(&req, &waits, NULL);
    assert_int_equal(SESSION_UNBLOCK_ERROR, request_unblocked(&req));
    atomic_store(&rig->session.blocked, SESSION_WAITS);
    assert_int_equal(SESSION_RUNS, request_unblocked(&req));
    rig->session.again = NULL;
    rig_free(rig);
}
