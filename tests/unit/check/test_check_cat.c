/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cat on increments that a real session made: the log's words as text, words
 * that a client may send as RESP, and what comes before damage.
 */
#include "check/check_cat.h"

#include "../capture.h"
#include "../engine/rig.h"
#include "../home.h"
#include "../journal/drain_help.h"

enum { KEY = 77 };

struct place {
    char dir[64], path[96];
    struct rig *rig;
    struct check check;
    struct capture out, err;
};

static void
place_open(struct place *place)
{
    *place = (struct place){ .dir = "/tmp/check-cat-XXXXXX",
                             .check = { .tool = { .name = "test" } } };
    home_make(place->dir);
    (void)snprintf(place->path, sizeof(place->path), "%s/incr-1", place->dir);
    place->rig = rig_new();
}

static void
place_close(struct place *place)
{
    rig_free(place->rig);
    home_remove(place->dir);
}

/* Writes the log of these commands as an increment; flips a byte of it, unless
 * it is 0, counted from the end. */
static void
write_log(struct place *place, const char *commands, size_t flip)
{
    struct group_file first = { .key = KEY };
    char line[GROUP_FIRST_LINE_BYTES];
    struct buf bytes = { 0 };
    FILE *file = fopen(place->path, "w");

    run_text(place->rig, commands, false);
    journal_drain(place->rig->journal, KEY, &bytes);
    if (flip > 0) {
        bytes.data[bytes.len - flip] ^= 1;
    }
    memset(first.run_id, 'a', sizeof(first.run_id) - 1);
    group_write_first_line(&first, line);
    assert_non_null(file);
    assert_int_equal(sizeof(line), fwrite(line, 1, sizeof(line), file));
    assert_int_equal(bytes.len, fwrite(bytes.data, 1, bytes.len, file));
    assert_int_equal(0, fclose(file));
    buf_free(&bytes);
}

static void
cat(struct place *place, const char *path)
{
    capture_begin(&place->out, STDOUT_FILENO);
    capture_begin(&place->err, STDERR_FILENO);
    check_cat(&place->check, path);
    (void)capture_end(&place->err);
    (void)capture_end(&place->out);
}

TEST(text_has_a_line_for_each_command_of_the_log)
{
    struct place place;

    place_open(&place);
    write_log(&place, "BF.ADD k a; BF.ADD k b; SELECT 3; BF.ADD k \x01; DEL k",
              0);
    cat(&place, place.path);
    assert_string_equal("", place.err.text);
    assert_int_equal(CHECK_INTACT, place.check.tool.status);
    assert_contains(place.out.text, "\"SELECT\" \"0\"\n\"BF.INSERT\" \"k\" ");
    assert_contains(place.out.text, "\"INCARNATION\"");
    assert_contains(place.out.text, "\n\"BF.ADD\" \"k\" \"b\"\n");
    assert_contains(place.out.text, "\"SELECT\" \"3\"\n");
    assert_contains(place.out.text, "\"\\x01\"");
    assert_contains(place.out.text, "\n\"DEL\" \"k\"\n");
    place_close(&place);
}

TEST(resp_has_words_that_a_client_may_send)
{
    struct place place;

    place_open(&place);
    place.check.resp = true;
    write_log(&place,
              "BF.ADD k a; BF.ADD k b; BF.MADD k c d; "
              "BF.RESERVE d 0.01 100 DELETABLE; BF.ADD d x; BF.DEL d x",
              0);
    cat(&place, place.path);
    assert_string_equal("", place.err.text);
    assert_contains(place.out.text,
                    "*5\r\n$9\r\nBF.INSERT\r\n$1\r\nk\r\n$8\r\nNOCREATE\r\n"
                    "$5\r\nITEMS\r\n$1\r\nb\r\n");
    assert_null(strstr(place.out.text, "INCARNATION"));
    assert_null(strstr(place.out.text, "PLACED"));
    place_close(&place);
}

TEST(a_damaged_log_is_printed_up_to_the_damage)
{
    struct place place;

    place_open(&place);
    write_log(&place, "BF.ADD k a; BF.ADD k b", GROUP_SEAL_BYTES + 3);
    cat(&place, place.path);
    assert_null(strstr(place.out.text, "\"BF.ADD\" \"k\" \"b\""));
    assert_contains(place.err.text, "test: ");
    assert_contains(place.err.text, "incr-1");
    place_close(&place);
}

TEST(snapshots_that_are_damaged_and_other_paths_are_named)
{
    struct place place;
    char path[128];

    place_open(&place);
    home_put(place.dir, "x.snapshot", "BLMYSNAP and nothing");
    (void)snprintf(path, sizeof(path), "%s/x.snapshot", place.dir);
    cat(&place, path);
    assert_string_equal("", place.out.text);
    assert_contains(place.err.text, "x.snapshot");
    assert_int_equal(CHECK_DAMAGED, place.check.tool.status);
    cat(&place, "/nothing/here");
    assert_contains(place.err.text, "/nothing/here: cannot be opened");
    assert_int_equal(CHECK_UNREADABLE, place.check.tool.status);
    place_close(&place);
}
