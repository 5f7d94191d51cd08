/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Passwords from files: what is taken, what is refused and by which words.
 */
#include "conf/conf_secret.h"

#include "../test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    char dir[32], path[64];
    struct conf conf;
    struct conf_notes notes;
    struct conf_error error;
};

static void
set(struct place *place, int option, const char *value)
{
    assert_true(conf_set(&place->conf, &conf_table[option], slice_of(value),
                         &place->error));
}

static void
open_place(struct place *place)
{
    memset(place, 0, sizeof(*place));
    (void)snprintf(place->dir, sizeof(place->dir), "/tmp/bloomery-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    (void)snprintf(place->path, sizeof(place->path), "%s/secret", place->dir);
    conf_init(&place->conf);
    set(place, CONF_OPTION_requirepass_file, place->path);
}

static void
close_place(struct place *place)
{
    (void)unlink(place->path);
    assert_int_equal(0, rmdir(place->dir));
    conf_fini(&place->conf);
}

static bool
load(struct place *place, const char *bytes, size_t len, mode_t mode)
{
    FILE *file = fopen(place->path, "we");
    bool loaded;

    assert_non_null(file);
    assert_int_equal(len, fwrite(bytes, 1, len, file));
    assert_int_equal(0, fclose(file));
    assert_int_equal(0, chmod(place->path, mode));
    set(place, CONF_OPTION_requirepass, "");
    memset(&place->notes, 0, sizeof(place->notes));
    memset(&place->error, 0, sizeof(place->error));
    loaded =
        conf_secrets_load(&place->conf, &place->notes, NULL, &place->error);
    assert_true(loaded == (place->error.text[0] == '\0'));
    return loaded;
}

static void
expect_refused(struct place *place, const char *why)
{
    char text[256];

    (void)snprintf(text, sizeof(text), "requirepass-file: %s: %s", place->path,
                   why);
    assert_string_equal(place->error.text, text);
    assert_string_equal(place->conf.requirepass, "");
}

TEST(a_line_is_the_password_and_one_end_is_taken_off)
{
    static const char *const texts[][2] = {
        { "secret", "secret" },     { "secret\n", "secret" },
        { "secret\r\n", "secret" }, { " a b \n", " a b " },
        { "x\r", "x\r" },
    };
    struct place place;

    open_place(&place);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_true(load(&place, texts[i][0], strlen(texts[i][0]), 0600));
        assert_string_equal(place.conf.requirepass, texts[i][1]);
        assert_string_equal(place.notes.text, "");
    }
    close_place(&place);
}

TEST(a_file_without_one_password_is_refused)
{
    char longer[600];
    struct place place;

    open_place(&place);
    assert_false(load(&place, "", 0, 0600));
    expect_refused(&place, "it is empty");
    assert_false(load(&place, "\n", 1, 0600));
    expect_refused(&place, "it is empty");
    assert_false(load(&place, "a\n\n", 3, 0600));
    expect_refused(&place, "it has more than one line");
    assert_false(load(&place, "a\0b\n", 4, 0600));
    expect_refused(&place, "it has a zero byte");
    memset(longer, 'x', sizeof(longer));
    assert_false(load(&place, longer, sizeof(longer), 0600));
    assert_non_null(strstr(place.error.text, "512"));
    assert_true(load(&place, longer, 512, 0600));
    (void)unlink(place.path);
    assert_false(
        conf_secrets_load(&place.conf, &place.notes, NULL, &place.error));
    assert_non_null(strstr(place.error.text, "both set"));
    set(&place, CONF_OPTION_requirepass, "");
    assert_false(
        conf_secrets_load(&place.conf, &place.notes, NULL, &place.error));
    expect_refused(&place, "No such file or directory");
    set(&place, CONF_OPTION_requirepass_file, place.dir);
    assert_false(
        conf_secrets_load(&place.conf, &place.notes, NULL, &place.error));
    assert_non_null(strstr(place.error.text, ": it is not a file"));
    close_place(&place);
}

TEST(a_readable_password_file_is_noted_and_a_writable_one_refused)
{
    struct place place;

    open_place(&place);
    assert_true(load(&place, "x", 1, 0640));
    assert_string_equal(place.notes.text, "");
    assert_true(load(&place, "x", 1, 0444));
    assert_non_null(strstr(place.notes.text, "others can read it"));
    assert_string_equal(place.conf.requirepass, "x");
    assert_false(load(&place, "x", 1, 0602));
    expect_refused(&place, "others can write to it: chmod o-rw");
    close_place(&place);
}

TEST(the_file_is_stronger_than_a_client)
{
    struct slice pair[] = { slice_lit("requirepass"), slice_lit("y") };
    struct conf_changes changes;
    struct place place;

    open_place(&place);
    assert_true(load(&place, "x", 1, 0600));
    assert_false(conf_set_many(&place.conf, pair, 1, &changes, &place.error));
    assert_non_null(strstr(place.error.text, "send SIGHUP"));
    assert_string_equal(place.conf.requirepass, "x");
    pair[0] = slice_lit("requirepass-file");
    assert_false(conf_set_many(&place.conf, pair, 1, &changes, &place.error));
    assert_non_null(strstr(place.error.text, "immutable"));
    close_place(&place);
}
