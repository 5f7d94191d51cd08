/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of a limited user: alone, in pipelines, queued and in EXEC, and in
 * pieces.
 */
#include "engine/rights.h"

#include "../access/users_help.h"
#include "access/acl_log.h"
#include "access/users.h"
#include "base/metrics.h"
#include "rig.h"

#define NO(name)                                                               \
    "-NOPERM this user has no permissions to run the '" name "' command\r\n"
#define NO_KEY                                                                 \
    "-NOPERM this user has no permissions to access one of the keys used as "  \
    "arguments\r\n"
#define CHANGED                                                                \
    "-NOPERM ACLs rules changed between the moment the transaction was "       \
    "accumulated and the EXEC call. This command is no longer allowed for "    \
    "the "                                                                     \
    "following reason: "

static struct rig *
rig_as(const char *rules)
{
    struct rig *rig = rig_new();

    session_set_user(&rig->session, users_must(rig->service.users, "u", rules));
    rig->service.acl_log = acl_log_new();
    return rig;
}

static void
end(struct rig *rig)
{
    acl_log_free(rig->service.acl_log);
    rig_free(rig);
}

TEST(a_limited_user_is_refused_what_it_may_not_do)
{
    struct rig *rig = rig_as("+@bloom -bf.reset ~k* %R~r*");

    run_and_expect(rig,
                   "BF.ADD k a; BF.ADD k a; BF.ADD x a; BF.ADD x a; BF.EXISTS "
                   "r a; BF.ADD r a; BF.RESET k; PING; NOPE",
                   ":1\r\n:0\r\n" NO_KEY NO_KEY ":0\r\n" NO_KEY NO("BF.RESET")
                       NO("ping") "-ERR unknown command 'NOPE', with args "
                                  "beginning with: \r\n");
    end(rig);
}

TEST(each_command_of_a_pipeline_with_many_keys_is_checked)
{
    struct rig *rig = rig_as("+bf.add +bf.exists ~k* %R~r*");

    for (int turn = 0; turn < 2; turn++) {
        run_and_expect(
            rig,
            "BF.EXISTS k1 a; BF.EXISTS r1 a; BF.EXISTS x1 a; BF.EXISTS k2 a; "
            "BF.EXISTS k3 a; BF.EXISTS k4 a; BF.EXISTS k5 a; BF.EXISTS x2 a; "
            "BF.EXISTS k6 a; BF.EXISTS k7 a; BF.CARD k1; BF.EXISTS k8 a",
            ":0\r\n:0\r\n" NO_KEY ":0\r\n:0\r\n:0\r\n:0\r\n" NO_KEY
            ":0\r\n:0\r\n" NO("BF.CARD") ":0\r\n");
    }
    run_and_expect(rig,
                   "BF.ADD k1 a; BF.ADD k2 a; BF.ADD k3 a; BF.ADD r1 a; BF.ADD "
                   "k4 a; BF.ADD k5 a; BF.ADD k6 a; BF.ADD x a",
                   ":1\r\n:1\r\n:1\r\n" NO_KEY ":1\r\n:1\r\n:1\r\n" NO_KEY);
    end(rig);
}

TEST(an_unlimited_user_costs_no_check)
{
    struct rig *rig = rig_as("+@all ~* &*");

    assert_false(rights_are_limited(&rig->session));
    run_and_expect(rig, "BF.ADD x a; PING", ":1\r\n+PONG\r\n");
    users_must(rig->service.users, "u", "-ping");
    assert_true(rights_are_limited(&rig->session));
    run_and_expect(rig, "BF.ADD x a; PING", ":0\r\n" NO("ping"));
    end(rig);
}

TEST(what_is_refused_when_it_is_queued_aborts_the_transaction)
{
    struct rig *rig = rig_as("+@all ~k");

    run_and_expect(
        rig, "MULTI; BF.ADD x a; EXEC",
        "+OK\r\n" NO_KEY
        "-EXECABORT Transaction discarded because of previous errors.\r\n");
    end(rig);
}

