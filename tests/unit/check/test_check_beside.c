/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files beside the data: what is copied, changed and left out.
 */
#include "check/check_beside.h"

#include "../capture.h"
#include "../home.h"
#include "base/mem.h"
#include "cluster/holdings.h"

struct home {
    char dir[64];
    char path[CHECK_PATH_MAX];
    struct check check;
    struct check_made made;
};

static void
home_open(struct home *home)
{
    *home = (struct home){ .dir = "/tmp/check-beside-XXXXXX",
                           .check = { .tool = { .name = "test" } },
                           .made = { .check = &home->check } };
    home_make(home->dir);
}

static void
home_close(struct home *home)
{
    for (size_t i = 0; i < home->made.count; i++) {
        mem_free(home->made.paths[i]);
    }
    mem_free(home->made.paths);
    home_remove(home->dir);
}

static const char *
at(struct home *home, const char *name)
{
    (void)snprintf(home->path, sizeof(home->path), "%s/%s", home->dir, name);
    return home->path;
}

/* Writes a text as the deed asks. */
static bool
put(struct home *home, enum file_deed deed, const char *text, const char *name)
{
    struct buf buf = { 0 };
    bool good;

    buf_append_slice(&buf, slice_of(text));
    good = check_beside_put(&home->made, deed, &buf, "/from", at(home, name));
    buf_free(&buf);
    return good;
}

TEST(passwords_are_left_out_if_secrets_are)
{
    static const char text[] = "requirepass secret\n"
                               "port 7379\n"
                               "requirepass-file /x\n"
                               "masterauth=other\n"
                               "requirepass";
    struct home home;

    home_open(&home);
    assert_true(put(&home, DEED_OPTIONS, text, "all"));
    home_expect(home.dir, "all", text);
    home.check.without_secrets = true;
    assert_true(put(&home, DEED_OPTIONS, text, "few"));
    home_expect(home.dir, "few", "port 7379\nrequirepass-file /x\n");
    assert_true(put(&home, DEED_SECRET, "secret", "none"));
    home_expect(home.dir, "none", NULL);
    home_close(&home);
}

TEST(a_role_is_printed_or_kept)
{
    struct home home;
    bool good = false;

    home_open(&home);
    EXPECT_PRINTED(STDERR_FILENO,
                   good = put(&home, DEED_ROLE,
                              "bloomery-role 1\nrole replica a 1\n", "role"),
                   "/from: the role was `replica a 1`: left out");
    assert_true(good);
    home_expect(home.dir, "role", NULL);
    EXPECT_OUTPUT(STDERR_FILENO, good = put(&home, DEED_ROLE, "", "role"), "");
    assert_true(good);
    home.check.keep_role = true;
    assert_true(put(&home, DEED_ROLE, "\nrole primary\n", "role"));
    home_expect(home.dir, "role", "\nrole primary\n");
    home_close(&home);
}

TEST(slots_that_were_held_are_not_held_by_a_copy)
{
    struct holdings *holdings = mem_zalloc(sizeof(*holdings));
    struct buf text = { 0 };
    struct slot_set set = { { 0 } };
    char reason[HOLDINGS_REASON_MAX];
    struct home home;
    char copied[4096];
    bool good = true;
    FILE *file;
    size_t len;

    home_open(&home);
    slot_set_add(&set, 7);
    holdings_set(holdings, &set, 12);
    holdings->known[7] = 12;
    holdings_write_file(holdings, &text);
    assert_true(check_beside_put(&home.made, DEED_KNOWN, &text, "/from",
                                 at(&home, "slots")));
    file = fopen(home.path, "r");
    assert_non_null(file);
    len = fread(copied, 1, sizeof(copied), file);
    assert_int_equal(0, fclose(file));
    assert_true(
        holdings_parse((struct slice){ copied, len }, holdings, reason));
    assert_int_equal(0, holdings->held[7]);
    assert_int_equal(12, holdings->known[7]);
    EXPECT_PRINTED(STDERR_FILENO, good = put(&home, DEED_KNOWN, "?", "bad"),
                   ": left out");
    assert_true(good);
    home_expect(home.dir, "bad", NULL);
    assert_int_equal(CHECK_DAMAGED, home.check.tool.status);
    buf_free(&text);
    mem_free(holdings);
    home_close(&home);
}

TEST(a_text_of_more_than_16_mib_is_not_read)
{
    struct home home;
    char from[CHECK_PATH_MAX];
    bool good = true;

    home_open(&home);
    home_put(home.dir, "from", "");
    memcpy(from, at(&home, "from"), sizeof(from));
    assert_int_equal(0, truncate(from, CHECK_BESIDE_TEXT_MAX + 1));
    EXPECT_PRINTED(STDERR_FILENO,
                   good = check_beside_copy_text(&home.made, DEED_SECRET, from,
                                                 at(&home, "to")),
                   "cannot be read: File too large");
    assert_false(good);
    assert_int_equal(CHECK_UNREADABLE, home.check.tool.status);
    home_expect(home.dir, "to", NULL);
    home_close(&home);
}

TEST(a_directory_is_copied_as_the_list_of_files_says)
{
    struct home home;
    char from[CHECK_PATH_MAX];
    bool good = false;

    home_open(&home);
    assert_int_equal(0, mkdir(at(&home, "from"), 0700));
    memcpy(from, home.path, sizeof(from));
    assert_int_equal(0, mkdir(at(&home, "to"), 0700));
    assert_int_equal(0, mkdir(at(&home, "from/hash-secrets"), 0700));
    home_put(home.dir, "from/hash-secrets/0123456789abcdef", "secret");
    home_put(home.dir, "from/hash-secrets/.hidden", "x");
    home_put(home.dir, "from/users.acl", "user a on\n");
    home_put(home.dir, "from/rewritten.conf", "port 1\n");
    home_put(home.dir, "from/merge.state", "state");
    home_put(home.dir, "from/lock", "");
    home_put(home.dir, "from/notes", "mine");
    home.made.fills = true;
    EXPECT_PRINTED(STDERR_FILENO,
                   good = check_beside_copy(&home.made, from, at(&home, "to"),
                                            check_beside_restore),
                   "/to/users.acl: has the users, if the option aclfile names");
    assert_true(good);
    home_expect(home.dir, "to/users.acl", "user a on\n");
    home_expect(home.dir, "to/rewritten.conf", "port 1\n");
    home_expect(home.dir, "to/hash-secrets/0123456789abcdef", "secret");
    home_expect(home.dir, "to/hash-secrets/.hidden", NULL);
    home_expect(home.dir, "to/lock", NULL);
    home_expect(home.dir, "to/notes", NULL);
    home_close(&home);
}
