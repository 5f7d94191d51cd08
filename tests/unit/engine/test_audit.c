/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which lines the log gets about commands of operators, and how many.
 */
#include "engine/audit.h"

#include "base/clock.h"
#include "base/log.h"
#include "rig.h"

#include <stdlib.h>
#include <unistd.h>

struct fixture {
    struct rig *rig;
    char path[32]; /* of the log */
    char text[65536];
};

static struct fixture *
fixture_new(void)
{
    struct fixture *f = mem_zalloc(sizeof(*f));
    int fd;

    f->rig = rig_new();
    strcpy(f->path, "/tmp/bloomery-audit-XXXXXX");
    fd = mkstemp(f->path);
    assert_true(fd >= 0);
    assert_int_equal(0, close(fd));
    log_set_level(LOG_NOTICE);
    assert_int_equal(0, log_open(f->path));
    return f;
}

static void
fixture_free(struct fixture *f)
{
    assert_int_equal(0, log_open("/dev/stderr"));
    assert_int_equal(0, unlink(f->path));
    rig_free(f->rig);
    mem_free(f);
}

/* Returns the log, and counts its lines. */
static unsigned
count_lines(struct fixture *f)
{
    FILE *file = fopen(f->path, "r");
    unsigned count = 0;

    assert_non_null(file);
    f->text[fread(f->text, 1, sizeof(f->text) - 1, file)] = '\0';
    assert_int_equal(0, fclose(file));
    for (const char *at = f->text; (at = strchr(at, '\n')) != NULL; at++) {
        count++;
    }
    return count;
}

TEST(only_commands_of_operators_are_logged)
{
    struct fixture *f = fixture_new();

    run_text(f->rig, "BF.ADD key item", false);
    run_text(f->rig, "CONFIG GET maxmemory", false);
    assert_int_equal(0, count_lines(f));
    run_text(f->rig, "FLUSHALL", false);
    assert_int_equal(1, count_lines(f));
    assert_non_null(strstr(f->text, "what=\"FLUSHALL\" user="));
    assert_non_null(strstr(f->text, "result=OK left-out=0"));
    fixture_free(f);
}

TEST(rights_that_hold_are_shown_and_passwords_are_not)
{
    struct fixture *f = fixture_new();

    run_text(f->rig, "ACL SETUSER bob on >hidden ~hidden ~* +@read", false);
    (void)count_lines(f);
    assert_non_null(strstr(f->text, "what=\"ACL SETUSER bob on (redacted) "
                                    "(redacted) ~* +@read\" "));
    run_text(f->rig, "ACL SETUSER bob -@all +hidden", false);
    (void)count_lines(f);
    assert_non_null(strstr(f->text, "bob (redacted) (redacted)\" "));
    assert_null(strstr(f->text, "hidden"));
    fixture_free(f);
}

static void
wait_next_second(void)
{
    uint64_t second = clock_mono_ms() / 1000;

    while (clock_mono_ms() / 1000 == second) {
        (void)usleep(1000);
    }
}

/* Runs a command so often in a second that lines are left out. Returns how many
 * were, when that second is over. */
static unsigned
flood(struct fixture *f)
{
    wait_next_second();
    for (unsigned i = 0; i < 3 * AUDIT_A_SECOND; i++) {
        run_text(f->rig, "FLUSHDB", false);
    }
    wait_next_second();
    return 3 * AUDIT_A_SECOND - count_lines(f);
}

static void
assert_counts(struct fixture *f, const char *before, unsigned left_out)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%sleft-out=%u\n", before, left_out);
    (void)count_lines(f);
    assert_non_null(strstr(f->text, text));
}

TEST(what_is_left_out_in_a_second_is_counted)
{
    struct fixture *f = fixture_new();
    unsigned left_out = flood(f);

    run_text(f->rig, "FLUSHDB", false);
    assert_counts(f, "", left_out);
    fixture_free(f);
}

TEST(the_end_of_a_flood_is_counted_once)
{
    struct fixture *f = fixture_new();
    unsigned lines, left_out;

    audit_tick();
    assert_int_equal(0, count_lines(f));
    left_out = flood(f);
    lines = count_lines(f);
    audit_tick();
    audit_tick();
    if (left_out > 0) {
        assert_int_equal(lines + 1, count_lines(f));
        assert_counts(f, "what=\"flushdb\" ", left_out);
    }
    run_text(f->rig, "FLUSHDB", false);
    assert_counts(f, "result=OK ", 0);
    fixture_free(f);
}