TEST(exec_checks_again)
{
    struct rig *rig = rig_as("+@all ~k &c");

    run_and_expect(rig, "MULTI; BF.ADD k a; PUBLISH c m; DBSIZE",
                   "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    users_must(rig->service.users, "u", "resetkeys resetchannels -dbsize");
    run_and_expect(rig, "EXEC",
                   "*3\r\n" CHANGED
                   "no permission to touch the specified keys\r\n" CHANGED
                   "no permission to access one of the channels used as "
                   "arguments\r\n" CHANGED
                   "no permission to execute the command or subcommand\r\n");
    end(rig);
}

TEST(a_command_of_many_names_is_checked_before_its_first_piece)
{
    struct rig *rig = rig_as("+@all ~k");

    run_text(rig, "BF.ADD k a", true);
    batch_begin(rig);
    batch_command(rig);
    batch_word(rig, slice_lit("DEL"));
    for (int i = 0; i < 2500; i++) {
        batch_word(rig, i < 2000 ? slice_lit("k") : slice_lit("x"));
    }
    batch_run(rig);
    expect_replies(rig, NO_KEY);
    assert_int_equal(1, count_keys(rig, 0));
    end(rig);
}

/* Gives the user a hundred patterns, of which the last one matches k. */
static void
give_patterns(struct rig *rig)
{
    for (int i = 0; i < 99; i++) {
        char rule[16];

        (void)snprintf(rule, sizeof(rule), "~%02d", i);
        (void)users_must(rig->service.users, "u", rule);
    }
    (void)users_must(rig->service.users, "u", "~k +@all");
}

/* Sends a command of so many names "k"; the last one is LAST. */
static void
batch_of_names(struct rig *rig, const char *command, int count,
               const char *last)
{
    batch_begin(rig);
    batch_command(rig);
    batch_word(rig, slice_of(command));
    for (int i = 1; i < count; i++) {
        batch_word(rig, slice_lit("k"));
    }
    batch_word(rig, slice_of(last));
}

static uint32_t
turn(struct rig *rig)
{
    return dispatch_batch(rig->worker, &rig->session, &rig->batch, 0,
                          UINT64_MAX, &rig->out);
}

/* 900 names are one command for the locks, 5000 are split. */
TEST(many_names_are_checked_in_slices)
{
    static const struct {
        const char *command;
        int count;
        unsigned least; /* turns */
    } cases[] = { { "EXISTS", 900, 2 }, { "EXISTS", 5000, 12 } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_as("on");
        unsigned turns = 1;

        give_patterns(rig);
        run_text(rig, "BF.ADD k a", true);
        batch_of_names(rig, cases[i].command, cases[i].count, "k");
        rig->out.len = 0;
        while (turn(rig) == 0) {
            turns++;
        }
        assert_true(turns >= cases[i].least);
        expect_replies(rig, cases[i].count == 900 ? ":900\r\n" : ":5000\r\n");
        assert_null(rig->session.rights);
        batch_of_names(rig, cases[i].command, cases[i].count, "x");
        batch_run(rig);
        expect_replies(rig, NO_KEY);
        assert_null(rig->session.rights);
        end(rig);
    }
}

/* What was checked before the change counts no more, in any part. */
TEST(a_check_begins_anew_when_the_rules_change)
{
    for (unsigned after = 1; after < 16; after++) {
        struct rig *rig = rig_as("on");
        unsigned turns = 0;
        bool over;

        give_patterns(rig);
        run_text(rig, "BF.ADD k a", true);
        batch_of_names(rig, "EXISTS", 5000, "k");
        rig->out.len = 0;
        do {
            if (turns++ == after) {
                (void)users_must(rig->service.users, "u", "resetkeys");
            }
            over = turn(rig) > 0;
        } while (!over);
        if (turns > after) {
            expect_replies(rig, NO_KEY);
        } else {
            expect_replies(rig, ":5000\r\n");
        }
        end(rig);
    }
}

struct seen {
    char text[512];
};

static void
on_total(void *ctx, size_t entries)
{
    (void)ctx;
    (void)entries;
}

static void
on_entry(void *ctx, const struct acl_log_entry *entry)
{
    struct seen *seen = ctx;
    size_t len = strlen(seen->text);

    (void)snprintf(seen->text + len, sizeof(seen->text) - len,
                   "%llu %s %s %.*s %.*s;", (unsigned long long)entry->count,
                   entry->reason, entry->context, (int)entry->object.len,
                   entry->object.data, (int)entry->user.len, entry->user.data);
}

TEST(refusals_are_logged_and_counted)
{
    struct rig *rig = rig_as("+@all -ping ~k &c db=0");
    struct seen seen = { "" };
    int64_t before = metric_sum(METRIC_DENIED_DBS);

    run_text(rig,
             "PING; BF.ADD x a; BF.ADD x b; PUBLISH d m; SELECT 1; MULTI; "
             "CLIENT ID; BF.ADD y a; DISCARD; FLUSHALL",
             true);
    acl_log_visit(rig->service.acl_log, 10,
                  &(struct acl_log_visitor){ on_total, on_entry, &seen });
    assert_string_equal("1 database toplevel 0 u;1 key multi y u;1 database "
                        "toplevel 1 u;1 channel toplevel d u;2 key toplevel x "
                        "u;1 command toplevel ping u;",
                        seen.text);
    assert_int_equal(before + 2, metric_sum(METRIC_DENIED_DBS));
    end(rig);
}
