/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options into files, with calls that fail; whole servers, crashes and
 * read-only directories: tests/scenario/test_rewrite.py.
 */
#include "admin/conf_file.h"

#include "../test.h"
#include "base/file.h"
#include "conf/conf_load.h"

#include <errno.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct home {
    char dir[32], path[48], beside[64];
    struct conf conf;
    atomic_int done;
};

static void
set(struct home *home, const char *name, const char *value)
{
    struct conf_error error;

    assert_true(conf_set(&home->conf, conf_find(slice_of(name)),
                         slice_of(value), &error));
}

static void
put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(0, fclose(file));
}

static void
home_open(struct home *home)
{
    memset(home, 0, sizeof(*home));
    log_set_level((enum log_level)CONF_LOG_NOTHING);
    (void)snprintf(home->dir, sizeof(home->dir), "/tmp/conf-file-XXXXXX");
    assert_non_null(mkdtemp(home->dir));
    (void)snprintf(home->path, sizeof(home->path), "%s/x.conf", home->dir);
    (void)snprintf(home->beside, sizeof(home->beside), "%s/rewritten.conf",
                   home->dir);
    conf_init(&home->conf);
    set(home, "dir", home->dir);
    set(home, "timeout", "7");
    put(home->path, "[network]\ntimeout = 1\n");
}

static int
remove_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
    (void)stat;
    (void)type;
    (void)at;
    return remove(path);
}

static void
home_close(struct home *home)
{
    conf_fini(&home->conf);
    assert_int_equal(0, nftw(home->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS));
}

static void
on_done(void *ctx)
{
    atomic_fetch_add(&((struct home *)ctx)->done, 1);
}

/* Writes once; the error's text, or "". */
static void
rewrite(struct home *home, const char *path, char ret_error[CONF_ERROR_MAX])
{
    struct conf_file *file = conf_file_new(path, on_done, home);
    struct conf_file_job *job = NULL;
    const char *error;

    assert_int_equal(OK, conf_file_begin(file, &home->conf, true, &job));
    conf_file_wait(file, job);
    assert_true(conf_file_is_done(job));
    error = conf_file_error(job);
    (void)snprintf(ret_error, CONF_ERROR_MAX, "%s", error != NULL ? error : "");
    conf_file_forget(job);
    conf_file_free(file);
    assert_int_equal(1, atomic_exchange(&home->done, 0));
}

static void
check(struct home *home, int64_t in_file, int64_t in_all)
{
    struct conf conf;
    struct conf_error error;

    conf_init(&conf);
    assert_true(conf_load_file(&conf, home->path, &error));
    assert_int_equal(in_file, conf.timeout);
    if (access(home->beside, F_OK) == 0) {
        assert_true(conf_load_file(&conf, home->beside, &error));
    }
    assert_int_equal(in_all, conf.timeout);
    conf_fini(&conf);
}

TEST(the_file_gets_the_options_in_force)
{
    struct home home;
    char error[CONF_ERROR_MAX];

    home_open(&home);
    rewrite(&home, home.path, error);
    assert_string_equal("", error);
    check(&home, 7, 7);
    assert_int_equal(-1, access(home.beside, F_OK));
    home_close(&home);
}

TEST(without_a_file_there_is_one_in_the_directory)
{
    struct home home;
    struct stat stat_beside;
    char error[CONF_ERROR_MAX];

    home_open(&home);
    rewrite(&home, "", error);
    assert_string_equal("", error);
    check(&home, 1, 7);
    assert_int_equal(0, stat(home.beside, &stat_beside));
    assert_int_equal(0600, stat_beside.st_mode & 0777);
    rewrite(&home, NULL, error);
    assert_string_equal("", error);
    home_close(&home);
}

/* One call fails: the options are in one of the files, or the client hears of
 * it and they are as before; no rubbish is left. */
TEST(a_call_that_fails_loses_nothing)
{
    for (int call = 0; call < FILE_CALL_COUNT; call++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct home home;
            char error[CONF_ERROR_MAX];
            char path[64];

            home_open(&home);
            put(home.beside, "[network]\ntimeout = 2\n");
            file_fail_at((enum file_call)call, nth, EIO, false);
            rewrite(&home, home.path, error);
            fired = file_fail_clear();
            if (error[0] == '\0') {
                struct conf conf;
                struct conf_error why;

                conf_init(&conf);
                assert_true(conf_load_file(&conf, home.path, &why));
                if (access(home.beside, F_OK) == 0) {
                    assert_true(conf_load_file(&conf, home.beside, &why));
                }
                assert_int_equal(7, conf.timeout);
                conf_fini(&conf);
            }
            (void)snprintf(path, sizeof(path), "%s/x.conf.tmp", home.dir);
            assert_int_equal(-1, access(path, F_OK));
            home_close(&home);
        }
    }
}

/* Too long to be read: even what is as by default has to be said again. */
TEST(a_file_that_cannot_be_read_loses_nothing)
{
    struct home home;
    char error[CONF_ERROR_MAX];
    FILE *file;

    home_open(&home);
    set(&home, "timeout", "0");
    file = fopen(home.path, "a");
    assert_non_null(file);
    for (unsigned i = 0; i < 1 << 15; i++) {
        assert_true(fputs("# nothing but a comment of some length\n", file) >=
                    0);
    }
    assert_int_equal(0, fclose(file));
    rewrite(&home, home.path, error);
    assert_string_equal("", error);
    check(&home, 1, 0);
    home_close(&home);
}

TEST(what_is_no_configuration_is_left_alone)
{
    struct home home;
    char error[CONF_ERROR_MAX];
    char expected[128];

    home_open(&home);
    put(home.path, "[network]\nnope = 1\n");
    rewrite(&home, home.path, error);
    (void)snprintf(expected, sizeof(expected),
                   "%s:2: unknown option 'nope' in section [network]",
                   home.path);
    assert_string_equal(expected, error);
    assert_int_equal(-1, access(home.beside, F_OK));
    home_close(&home);
}

TEST(a_job_may_be_forgotten_before_it_is_done)
{
    struct home home;
    struct conf_file *file;

    home_open(&home);
    file = conf_file_new(home.path, on_done, &home);
    for (int i = 0; i < 20; i++) {
        struct conf_file_job *job;
        enum err err = conf_file_begin(file, &home.conf, i % 2, &job);

        if (err == OK) {
            conf_file_forget(job);
        } else {
            assert_int_equal(ERR_AGAIN, err);
        }
    }
    conf_file_free(file);
    check(&home, 7, 7);
    home_close(&home);
}
