/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters of known contents, and the files that hold them.
 */
#include "snapshot_help.h"

int
memory_file(struct bytes content)
{
    int fd = memfd_create("snapshot", MFD_CLOEXEC);

    assert_true(fd >= 0);
    if (content.len > 0) {
        assert_int_equal(0, file_write(fd, content.data, content.len));
    }
    return fd;
}

struct bytes
read_all(int fd)
{
    struct bytes content = { NULL, 0 };
    uint64_t size = 0;
    size_t done;

    assert_int_equal(0, file_size(fd, &size));
    content.len = (size_t)size;
    content.data = mem_alloc(content.len);
    assert_int_equal(0, file_read_at(fd, content.data, content.len, 0, &done));
    return content;
}

struct snapshot_stamp
test_stamp(void)
{
    return (struct snapshot_stamp){
        .history = "0123456789abcdef0123456789abcdef01234567",
        .version = SNAPSHOT_VERSION,
        .position = 0x1122334455667788,
        .begins = 0x1122334455667788,
        .sequence = 4711,
        .created_ms = 1700000000123,
    };
}

struct bytes
snapshot_of_keyspace(const struct keyspace *ks)
{
    struct snapshot_writer *writer = snapshot_writer_new();
    struct snapshot_progress progress = { 0 };
    struct snapshot_stamp stamp = test_stamp();
    int fd = memory_file((struct bytes){ NULL, 0 });
    struct bytes content;

    assert_non_null(writer);
    assert_int_equal(0, snapshot_write(writer, ks, &stamp, fd, &progress));
    content = read_all(fd);
    assert_int_equal(content.len, progress.bytes);
    file_close(fd);
    snapshot_writer_free(writer);
    return content;
}

/* ---- keyspaces ----------------------------------------------------------- */

struct bloom *
make_filter(const struct bloom_params *params, unsigned adds)
{
    const struct bloom_env env = test_env();
    struct bloom *bloom = NULL;

    assert_int_equal(BLOOM_OK, bloom_new(params, &env, &bloom));
    for (uint64_t i = 0; i < adds; i++) {
        const uint64_t item = htole64(i);
        bool added;

        (void)bloom_add(bloom, &env, bloom_hash(bloom, &item, sizeof(item)),
                        &added);
    }
    return bloom;
}

void
put_filter(struct keyspace *ks, const struct key *key, struct bloom *bloom,
           uint64_t incarnation, uint64_t expires_at_ms)
{
    struct entry *entry = NULL;

    assert_int_equal(OK, keyspace_insert(ks, key, bloom, incarnation, &entry));
    if (expires_at_ms > 0) {
        assert_int_equal(OK,
                         keyspace_set_expiry(ks, key, entry, expires_at_ms));
    }
}

struct key
key_of(struct slice name, uint32_t db)
{
    return (struct key){ .name = name, .hash = hash_name(name), .db = db };
}

void
put_spec(struct keyspace *ks, const struct filter_spec *spec)
{
    struct key key = key_of(slice_of(spec->name), spec->db);
    struct bloom_params params = spec->params;

    for (size_t i = 0; i < sizeof(params.seed); i++) {
        params.seed[i] = (uint8_t)(spec->incarnation + 7 * i);
    }
    put_filter(ks, &key, make_filter(&params, spec->adds), spec->incarnation,
               spec->expires_at_ms);
}

const struct filter_spec mixed_specs[MIXED] = {
    { "one", 0, 0, 1, PARAMS(100, 0.01, 0.5, 2), 60 },
    { "two", 0, 1, 2, PARAMS(1000, 1e-4, 0.5, 2), 1000 },
    { "chain", 1, 4102444800000, 3, PARAMS(10, 1e-3, 0.5, 2), 400 },
    { "fixed", 1, 0, 4, PARAMS(50, 0.3, 0.5, 0), 50 },
    { "", 15, 0, 5, PARAMS(5, 1e-9, 0.9, 1), 23 },
    { "one", 15, 99, UINT64_MAX, PARAMS(1, 0.5, 0.5, 1), 0 },
    { "wide", 2, 0, 6, PARAMS(10000, 0.01, 0.5, 2), 10000 },
    { "large", 3, 0, 7, PARAMS(120000, 0.01, 0.5, 2), 500 },
};

struct keyspace *
first_specs(size_t count)
{
    struct keyspace *ks = test_keyspace(1);

    for (size_t i = 0; i < count; i++) {
        put_spec(ks, &mixed_specs[i]);
    }
    return ks;
}

struct keyspace *
mixed_keyspace(void)
{
    return first_specs(MIXED);
}

/* ---- sections of a snapshot in memory ------------------------------------ */

