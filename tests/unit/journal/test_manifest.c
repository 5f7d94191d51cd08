/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Manifests: the text by example, all other texts refused, and a store that
 * leaves one of two intact manifests at any failure.
 */
#include "journal/manifest.h"

#include "../test.h"
#include "base/file.h"
#include "base/mem.h"
#include "journal/group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static char reason[256];

/* The text with the right checksum behind it. */
static enum manifest_status
parse(const char *text, struct manifest *ret_manifest)
{
    char whole[4096];
    int len = snprintf(whole, sizeof(whole), "%schecksum %016" PRIx64 "\n",
                       text, (uint64_t)XXH3_64bits(text, strlen(text)));

    assert_in_range(len, 0, sizeof(whole) - 1);
    reason[0] = '\0';
    return manifest_parse((struct slice){ whole, (size_t)len }, ret_manifest,
                          reason, sizeof(reason));
}

static const char example[] = "bloomery-journal 1\n"
                              "generation 7\n"
                              "base 3 4096 17\n"
                              "increment 5 128\n"
                              "increment 6 9999\n"
                              "increment 8 -\n"
                              "increment 9 -\n";

static void
make_example(struct manifest *ret_manifest)
{
    memset(ret_manifest, 0, sizeof(*ret_manifest));
    ret_manifest->generation = 7;
    ret_manifest->base_number = 3;
    ret_manifest->position = 4096;
    ret_manifest->sequence = 17;
    ret_manifest->increments[0] = (struct manifest_increment){ 5, true, 128 };
    ret_manifest->increments[1] = (struct manifest_increment){ 6, true, 9999 };
    ret_manifest->increments[2] = (struct manifest_increment){ 8, false, 0 };
    ret_manifest->increments[3] = (struct manifest_increment){ 9, false, 0 };
    ret_manifest->count = 4;
}

static void
assert_same(const struct manifest *a, const struct manifest *b)
{
    assert_int_equal(a->generation, b->generation);
    assert_int_equal(a->base_number, b->base_number);
    assert_int_equal(a->position, b->position);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal(a->increments[i].number, b->increments[i].number);
        assert_int_equal(a->increments[i].closed, b->increments[i].closed);
        assert_int_equal(a->increments[i].bytes, b->increments[i].bytes);
    }
}

TEST(names_of_files_have_their_numbers)
{
    char name[MANIFEST_FILE_NAME_MAX];

    manifest_base_name(12, name);
    assert_string_equal(name, "base-12");
    manifest_increment_name(UINT64_MAX, name);
    assert_string_equal(name, "incr-18446744073709551615");
}

TEST(a_manifest_is_written_as_drawn_and_reads_back)
{
    static char text[MANIFEST_BYTES_MAX];
    struct manifest want;
    struct manifest got;
    size_t len;

    make_example(&want);
    len = manifest_format(&want, text);
    assert_int_equal(len, strlen(example) + 26);
    assert_memory_equal(text, example, strlen(example));
    assert_int_equal(manifest_parse((struct slice){ text, len }, &got, reason,
                                    sizeof(reason)),
                     MANIFEST_OK);
    assert_same(&got, &want);
    assert_int_equal(parse(example, &got), MANIFEST_OK);
    assert_same(&got, &want);
}

