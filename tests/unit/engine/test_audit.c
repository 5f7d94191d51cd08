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

TEST(what_is_left_out_in_a_second_is_counted)
{
    struct fixture *f = fixture_new();
    uint64_t second;
    unsigned left_out;

    for (unsigned i = 0; i < 3 * AUDIT_A_SECOND; i++) {
        run_text(f->rig, "FLUSHDB", false);
    }
    second = clock_mono_ms() / 1000;
    while (clock_mono_ms() / 1000 == second) {
        (void)usleep(1000);
    }
    left_out = 3 * AUDIT_A_SECOND - count_lines(f);
    run_text(f->rig, "FLUSHDB", false);
    (void)count_lines(f);
    if (left_out > 0) {
        char field[32];

        (void)snprintf(field, sizeof(field), "left-out=%u\n", left_out);
        assert_non_null(strstr(f->text, field));
    }
    fixture_free(f);
}
