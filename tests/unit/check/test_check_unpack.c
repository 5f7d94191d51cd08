/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What check_stream writes is unpacked; a cut or a change anywhere, and names
 * that no backup has, are refused.
 */
#include "check/check_unpack.h"

#include "../capture.h"
#include "../home.h"
#include "base/mem.h"
#include "check/check_beside.h"
#include "tools/tar.h"

#include <fcntl.h>

enum { ARCHIVE_MAX = 64 * 1024 };

struct archive {
    char bytes[ARCHIVE_MAX];
    size_t len;
};

/* ---- making an archive --------------------------------------------------- */

struct writing {
    struct check check;
    struct check_stream *stream;
    bool good;
};

static void
write_all(struct writing *writing)
{
    struct check_stream *stream = writing->stream;

    writing->good =
        check_stream_dir(stream, CHECK_STREAM_NAME) &&
        check_stream_text(stream, "-/a.snapshot",
                          slice_lit("BLMYSNAP snapshot")) &&
        check_stream_dir(stream, "-/log") &&
        check_stream_text(stream, "-/log/incr-1", slice_lit("increment")) &&
        check_stream_text(stream, "-/users.acl", slice_lit("user a on\n")) &&
        check_stream_end(stream);
}

static void
make_archive(struct archive *archive)
{
    struct writing writing = { .check = { .tool = { .name = "test" } } };
    struct capture output;

    capture_begin(&output, STDOUT_FILENO);
    writing.stream = check_stream_new(&writing.check);
    write_all(&writing);
    (void)capture_end(&output);
    check_stream_free(writing.stream);
    assert_true(writing.good);
    assert_true(output.len % TAR_BLOCK == 0 && output.len < ARCHIVE_MAX);
    memcpy(archive->bytes, output.text, output.len);
    archive->len = output.len;
}

/* ---- unpacking ----------------------------------------------------------- */

struct unpacking {
    char dir[64];
    struct check check;
    char printed[1024];
    bool good;
};

static void
unpack(struct unpacking *unpacking, const char *bytes, size_t len)
{
    FILE *file = tmpfile();
    struct check_made made = { .check = &unpacking->check };
    int old = dup(STDIN_FILENO);
    struct capture output;

    *unpacking = (struct unpacking){ .dir = "/tmp/check-unpack-XXXXXX",
                                     .check = { .tool = { .name = "test" } } };
    home_make(unpacking->dir);
    assert_non_null(file);
    assert_int_equal(len, fwrite(bytes, 1, len, file));
    rewind(file);
    assert_true(old >= 0 && dup2(fileno(file), STDIN_FILENO) >= 0);
    capture_begin(&output, STDERR_FILENO);
    unpacking->good = check_unpack(&made, unpacking->dir);
    (void)snprintf(unpacking->printed, sizeof(unpacking->printed), "%.1000s",
                   capture_end(&output));
    assert_true(dup2(old, STDIN_FILENO) >= 0);
    (void)close(old);
    (void)fclose(file);
    for (size_t i = 0; i < made.count; i++) {
        mem_free(made.paths[i]);
    }
    mem_free(made.paths);
}

static void
expect_refused(const char *bytes, size_t len, const char *text)
{
    struct unpacking unpacking;

    unpack(&unpacking, bytes, len);
    home_remove(unpacking.dir);
    if (unpacking.good) {
        fail_msg("accepted %zu bytes", len);
    }
    assert_contains(unpacking.printed, text);
    assert_contains(unpacking.printed, "; nothing was written\n");
    assert_int_equal(CHECK_DAMAGED, unpacking.check.tool.status);
}

TEST(an_archive_comes_back_file_for_file)
{
    struct unpacking unpacking;
    struct archive archive;

    make_archive(&archive);
    unpack(&unpacking, archive.bytes, archive.len);
    assert_string_equal("", unpacking.printed);
    assert_true(unpacking.good);
    home_expect(unpacking.dir, "a.snapshot", "BLMYSNAP snapshot");
    home_expect(unpacking.dir, "log/incr-1", "increment");
    home_expect(unpacking.dir, "users.acl", "user a on\n");
    home_remove(unpacking.dir);
}

TEST(a_cut_anywhere_is_noticed)
{
    struct archive archive;

    make_archive(&archive);
    for (size_t len = 0; len < archive.len; len += 191) {
        expect_refused(archive.bytes, len, "the archive ends too early");
    }
    expect_refused(archive.bytes, archive.len - TAR_BLOCK,
                   "the archive ends too early");
    expect_refused(archive.bytes, archive.len - 1,
                   "the archive ends too early");
}

TEST(a_changed_byte_is_noticed)
{
    struct archive archive;

    make_archive(&archive);
    for (size_t at = 0; at < archive.len; at += 61) {
        archive.bytes[at] ^= 1;
        expect_refused(archive.bytes, archive.len, "standard input: ");
        archive.bytes[at] ^= 1;
    }
}

/* ---- archives of others -------------------------------------------------- */

/* Appends an entry to an archive of another program. */
static void
append(struct archive *archive, const char *name, bool dir, const char *text)
{
    struct tar_entry entry = { .dir = dir, .bytes = strlen(text) };
    char *to = archive->bytes + archive->len;
    char head[TAR_HEAD_MAX];
    size_t len;

    assert_true(archive->len + sizeof(head) + TAR_BLOCK < ARCHIVE_MAX);
    (void)snprintf(entry.name, sizeof(entry.name), "%s", name);
    len = tar_put(&entry, 0, head);
    memcpy(to, head, len);
    memcpy(to + len, text, entry.bytes);
    memset(to + len + strlen(text), 0, tar_padding(strlen(text)));
    archive->len += len + strlen(text) + tar_padding(strlen(text));
}

TEST(names_that_no_backup_has_are_refused)
{
    static const struct {
        const char *dir, *name;
        bool is_dir;
    } rows[] = {
        { NULL, "../evil.snapshot", false },
        { NULL, "/tmp/evil", false },
        { NULL, ".hidden", false },
        { NULL, "log/incr-1", false }, /* before its directory */
        { NULL, "lock", false },
        { NULL, "..", true },
        { NULL, "a/b", true },
        { NULL, "hash-secret", true },
        { "log", "other", true },
        { "log", "log/../x", false },
        { "log", "log/notes", false },
        { "hash-secrets", "hash-secrets", true },
        { "hash-secrets", "hash-secrets/x", false },
        { "hash-secrets", "hash-secrets/0123456789ABCDEG", false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct archive archive = { .len = 0 };

        if (rows[i].dir != NULL) {
            append(&archive, rows[i].dir, true, "");
        }
        append(&archive, rows[i].name, rows[i].is_dir, "");
        expect_refused(archive.bytes, archive.len,
                       "it has a name that no backup has");
    }
}

TEST(files_that_are_no_snapshot_and_texts_that_are_too_large_are_refused)
{
    struct archive archive = { .len = 0 };
    struct tar_entry entry = { .name = "users.acl",
                               .bytes = CHECK_BESIDE_TEXT_MAX + 1 };

    append(&archive, "notes", false, "text");
    expect_refused(archive.bytes, archive.len,
                   "it has a file that is no snapshot");
    archive.len = tar_put(&entry, 0, archive.bytes);
    expect_refused(archive.bytes, archive.len, "a small file is too large");
    memset(archive.bytes, 'x', TAR_BLOCK);
    expect_refused(archive.bytes, TAR_BLOCK, "is no archive of");
}