TEST(the_largest_manifest_fits_and_one_increment_more_is_refused)
{
    static char text[MANIFEST_BYTES_MAX + 64];
    static struct manifest want;
    static struct manifest got;
    size_t len;

    want.generation = want.base_number = want.sequence = GROUP_NUMBER_LIMIT - 1;
    want.position = GROUP_POSITION_LIMIT - 1;
    want.count = MANIFEST_INCREMENTS_MAX;
    for (uint32_t i = 0; i < want.count; i++) {
        want.increments[i] =
            (struct manifest_increment){ GROUP_NUMBER_LIMIT - 1 - want.count +
                                             i,
                                         true, GROUP_NUMBER_LIMIT - 1 };
    }
    len = manifest_format(&want, text);
    assert_in_range(len, 1, MANIFEST_BYTES_MAX);
    assert_int_equal(manifest_parse((struct slice){ text, len }, &got, reason,
                                    sizeof(reason)),
                     MANIFEST_OK);
    assert_same(&got, &want);

    len -= 26;
    len += (size_t)sprintf(text + len, "increment 999999999999999 -\n");
    len += (size_t)sprintf(text + len, "checksum %016" PRIx64 "\n",
                           (uint64_t)XXH3_64bits(text, len));
    assert_int_equal(manifest_parse((struct slice){ text, len }, &got, reason,
                                    sizeof(reason)),
                     MANIFEST_DAMAGED);
    assert_non_null(strstr(reason, "line 1028"));
}

TEST(every_changed_bit_and_every_missing_or_further_byte_is_damage)
{
    static char text[MANIFEST_BYTES_MAX + 2];
    struct manifest want;
    struct manifest got;
    size_t len;

    make_example(&want);
    len = manifest_format(&want, text);
    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ (1 << bit));
            assert_int_equal(manifest_parse((struct slice){ text, len }, &got,
                                            reason, sizeof(reason)),
                             MANIFEST_DAMAGED);
            text[i] = (char)(text[i] ^ (1 << bit));
        }
        assert_int_equal(manifest_parse((struct slice){ text, i }, &got, reason,
                                        sizeof(reason)),
                         MANIFEST_DAMAGED);
    }
    text[len] = '\n';
    assert_int_equal(manifest_parse((struct slice){ text, len + 1 }, &got,
                                    reason, sizeof(reason)),
                     MANIFEST_DAMAGED);
    assert_int_equal(manifest_parse((struct slice){ text, sizeof(text) }, &got,
                                    reason, sizeof(reason)),
                     MANIFEST_DAMAGED);
}

#define HEAD "bloomery-journal 1\ngeneration 1\nbase 1 0 0\n"

TEST(what_no_writer_writes_is_damage_though_the_checksum_holds)
{
    static const char *const texts[] = {
        "",
        "bloomery-journal 1\n",
        "bloomery-journal 1\ngeneration 1\n",
        "bloomery-journal 0\ngeneration 1\nbase 1 0 0\n",
        "bloomery-journal 01\ngeneration 1\nbase 1 0 0\n",
        "bloomery-journal 1 \ngeneration 1\nbase 1 0 0\n",
        "bloomery-journal 1\r\ngeneration 1\nbase 1 0 0\n",
        "Bloomery-journal 1\ngeneration 1\nbase 1 0 0\n",
        "bloomery-journal 1\nbase 1 0 0\ngeneration 1\n",
        "bloomery-journal 1\ngeneration 01\nbase 1 0 0\n",
        "bloomery-journal 1\ngeneration +1\nbase 1 0 0\n",
        "bloomery-journal 1\ngeneration -1\nbase 1 0 0\n",
        "bloomery-journal 1\ngeneration \nbase 1 0 0\n",
        "bloomery-journal 1\ngeneration 10000000000000000\nbase 1 0 0\n",
        "bloomery-journal 1\ngeneration 99999999999999999999\nbase 1 0 0\n",
        "bloomery-journal 1\ngeneration 1\nbase 1 0\n",
        "bloomery-journal 1\ngeneration 1\nbase 1 0 0 0\n",
        "bloomery-journal 1\ngeneration 1\nbase 1  0 0\n",
        "bloomery-journal 1\ngeneration 1\n\nbase 1 0 0\n",
        HEAD "\n",
        HEAD "junk\n",
        HEAD "base 2 0 0\n",
        HEAD "increment 1 127\n",
        HEAD "increment 1\n",
        HEAD "increment 1 \n",
        HEAD "increment 1 --\n",
        HEAD "increment - 1\n",
        HEAD "increment 1 -",
        HEAD "increment 1 - \n",
        HEAD "increment 2 -\nincrement 1 -\n",
        HEAD "increment 1 -\nincrement 1 -\n",
        HEAD "increment 1 -\nincrement 2 128\n",
        HEAD "increment 1 -\nchecksum 0123456789abcdef\n",
    };
    struct manifest manifest = { .generation = 77 };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        if (parse(texts[i], &manifest) != MANIFEST_DAMAGED) {
            fail_msg("accepted: %s", texts[i]);
        }
        assert_int_equal(manifest.generation, 77); /* untouched */
    }
    assert_int_equal(parse(HEAD, &manifest), MANIFEST_OK);
    assert_int_equal(manifest.count, 0);
}

