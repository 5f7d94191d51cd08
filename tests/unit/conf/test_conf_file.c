/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of CONFIG REWRITE, with calls that fail; whole servers and crashes:
 * tests/scenario/test_rewrite.py.
 */
#include "conf/conf_file.h"

#include "../test.h"
#include "base/file.h"
#include "conf/conf_load.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct home {
    char dir[32], path[64];
    struct conf conf, given;
    atomic_int done;
};

static void
set(struct conf *conf, const char *name, const char *value)
{
    struct conf_error error;

    assert_true(
        conf_set(conf, conf_find(slice_of(name)), slice_of(value), &error));
}

static void
home_open(struct home *home)
{
    memset(home, 0, sizeof(*home));
    log_set_level((enum log_level)CONF_LOG_NOTHING);
    (void)snprintf(home->dir, sizeof(home->dir), "/tmp/conf-file-XXXXXX");
    assert_non_null(mkdtemp(home->dir));
    (void)snprintf(home->path, sizeof(home->path), "%s/rewritten.conf",
                   home->dir);
    conf_init(&home->conf);
    conf_init(&home->given);
    set(&home->given, "dir", home->dir);
    set(&home->given, "timeout", "1");
    set(&home->conf, "timeout", "7");
}

static void
home_close(struct home *home)
{
    conf_fini(&home->conf);
    conf_fini(&home->given);
    (void)unlink(home->path);
    assert_int_equal(0, rmdir(home->dir));
}

static void
on_done(void *ctx)
{
    atomic_fetch_add(&((struct home *)ctx)->done, 1);
}

/* Writes once; the error's text, or "". */
static void
rewrite(struct home *home, char ret_error[CONF_ERROR_MAX])
{
    struct conf_file *file = conf_file_new(&home->given, on_done, home);
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

static int64_t
timeout_in_file(const struct home *home)
{
    struct conf_error error;
    struct conf conf;
    int64_t timeout;

    conf_init(&conf);
    assert_true(conf_load_file(&conf, home->path, NULL, &error));
    timeout = conf.timeout;
    conf_fini(&conf);
    return timeout;
}

TEST(the_file_is_in_the_directory_and_for_our_user_alone)
{
    struct home home;
    struct stat info;
    char error[CONF_ERROR_MAX];

    home_open(&home);
    rewrite(&home, error);
    assert_string_equal("", error);
    assert_int_equal(7, timeout_in_file(&home));
    assert_int_equal(0, stat(home.path, &info));
    assert_int_equal(0600, info.st_mode & 0777);
    set(&home.conf, "timeout", "9");
    rewrite(&home, error);
    assert_string_equal("", error);
    assert_int_equal(9, timeout_in_file(&home));
    home_close(&home);
}

/* One call fails: the client gets an error, the old file or the new one is
 * there, and no temporary file is left. */
TEST(a_call_that_fails_loses_nothing)
{
    for (int call = 0; call < FILE_CALL_COUNT; call++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct home home;
            char error[CONF_ERROR_MAX];

            home_open(&home);
            rewrite(&home, error);
            set(&home.conf, "timeout", "9");
            file_fail_at((enum file_call)call, nth, EIO, false);
            rewrite(&home, error);
            fired = file_fail_clear();
            if (error[0] == '\0') {
                assert_int_equal(9, timeout_in_file(&home));
            } else {
                int64_t timeout = timeout_in_file(&home);

                assert_true(timeout == 7 || timeout == 9);
            }
            home_close(&home); /* fails if there is another file */
        }
    }
}

TEST(a_value_that_no_line_can_hold_is_refused)
{
    struct home home;
    char error[CONF_ERROR_MAX];

    home_open(&home);
    set(&home.conf, "requirepass", "a\nb");
    rewrite(&home, error);
    assert_non_null(strstr(error, "requirepass has a line break"));
    assert_int_equal(-1, access(home.path, F_OK));
    home_close(&home);
}

TEST(a_job_may_be_forgotten_before_it_is_done)
{
    struct home home;
    struct conf_file *file;

    home_open(&home);
    file = conf_file_new(&home.given, on_done, &home);
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
    assert_int_equal(7, timeout_in_file(&home));
    home_close(&home);
}

TEST(lost_files_are_written_again)
{
    struct home home;
    struct conf_file *file;
    char error[CONF_ERROR_MAX];

    home_open(&home);
    home.conf.timeout = 17;
    rewrite(&home, error);
    file = conf_file_new(&home.given, on_done, &home);
    home.conf.timeout = 18; /* was not written */
    assert_int_equal(0, unlink(home.path));
    assert_true(conf_file_write_again(file));
    conf_file_free(file);
    assert_int_equal(17, timeout_in_file(&home));
    home_close(&home);
}

/* The text of a job, and how often it was freed. */
struct text_work {
    const char *text; /* of a write; NULL: it is refused */
    char seen[32];    /* of a read */
    unsigned frees;
};

static bool
run_text(void *ctx, const char *path, struct buf *text)
{
    struct text_work *work = ctx;

    assert_non_null(path);
    if (text->len > 0) {
        (void)snprintf(work->seen, sizeof(work->seen), "%.*s", (int)text->len,
                       text->data);
    } else if (work->text != NULL) {
        buf_append_slice(text, slice_of(work->text));
    }
    return work->text != NULL;
}

static void
free_work(void *ctx)
{
    ((struct text_work *)ctx)->frees++;
}

/* Returns whether the job had no error. */
static bool
transfer(struct home *home, bool reads, struct text_work *ctx)
{
    const struct conf_file_work work = { run_text, free_work, ctx };
    struct conf_file *file = conf_file_new(&home->given, on_done, home);
    struct conf_file_job *job = NULL;
    bool good;

    ctx->frees = 0;
    assert_int_equal(
        OK, conf_file_begin_text(file, home->path, reads, &work, true, &job));
    conf_file_wait(file, job);
    assert_ptr_equal(ctx, conf_file_ctx(job));
    good = conf_file_error(job) == NULL;
    conf_file_forget(job);
    conf_file_free(file);
    assert_int_equal(1, ctx->frees);
    return good;
}

TEST(a_text_that_its_work_refuses_is_not_written)
{
    struct home home;
    struct text_work work = { .text = "# one\n" };

    home_open(&home);
    assert_true(transfer(&home, false, &work));
    work.text = NULL;
    assert_false(transfer(&home, false, &work));
    assert_true(transfer(&home, true, &work));
    assert_string_equal("# one\n", work.seen);
    home_close(&home);
}
