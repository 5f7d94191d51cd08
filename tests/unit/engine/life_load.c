/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The load of what a life has saved, and the comparison with what is live.
 */
#include "base/hash.h"
#include "dump_help.h"
#include "life.h"
#include "replay/complete.h"
#include "replay/excerpt.h"
#include "snapshot/insert.h"

/* A load of what a life has saved. */
struct load {
    const struct life *life;
    struct keyspace *keyspace;
    struct insert insert;
    struct excerpt *excerpt;
    uint64_t begins, ends, kept; /* of the effects */
    uint32_t db; /* that the part's database is now, of DB and KEY */
};

static bool
has_twin(const struct keyspace *other, uint32_t db, const struct entry *entry,
         uint64_t expires_at_ms)
{
    struct slice name = entry_name(entry);
    const struct key key = key_named(name, db);
    const struct entry *twin = keyspace_find(other, &key, 0);
    struct buf one = { 0 };
    struct buf two = { 0 };
    bool same = twin != NULL && twin->incarnation == entry->incarnation &&
                keyspace_expiry(other, &key, twin) == expires_at_ms;

    if (same) {
        dump_of(entry, &one);
        dump_of(twin, &two);
        same = slice_equal(buf_slice(&one), buf_slice(&two));
    }
    buf_free(&one);
    buf_free(&two);
    return same;
}

bool
life_is_same(void *ctx, uint32_t db, const struct entry *entry,
             uint64_t expires_at_ms)
{
    const struct keyspace *other = ctx;

    return has_twin(other, db, entry, expires_at_ms);
}

/* Whether the key belongs to the part, at the end of the life. */
static bool
is_wanted(const struct load *load, uint32_t db, const struct entry *entry)
{
    const struct walk_part *part = load->life->part;

    return part == NULL || ((part->of == WALK_PART_SLOTS || load->db == db) &&
                            walk_part_has_name(part, entry_name(entry)));
}

static bool
is_loaded(void *ctx, uint32_t db, const struct entry *entry,
          uint64_t expires_at_ms)
{
    const struct load *load = ctx;

    return !is_wanted(load, db, entry) ||
           has_twin(load->keyspace, db, entry, expires_at_ms);
}

static bool
is_live(void *ctx, uint32_t db, const struct entry *entry,
        uint64_t expires_at_ms)
{
    const struct load *load = ctx;

    return is_wanted(load, db, entry) &&
           has_twin(load->life->rig->service.keyspace, db, entry,
                    expires_at_ms);
}

static int
on_piece(void *ctx, const struct snapshot_effects *piece)
{
    struct load *load = ctx;

    load->kept += piece->commands.len;
    CHECK(piece->position >= load->begins &&
          piece->position + piece->commands.len <= load->ends);
    return insert_effects(&load->insert, piece) ? 0 : ECANCELED;
}

/* Follows the part's database through all SWAPDB of a group. */
static void
follow_swaps(struct load *load, struct slice text)
{
    static const char swap[] = "$6\r\nSWAPDB\r\n";
    const char *end = text.data + text.len;
    const char *at = text.data;

    while ((at = memmem(at, (size_t)(end - at), swap, strlen(swap))) != NULL) {
        unsigned one, other;

        at += strlen(swap);
        assert_int_equal(2, sscanf(at, "$%*u %u $%*u %u", &one, &other));
        load->db = load->db == one ? other : load->db == other ? one : load->db;
    }
}

/* Gives the insert what concerns the part. */
static bool
on_effects(void *ctx, const struct snapshot_effects *effects)
{
    struct load *load = ctx;

    if (load->excerpt == NULL) {
        return insert_effects(&load->insert, effects);
    }
    follow_swaps(load, effects->commands);
    load->begins = effects->position;
    load->ends = effects->position + effects->commands.len;
    return excerpt_group(load->excerpt, effects, on_piece, load) == 0;
}

static bool
on_end(void *ctx, const struct snapshot_stamp *end)
{
    struct load *load = ctx;
    struct snapshot_stamp stamp = *end;

    if (load->excerpt != NULL) {
        stamp.keys = SNAPSHOT_KEYS_UNKNOWN;
    }
    return insert_end(&load->insert, &stamp);
}

static bool
on_filter(void *ctx, const struct snapshot_record *record, struct bloom *bloom)
{
    struct load *load = ctx;

    return insert_filter(&load->insert, record, bloom);
}

static bool
on_void(void *ctx, const struct snapshot_record *record)
{
    struct load *load = ctx;

    return insert_gone(&load->insert, record);
}

bool
life_loads_exactly(struct life *life, int fd)
{
    struct keyspace *now = life->rig->service.keyspace;
    struct load load = { .life = life };
    const struct snapshot_visitor visitor = { .filter = on_filter,
                                              .gone = on_void,
                                              .effects = on_effects,
                                              .end = on_end,
                                              .ctx = &load };
    struct snapshot_error error = { .text = "" };
    enum snapshot_status status;
    bool same;

    load.keyspace = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = 16 });
    load.insert = (struct insert){ .keyspace = load.keyspace,
                                   .env = &life->rig->service.obey_env,
                                   .completion = &complete_calls };
    if (life->part != NULL) {
        load.excerpt = excerpt_new(life->part);
        load.db = life->part->db;
    }
    status = snapshot_read(fd, load.insert.env, &visitor, NULL, &error);
    same = status == SNAPSHOT_OK && keyspace_each(now, is_loaded, &load) &&
           keyspace_each(load.keyspace, is_live, &load);
    insert_fini(&load.insert);
    if (status != SNAPSHOT_OK && life->without == ALL) {
        print_error("%s %s\n", error.text, load.insert.why);
    }
    excerpt_free(load.excerpt);
    keyspace_free(load.keyspace);
    return same;
}