TEST(the_reason_names_line_and_offset)
{
    struct manifest manifest;

    assert_int_equal(parse(HEAD "increment 1 12x\n", &manifest),
                     MANIFEST_DAMAGED);
    assert_string_equal(reason, "line 4, offset 57, is wrong");
}

TEST(the_reason_names_the_offset_of_what_a_checksum_found)
{
    static const struct {
        size_t at;
        char byte;
        const char *reason;
    } cases[] = {
        { 0, 'B',
          "line 1, offset 0, is wrong, and so is the checksum of its " },
        { 30, 'x', "line 2, offset 30, is wrong, and so is the checksum of " },
        /* A digit for another one, and a digit of the checksum. */
        { 30, '9', "the line at offset 108 is not the checksum of the 108 " },
        { 120, '?', "the line at offset 108 is not the checksum of the 108 " },
    };
    static char text[MANIFEST_BYTES_MAX];
    struct manifest manifest;
    size_t len;

    make_example(&manifest);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        len = manifest_format(&manifest, text);
        text[cases[i].at] = cases[i].byte;
        assert_int_equal(manifest_parse((struct slice){ text, len }, &manifest,
                                        reason, sizeof(reason)),
                         MANIFEST_DAMAGED);
        if (strncmp(reason, cases[i].reason, strlen(cases[i].reason)) != 0) {
            fail_msg("%zu: %s", i, reason);
        }
    }
    assert_int_equal(manifest_parse((struct slice){ text, 5 }, &manifest,
                                    reason, sizeof(reason)),
                     MANIFEST_DAMAGED);
    assert_non_null(strstr(reason, "offset 0"));
}

/* Each of them would end the process later, by a CHECK or a failed rewrite. */
TEST(numbers_beyond_those_of_any_journal_are_damage_by_name)
{
    static const struct {
        const char *format;
        uint64_t limit;
    } lines[] = {
        { "generation %" PRIu64 "\nbase 1 0 0\n", GROUP_NUMBER_LIMIT },
        { "generation 1\nbase %" PRIu64 " 0 0\n", GROUP_NUMBER_LIMIT },
        { "generation 1\nbase 1 %" PRIu64 " 0\n", GROUP_POSITION_LIMIT },
        { "generation 1\nbase 1 0 %" PRIu64 "\n", GROUP_NUMBER_LIMIT },
        { "generation 1\nbase 1 0 0\nincrement %" PRIu64 " -\n",
          GROUP_NUMBER_LIMIT },
        { "generation 1\nbase 1 0 0\nincrement 1 %" PRIu64 "\n",
          GROUP_NUMBER_LIMIT },
    };
    struct manifest manifest;
    char text[256];

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        const uint64_t bad[] = { lines[i].limit, UINT64_C(1) << 63,
                                 UINT64_MAX };
        int at = sprintf(text, "bloomery-journal 1\n");

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)sprintf(text + at, lines[i].format, lines[i].limit - 1);
        assert_int_equal(parse(text, &manifest), MANIFEST_OK);
        for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++) {
            (void)sprintf(text + at, lines[i].format, bad[k]);
            assert_int_equal(parse(text, &manifest), MANIFEST_DAMAGED);
            assert_non_null(
                strstr(reason, "a number beyond those of any journal"));
        }