size_t
section_bytes(struct bytes content, size_t at)
{
    return SECTION_FRAME_BYTES +
           (size_t)get_u64(content.data + at + SECTION_AT_BYTES);
}

void
fill_random(uint64_t *random, uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = (uint8_t)test_random_below(random, 256);
    }
}

/* ---- as a stream ----------------------------------------------------------
 */

static int
read_stream(void *ctx, void *to, size_t len, size_t *ret_len)
{
    struct stream *stream = ctx;
    uint64_t size = 0;

    assert_int_equal(0, file_size(stream->fd, &size));
    if (stream->fail_at > 0 && stream->at + len >= stream->fail_at) {
        return stream->error;
    }
    if (len > size - stream->at) {
        len = (size_t)(size - stream->at);
    }
    if (len > 0) {
        assert_int_equal(len, pread(stream->fd, to, len, (off_t)stream->at));
    }
    stream->at += len;
    *ret_len = len;
    return 0;
}

struct snapshot_source
stream_source(struct stream *stream)
{
    return (struct snapshot_source){ .read = read_stream, .ctx = stream };
}

/* ---- loading ------------------------------------------------------------- */

static struct bloom *
keep(struct bloom *made, const struct bloom_env *env)
{
    struct bloom *bloom = NULL;

    assert_int_equal(BLOOM_OK, bloom_keep(made, env, &bloom));
    return bloom;
}

bool
load_filter(void *ctx, const struct snapshot_record *record,
            struct bloom *bloom)
{
    struct loading *loading = ctx;
    struct key key = key_of(record->name, record->db);

    loading->shown++;
    if (loading->ks == NULL || loading->shown == loading->stop_at) {
        bloom_fini(bloom, &loading->env);
    } else {
        assert_null(keyspace_find(loading->ks, &key, 0));
        put_filter(loading->ks, &key, keep(bloom, &loading->env),
                   record->incarnation, record->expires_at_ms);
    }
    return loading->shown != loading->stop_at;
}

static void
note_stretch(void *ctx, const struct snapshot_error *error, uint64_t from,
             uint64_t to)
{
    struct loading *loading = ctx;

    assert_true(loading->stretch_count < 64);
    loading->stretches[loading->stretch_count++] =
        (struct stretch){ from, to, *error };
}

enum snapshot_status
load_fd(struct loading *loading, int fd, bool salvage)
{
    const struct snapshot_visitor visitor = {
        .filter = load_filter,
        .passed_over = salvage ? note_stretch : NULL,
        .ctx = loading,
    };
    enum snapshot_status status;

    loading->env = test_env();
    memset(&loading->error, 0x5a, sizeof(loading->error));
    status = snapshot_read(fd, &loading->env, &visitor, &loading->progress,
                           &loading->error);
    if (status != SNAPSHOT_OK) {
        assert_int_equal(status, loading->error.status);
        assert_non_null(
            memchr(loading->error.text, '.', sizeof(loading->error.text)));
    }
    return status;
}

enum snapshot_status
load_bytes(struct loading *loading, struct bytes content, bool salvage)
{
    int fd = memory_file(content);
    enum snapshot_status status = load_fd(loading, fd, salvage);

    file_close(fd);
    return status;
}

/* ---- comparing ----------------------------------------------------------- */

static struct bytes
dump_filter(const struct bloom *bloom, uint64_t incarnation)
{
    struct bytes dump = { NULL, (size_t)codec_dump_bytes(bloom) };

    dump.data = mem_alloc(dump.len);
    codec_dump(bloom, incarnation, dump.data);
    return dump;
}

bool
is_in_other(void *ctx, uint32_t db, const struct entry *entry,
            uint64_t expires_at_ms)
{
    const struct keyspace *other = ctx;
    struct key key = key_of(entry_name(entry), db);
    const struct entry *twin = keyspace_find(other, &key, 0);
    struct bytes a, b;

    assert_non_null(twin);
    assert_int_equal(expires_at_ms, keyspace_expiry(other, &key, twin));
    assert_int_equal(entry->incarnation, twin->incarnation);
    a = dump_filter(&entry->bloom, entry->incarnation);
    b = dump_filter(&twin->bloom, twin->incarnation);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    mem_free(a.data);
    mem_free(b.data);
    return true;
}

uint64_t
count_all(const struct keyspace *ks)
{
    uint64_t keys = 0;

    for (uint32_t db = 0; db < keyspace_databases(ks); db++) {
        keys += test_count(ks, db);
    }
    return keys;
}

void
assert_same_keyspaces(struct keyspace *a, struct keyspace *b)
{
    assert_int_equal(count_all(a), count_all(b));
    assert_true(keyspace_each(a, is_in_other, b));
}
