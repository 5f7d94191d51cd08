/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lines of one filter; test_snapshot_read.c has damage of every kind.
 */
#include "snapshot_help.h"

#include "core/codec.h"
#include "core/collision.h"
#include "core/parts.h"
#include "snapshot/lines.h"

/* A file with one filter whose lines end where a void begins, if `broken`. */
static struct bytes
file_of(const struct bloom *bloom, bool broken)
{
    const struct snapshot_record record = { .name = slice_lit("a") };
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp stamp = test_stamp();
    uint8_t head[CODEC_HEAD_BYTES_MAX];
    size_t len = codec_put_head(bloom, 1, head);
    int fd = memory_file((struct bytes){ NULL, 0 });
    struct bytes content;

    assert_int_equal(0, snapshot_begin(writer, &stamp, 16, fd, NULL));
    if (broken) {
        assert_int_equal(
            0, snapshot_put_head(writer, &record,
                                 (struct slice){ (const char *)head, len }));
        assert_int_equal(0, snapshot_void(writer, &record));
    } else {
        assert_int_equal(0, snapshot_add(writer, &record, bloom));
    }
    assert_int_equal(0, snapshot_end(writer, &stamp));
    content = read_all(fd);
    file_close(fd);
    snapshot_writer_free(writer);
    return content;
}

TEST(lines_come_to_their_place_or_end_at_a_void)
{
    static const struct bloom_params params = PARAMS(200000, 0.01, 0.5, 2);
    const struct bloom_env env = test_env();
    struct bloom *bloom = make_filter(&params, 2000);

    for (unsigned i = 0; i < 2; i++) {
        struct bytes content = file_of(bloom, i == 1);
        struct snapshot_error error;
        struct section_file file = { .fd = memory_file(content),
                                     .error = &error };
        struct lines lines = { .file = &file };
        uint8_t header[HEADER_BYTES];
        struct section section;
        struct codec_head head;
        struct bloom *copy = NULL;
        bool broken = false;
        size_t bytes;
        const void *from = bloom_layer_lines(bloom, 0, &bytes);

        assert_int_equal(SNAPSHOT_OK, section_open(&file, header));
        assert_int_equal(SNAPSHOT_OK,
                         section_read_head(&file, HEADER_BYTES, 0, &section));
        assert_int_equal(SECTION_LARGE, section.type);
        assert_int_equal(SNAPSHOT_OK, section_read_payload(&file, &section));
        assert_int_equal(BLOOM_OK,
                         codec_read_head(file.buffer + RECORD_HEAD_BYTES + 1,
                                         (size_t)section.bytes, &head));
        assert_int_equal(BLOOM_OK, codec_new(&head, &env, &copy));
        assert_int_equal(SNAPSHOT_OK,
                         lines_read(&lines, copy, &section, &broken));
        assert_int_equal(i == 1, broken);
        assert_int_equal(broken ? SECTION_VOIDS : SECTION_LINES, section.type);
        if (!broken) {
            assert_memory_equal(from, codec_layer_lines(copy, 0, &bytes),
                                bytes);
        }
        bloom_free(copy, &env);
        lines_fini(&lines);
        section_close(&file);
        file_close(file.fd);
        mem_free(content.data);
    }
    bloom_free(bloom, &env);
}

/* ---- pieces -------------------------------------------------------------- */

/* What a section of pieces says. */
struct pieces_case {
    size_t most, count;
    uint64_t first, other; /* the positions */
    enum snapshot_status status;
    bool has; /* the filter gets them */
};

enum { AT = 700, MOST = 64 << 10 };

static bool
keep_filter(void *ctx, const struct snapshot_record *record,
            struct bloom *bloom)
{
    const struct bloom_env env = test_env();

    (void)record;
    return bloom_keep(bloom, &env, ctx) == BLOOM_OK;
}

/* Writes a deletable filter with these pieces, and reads it. */
static void
check_pieces(const struct bloom *bloom, const struct pieces_case *c)
{
    const struct snapshot_record record = { .name = slice_lit("a"),
                                            .copied_at = AT };
    const struct bloom_env env = test_env();
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_stamp stamp = test_stamp();
    struct bloom *copy = NULL;
    const struct snapshot_visitor visitor = { .filter = keep_filter,
                                              .ctx = &copy };
    struct snapshot_error error;
    uint8_t head[CODEC_HEAD_BYTES_MAX];
    size_t len = codec_put_head(bloom, 1, head);
    uint64_t *positions = mem_alloc((c->count + 1) * sizeof(*positions));
    int fd = memory_file((struct bytes){ NULL, 0 });
    size_t bytes;
    const void *lines = bloom_layer_lines(bloom, 0, &bytes);

    for (size_t i = 0; i < c->count; i++) {
        positions[i] = i == 0 ? c->first : c->other;
    }
    stamp.position = AT;
    assert_int_equal(0, snapshot_begin(writer, &stamp, 16, fd, NULL));
    assert_int_equal(
        0, snapshot_put_head(writer, &record,
                             (struct slice){ (const char *)head, len }));
    assert_int_equal(0, snapshot_put_lines(writer, lines, bytes));
    assert_int_equal(0,
                     snapshot_put_pieces(writer, c->most, positions, c->count));
    assert_int_equal(0, snapshot_end(writer, &stamp));
    if (snapshot_read(fd, &env, &visitor, NULL, &error) != c->status) {
        fail_msg("%zu pieces of %zu: %s", c->count, c->most, error.text);
    }
    if (c->status == SNAPSHOT_OK) {
        assert_int_equal(c->has, bloom_has_pieces(copy));
    }
    if (copy != NULL) {
        bloom_free(copy, &env);
    }
    file_close(fd);
    mem_free(positions);
    snapshot_writer_free(writer);
}

TEST(pieces_are_those_of_the_filter)
{
    const struct bloom_params params = { .struct_size = sizeof(params),
                                         .capacity = 200000,
                                         .error_rate = 0.01,
                                         .tightening = 0.5,
                                         .expansion = 2,
                                         .kind = BLOOM_DELETABLE,
                                         .region = 2 };
    const struct bloom_env env = test_env();
    struct bloom *bloom = make_filter(&params, 2000);
    size_t bytes;
    size_t step;
    size_t count;

    assert_non_null(bloom_layer_lines(bloom, 0, &bytes));
    step = collision_piece_bytes(&bloom_layers_const(bloom)[0], MOST);
    count = (bytes + step - 1) / step;
    assert_true(count > 3);
    {
        const struct pieces_case cases[] = {
            { MOST, count, AT, AT, SNAPSHOT_OK, true },
            { 0, 0, 0, 0, SNAPSHOT_OK, false },
            { MOST, count, AT - 1, AT, SNAPSHOT_DAMAGED, false },
            { MOST, count, AT, AT + 1, SNAPSHOT_DAMAGED, false },
            { MOST, count, AT, UINT64_MAX, SNAPSHOT_DAMAGED, false },
            { MOST, count - 1, AT, AT, SNAPSHOT_DAMAGED, false },
            { MOST, count + 1, AT, AT, SNAPSHOT_DAMAGED, false },
            { MOST, 0, AT, AT, SNAPSHOT_DAMAGED, false },
            { 0, count, AT, AT, SNAPSHOT_DAMAGED, false },
            { 1, count, AT, AT, SNAPSHOT_DAMAGED, false },
            { SIZE_MAX, 1, AT, AT, SNAPSHOT_DAMAGED, false },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            check_pieces(bloom, &cases[i]);
        }
    }
    bloom_free(bloom, &env);
}