#pragma GCC diagnostic pop
    }
}

TEST(an_intact_manifest_of_a_later_version_is_newer_by_name)
{
    struct manifest manifest;

    assert_int_equal(
        parse("bloomery-journal 2\nwhat nobody knows\n", &manifest),
        MANIFEST_NEWER);
    assert_string_equal(
        reason, "it is of version 2, this program reads up to version 1");
    assert_int_equal(parse("bloomery-journal 12 more\n", &manifest),
                     MANIFEST_NEWER);
    assert_int_equal(parse("bloomery-journal 2x\n", &manifest),
                     MANIFEST_DAMAGED);
}

/* ---- the file ------------------------------------------------------------ */

struct place {
    char path[64];
    int fd;
};

static void
place_open(struct place *place)
{
    (void)snprintf(place->path, sizeof(place->path), "/tmp/manifest-XXXXXX");
    assert_non_null(mkdtemp(place->path));
    assert_int_equal(file_open_dir(place->path, false, &place->fd), 0);
}

static void
place_close(struct place *place)
{
    (void)unlinkat(place->fd, MANIFEST_NAME, 0);
    (void)unlinkat(place->fd, MANIFEST_NAME ".tmp", 0);
    (void)unlinkat(place->fd, MANIFEST_MARK_NAME, 0);
    file_close(place->fd);
    assert_int_equal(rmdir(place->path), 0);
}

TEST(a_stored_manifest_loads_and_a_missing_one_is_missing)
{
    struct place place;
    struct manifest want;
    struct manifest got;
    int fd;

    place_open(&place);
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_MISSING);
    make_example(&want);
    assert_int_equal(manifest_store(place.fd, &want), 0);
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_OK);
    assert_same(&got, &want);

    mem_fail_at(1);
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_IO);
    assert_true(mem_fail_clear());
    file_fail_at(FILE_CALL_OPEN, 1, EIO, false);
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_IO);
    assert_true(file_fail_clear());

    /* An empty one, and a very large one. */
    fd = openat(place.fd, MANIFEST_NAME, O_WRONLY | O_TRUNC);
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_DAMAGED);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_DAMAGED);
    close(fd);
    place_close(&place);
}

static bool
is_there(const struct place *place, const char *name)
{
    return faccessat(place->fd, name, F_OK, 0) == 0;
}

TEST(files_without_a_manifest_are_damage_unless_marked)
{
    struct place place;
    struct manifest want;
    struct manifest got;
    int fd;

    place_open(&place);
    assert_int_equal(file_create(place.fd, "base-12", &fd), 0);
    file_close(fd);
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_DAMAGED);
    assert_string_equal(reason, "it is missing, and base-12 is there");
    for (int i = 0; i < 2; i++) { /* the second time it is there */
        file_fail_at(FILE_CALL_SYNC, 1, EIO, false);
        assert_int_equal(manifest_mark(place.fd), EIO);
        file_fail_at(FILE_CALL_SYNC, 2, EIO, false); /* its name */
        assert_int_equal(manifest_mark(place.fd), EIO);
        assert_true(file_fail_clear());
        assert_int_equal(manifest_mark(place.fd), 0);
        assert_true(is_there(&place, MANIFEST_MARK_NAME));
    }
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_UNFINISHED);
    make_example(&want);
    file_fail_at(FILE_CALL_RENAME, 1, EIO, false);
    assert_int_equal(manifest_store(place.fd, &want), EIO);
    file_fail_at(FILE_CALL_SYNC, 2, EIO, false); /* of the name */
    assert_int_equal(manifest_store(place.fd, &want), EIO);
    assert_true(file_fail_clear());
    assert_true(is_there(&place, MANIFEST_MARK_NAME));
    assert_int_equal(manifest_store(place.fd, &want), 0);
    assert_false(is_there(&place, MANIFEST_MARK_NAME));
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_OK);
    assert_int_equal(unlinkat(place.fd, "base-12", 0), 0);
    place_close(&place);
}

TEST(a_manifest_that_could_not_be_read_again_is_not_stored)
{
    struct place place;
    struct manifest good;
    struct manifest bad[6];
    struct manifest got;

    place_open(&place);
    make_example(&good);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        bad[i] = good;
    }
    bad[0].increments[0].closed = false; /* closed behind open */
    bad[1].increments[1].number = 5;     /* twice */
    bad[2].increments[0].bytes = 127;    /* less than the first line */
    bad[3].generation = UINT64_MAX;
    bad[4].position = GROUP_POSITION_LIMIT;
    bad[5].sequence = GROUP_NUMBER_LIMIT;
    assert_int_equal(manifest_store(place.fd, &good), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(manifest_store(place.fd, &bad[i]), EINVAL);
        assert_int_equal(faccessat(place.fd, MANIFEST_NAME ".tmp", F_OK, 0),
                         -1);
        assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                         MANIFEST_OK);
        assert_same(&got, &good);
    }
    mem_fail_at(2);
    assert_int_equal(manifest_store(place.fd, &good), ENOMEM);
    assert_true(mem_fail_clear());
    place_close(&place);
}

TEST(a_manifest_that_is_no_file_is_not_waited_for)
{
    struct place place;
    struct manifest got;

    place_open(&place);
    assert_int_equal(mkfifoat(place.fd, MANIFEST_NAME, 0600), 0);
    assert_int_equal(manifest_load(place.fd, &got, reason, sizeof(reason)),
                     MANIFEST_IO);
    assert_string_equal(reason, "it cannot be read: Wrong medium type");
    place_close(&place);
}

static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                        FILE_CALL_SYNC, FILE_CALL_RENAME };

TEST(whatever_fails_in_a_store_one_of_the_two_is_there)
{
    struct place place;
    struct manifest old;
    struct manifest new;
    struct manifest got;
    unsigned faults = 0;

    place_open(&place);
    make_example(&old);
    new = old;
    new.generation++;
    new.count--;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            int error;

            assert_int_equal(manifest_store(place.fd, &old), 0);
            file_fail_at(calls[i], nth, ENOSPC, false);
            error = manifest_store(place.fd, &new);
            fired = file_fail_clear();
            faults += fired;
            assert_int_equal(error, fired ? ENOSPC : 0);
            assert_int_equal(
                manifest_load(place.fd, &got, reason, sizeof(reason)),
                MANIFEST_OK);
            assert_same(&got, got.generation == old.generation ? &old : &new);
            if (!fired) {
                assert_int_equal(got.generation, new.generation);
            }
        }
    }
    assert_int_equal(faults, 5); /* open, write, two syncs, rename */
    mem_fail_at(1);
    assert_int_equal(manifest_store(place.fd, &old), ENOMEM);
    assert_true(mem_fail_clear());
    place_close(&place);
}

TEST(random_damage_behind_a_right_checksum_never_harms)
{
    uint64_t random = test_seed();
    struct manifest manifest;
    char text[sizeof(example)];

    for (unsigned i = 0; i < 20000 * test_rounds(); i++) {
        size_t len = sizeof(example) - 1;
        enum manifest_status status;

        memcpy(text, example, sizeof(example));
        for (int n = 0; n < 3; n++) {
            text[test_random_below(&random, len)] =
                "0123456789 -\nbaseincrement"[test_random_below(&random, 26)];
        }
        status = parse(text, &manifest);
        if (status == MANIFEST_OK) {
            static char again[MANIFEST_BYTES_MAX];

            assert_int_equal(manifest_format(&manifest, again), len + 26);
            assert_memory_equal(again, text, len);
        }
    }
}
