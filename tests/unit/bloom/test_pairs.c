/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the subscribers of a filter are told: for every write row of the command
 * table a case, and then random commands. A copy follows what it is told, and
 * must never lack an item that the server has.
 */
#include "bloom/pairs.h"

#include "../engine/dispatch_help.h"
#include "../engine/dump_help.h"
#include "../engine/scene.h"
#include "base/little.h"
#include "core/codec.h"
#include "core/filter.h"

/* ---- a copy -------------------------------------------------------------- */

/* A program's copy of the filter k of database 0. */
struct copy {
    struct scene *scene;
    struct bloom *bloom; /* NULL: the key is missing */
    bool stale;          /* it must be loaded again */
    bool exact;          /* no item was deleted since it was loaded */
    struct buf told;     /* what was told, as text */
};

static struct key
key_k(void)
{
    return key_named(slice_lit("k"), 0);
}

static const struct entry *
server_has(const struct copy *copy)
{
    struct key key = key_k();

    return keyspace_find(copy->scene->rig->service.keyspace, &key, 0);
}

static void
load(struct copy *copy)
{
    const struct entry *entry = server_has(copy);
    struct buf dump = { 0 };
    uint64_t incarnation;

    bloom_free(copy->bloom, NULL);
    copy->bloom = NULL;
    if (entry != NULL && !bloom_is_incomplete(&entry->bloom)) {
        dump_of(entry, &dump);
        assert_int_equal(BLOOM_OK, codec_load(dump.data, dump.len, NULL,
                                              &incarnation, &copy->bloom));
    }
    buf_free(&dump);
    copy->stale = false;
    copy->exact = true;
}

/* Adds pairs, at a time if the filter ages. */
static void
add(struct copy *copy, struct slice pairs, uint64_t at_ms)
{
    const uint8_t *bytes = (const uint8_t *)pairs.data;

    assert_true(pairs.len > 0 && pairs.len % 16 == 0);
    buf_printf(&copy->told, "add %zu%s\n", pairs.len / 16,
               at_ms > 0 ? " at" : "");
    for (size_t i = 0; !copy->stale && i < pairs.len; i += 16) {
        struct bloom_hash hash = { get_u64(bytes + i), get_u64(bytes + i + 8) };
        bool added;

        assert_int_equal(at_ms > 0, bloom_kind(copy->bloom) == BLOOM_AGEING);
        assert_int_equal(
            BLOOM_OK, at_ms > 0
                          ? bloom_add_at(copy->bloom, NULL, hash, at_ms, &added)
                          : bloom_add(copy->bloom, NULL, hash, &added));
    }
}

/* The record's form is in pubsub_feed.c. */
static bool
hear(void *ctx, const struct notice *notice,
     uint64_t to __attribute__((unused)),
     uint64_t until_ns __attribute__((unused)))
{
    struct copy *copy = ctx;
    const uint8_t *record = (const uint8_t *)notice->payload.data;
    uint64_t number = get_u64(record + 1);
    struct slice pairs = { notice->payload.data + 13, get_u32(record + 9) };

    if (notice->kind == NOTICE_FILTERS &&
        get_u32((const uint8_t *)notice->channel.data) != FEED_ALL_DBS &&
        get_u32((const uint8_t *)notice->channel.data) != 0) {
        return true; /* for the filters of another database */
    }
    switch ((enum feed_kind)record[0]) {
    case FEED_ADD:
        add(copy, pairs, number);
        break;
    case FEED_DELETED:
        buf_printf(&copy->told, "deleted %u\n", (unsigned)number);
        copy->exact = false;
        break;
    case FEED_GONE:
        buf_printf(&copy->told, "gone\n");
        copy->stale = true;
        break;
    case FEED_CHANGED:
        buf_printf(&copy->told, "changed\n");
        copy->stale = true;
        break;
    case FEED_NOTHING:
        fail();
    }
    return true;
}

static struct copy *
copy_new(void)
{
    struct copy *copy = mem_zalloc(sizeof(*copy));
    const struct inbox_reader reader = { .deliver = hear,
                                         .lost = lose,
                                         .ctx = copy };
    const struct key k = key_k();
    const struct feed_key key = { k.db, k.name, k.hash };
    struct buf topic = { 0 };
    struct scene *scene = scene_new();

    copy->scene = scene;
    inboxes_attach(scene->rig->service.inboxes, 0, &scene->loop.mailbox,
                   &reader);
    pubsub_feed_name(&topic, &key);
    assert_int_equal(PUBSUB_OK,
                     pubsub_subscribe_filter(scene->rig->service.pubsub,
                                             &scene->receiver,
                                             buf_slice(&topic), key.hash));
    buf_free(&topic);
    return copy;
}

static void
copy_free(struct copy *copy)
{
    scene_free(copy->scene);
    bloom_free(copy->bloom, NULL);
    buf_free(&copy->told);
    mem_free(copy);
}

/* Delivers what was told. */
static void
follow(struct copy *copy)
{
    struct worker *worker = copy->scene->rig->worker;

    observe_close(worker);
    observe_wake(worker);
    (void)uv_run(&copy->scene->loop.uv, UV_RUN_NOWAIT);
}

static void
run_followed(struct copy *copy, const char *commands)
{
    run_text(copy->scene->rig, commands, false);
    follow(copy);
}

/* A copy that was not told to load again has what the server has. */
static void
check(const struct copy *copy, const char *what)
{
    const struct entry *entry = server_has(copy);
    struct buf own = { 0 };
    struct buf theirs = { 0 };

    if (copy->stale) {
        return;
    }
    if ((entry != NULL) != (copy->bloom != NULL)) {
        fail_msg("[%s] made or removed the key, and told [%.*s]", what,
                 (int)copy->told.len, copy->told.data);
    }
    if (entry == NULL || !copy->exact ||
        bloom_kind(&entry->bloom) == BLOOM_DELETABLE) {
        return; /* only its collisions and counts may differ */
    }
    dump_of(entry, &theirs);
    assert_non_null(buf_reserve(&own, (size_t)codec_dump_bytes(copy->bloom)));
    own.len = (size_t)codec_dump_bytes(copy->bloom);
    codec_dump(copy->bloom, entry->incarnation, own.data);
    if (!slice_equal(buf_slice(&own), buf_slice(&theirs))) {
        fail_msg("[%s] told [%.*s], and the copy differs", what,
                 (int)copy->told.len,
                 copy->told.len > 0 ? copy->told.data : "");
    }
    buf_free(&own);
    buf_free(&theirs);
}

/* ---- a case for every write row ------------------------------------------ */

#define AGEING "BF.RESERVE k 0.01 100 AGEING 99999"

struct told_case {
    enum command_id id;
    const char *before, *command, *told;
    bool over; /* the time of k is over, and nobody has noticed yet */
};

static const struct told_case cases[] = {
    { CMD_ID_BF_ADD, "", "BF.ADD k a", "changed\nadd 1\n", false },
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k a", "", false },
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k b", "add 1\n", false },
    { CMD_ID_BF_ADD, "BF.ADD k a", "BF.ADD k b", "gone\nchanged\nadd 1\n",
      true },
    { CMD_ID_BF_ADD, "BF.ADD k a", "MULTI; BF.ADD k b; DEL k; EXEC",
      "add 1\ngone\n", false },
    { CMD_ID_BF_ADD, AGEING, "BF.ADD k a; BF.ADD k a", "add 1 at\n", false },
    { CMD_ID_BF_ADD, "BF.RESERVE k 0.01 9 DELETABLE", "BF.ADD k a; BF.ADD k a",
      "add 1\n", false },
    { CMD_ID_BF_MADD, "", "BF.MADD k a b", "changed\nadd 2\n", false },
    { CMD_ID_BF_MADD, "BF.ADD k a", "BF.MADD k a b c b", "add 2\n", false },
    { CMD_ID_BF_MADD, "BF.INSERT k CAPACITY 2 NONSCALING ITEMS a",
      "BF.MADD k b c d", "add 1\n", false },
    { CMD_ID_BF_INSERT, "", "BF.INSERT k", "changed\n", false },
    { CMD_ID_BF_INSERT, "BF.ADD k a", "BF.INSERT k ITEMS a b", "add 1\n",
      false },
    { CMD_ID_BF_RESERVE, "", "BF.RESERVE k 0.01 100", "changed\n", false },
    { CMD_ID_BF_RESERVE, "BF.ADD k a", "BF.RESERVE k 0.01 100", "", false },
    { CMD_ID_BF_DEL, "BF.INSERT k DELETABLE ITEMS a b", "BF.DEL k a",
      "deleted 1\n", false },
    { CMD_ID_BF_DEL, "BF.INSERT k DELETABLE ITEMS a b", "BF.DEL k x", "",
      false },
    { CMD_ID_BF_MDEL, "BF.INSERT k DELETABLE ITEMS a b c", "BF.MDEL k a x b",
      "deleted 2\n", false },
    { CMD_ID_BF_RESET, "BF.ADD k a", "BF.RESET k", "changed\n", false },
    { CMD_ID_BF_RESET, "BF.ADD k a", "BF.RESET k", "gone\n", true },
    { CMD_ID_BF_MERGE, "BF.ADD a x", "BF.MERGE k a", "changed\nchanged\n",
      false },
    { CMD_ID_BF_MERGE, "BF.ADD a x; BF.INSERT k SEED <seed>", "BF.MERGE a k",
      "", false },
    { CMD_ID_DEL, "BF.ADD k a", "DEL x k", "gone\n", false },
    { CMD_ID_DEL, "", "DEL k", "", false },
    { CMD_ID_UNLINK, "BF.ADD k a", "UNLINK k", "gone\n", false },
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k 100", "", false },
    { CMD_ID_EXPIRE, "BF.ADD k a", "EXPIRE k 0", "gone\n", false },
    { CMD_ID_PEXPIRE, "BF.ADD k a", "PEXPIRE k -1", "gone\n", false },
    { CMD_ID_EXPIREAT, "BF.ADD k a", "EXPIREAT k 1", "gone\n", false },
    { CMD_ID_PEXPIREAT, "BF.ADD k a", "PEXPIREAT k 1", "gone\n", false },
    { CMD_ID_PERSIST, "BF.ADD k a; EXPIRE k 100", "PERSIST k", "", false },
    { CMD_ID_COPY, "BF.ADD a x", "COPY a k", "changed\nchanged\n", false },
    { CMD_ID_COPY, "BF.ADD a x; BF.ADD k y", "COPY a k REPLACE",
      "changed\nchanged\n", false },
    { CMD_ID_COPY, "BF.ADD k x", "COPY k a", "", false },
    { CMD_ID_RENAME, "BF.ADD k a", "RENAME k l", "gone\n", false },
    { CMD_ID_RENAME, "BF.ADD l a; BF.ADD k b", "RENAME l k",
      "changed\nchanged\n", false },
    { CMD_ID_RENAMENX, "BF.ADD l a", "RENAMENX l k", "changed\nchanged\n",
      false },
    { CMD_ID_RENAMENX, "BF.ADD k a", "RENAMENX k l", "gone\n", false },
    { CMD_ID_MOVE, "BF.ADD k a", "MOVE k 3", "gone\n", false },
    { CMD_ID_MOVE, "SELECT 3; BF.ADD k a", "MOVE k 0", "changed\nchanged\n",
      false },
    { CMD_ID_FLUSHDB, "BF.ADD k a", "FLUSHDB", "gone\n", false },
    { CMD_ID_FLUSHDB, "BF.ADD k a; SELECT 1", "FLUSHDB", "", false },
    { CMD_ID_FLUSHALL, "BF.ADD k a; SELECT 1", "FLUSHALL", "gone\n", false },
    { CMD_ID_SWAPDB, "BF.ADD k a; SELECT 4", "SWAPDB 0 3", "changed\n", false },
};

static void
check_case(const struct told_case *c)
{
    struct copy *copy = copy_new();

    run_followed(copy, c->before);
    load(copy);
    copy->told.len = 0;
    if (c->over) {
        end_time_of(copy->scene->rig, "k", 0);
    }
    run_followed(copy, c->command);
    buf_append(&copy->told, "", 1);
    if (strcmp(c->told, copy->told.data) != 0) {
        fail_msg("after [%s], [%s] told\n%s\nand not\n%s", c->before,
                 c->command, copy->told.data, c->told);
    }
    check(copy, c->command);
    copy_free(copy);
}

TEST(each_write_tells_what_it_does)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_case(&cases[i]);
    }
}

TEST(each_write_row_has_a_case)
{
    for (unsigned id = 0; id < CMD_ID_COUNT; id++) {
        bool found = (command_rows[id].flags & CMD_WRITE) == 0 ||
                     id == CMD_ID_RESTORE || id == CMD_ID_BF_LOADCHUNK ||
                     /* Those two: below; this one: scenario/test_subscribe.py.
                      */
                     id == CMD_ID_BF_LOAD;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            found = found || (cases[i].id == id &&
                              (cases[i].told[0] != '\0' ||
                               id == CMD_ID_PERSIST)); /* it changes no bit */
        }
        if (!found) {
            fail_msg("%s writes and has no case here", command_rows[id].name);
        }
    }
}

/* Runs a command of text words and one of bytes. */
static void
run_with_bytes(struct copy *copy, const char *head, struct slice bytes,
               const char *told)
{
    struct rig *rig = copy->scene->rig;

    copy->told.len = 0;
    batch_begin(rig);
    batch_text(rig, head);
    batch_word(rig, bytes);
    batch_run(rig);
    follow(copy);
    buf_append(&copy->told, "", 1);
    assert_string_equal(told, copy->told.data);
}

/* Returns the bytes at the end of the last reply, from the marked place on. */
static struct slice
bulk_of_reply(const struct rig *rig, const char *mark, struct buf *ret_copy)
{
    const char *at = memmem(rig->out.data, rig->out.len, mark, strlen(mark));

    assert_non_null(at);
    at += strlen(mark);
    buf_append(ret_copy, at,
               (size_t)(rig->out.data + rig->out.len - at) - strlen("\r\n"));
    return buf_slice(ret_copy);
}

TEST(filters_that_arrive_from_elsewhere_are_told)
{
    struct copy *copy = copy_new();
    struct rig *rig = copy->scene->rig;
    struct buf bytes = { 0 };

    run_followed(copy, "BF.INSERT x CAPACITY 50 ITEMS a b");
    batch_begin(rig);
    batch_text(rig, "DUMP x");
    batch_run(rig);
    (void)bulk_of_reply(rig, "\r\n", &bytes);
    run_with_bytes(copy, "RESTORE k 0", buf_slice(&bytes),
                   "changed\nchanged\n");
    run_followed(copy, "DEL k");
    bytes.len = 0;
    batch_begin(rig);
    batch_text(rig, "BF.SCANDUMP x 0");
    batch_run(rig);
    (void)bulk_of_reply(rig, ":1\r\n$104\r\n", &bytes);
    run_with_bytes(copy, "BF.LOADCHUNK k 1", buf_slice(&bytes), "changed\n");
    bytes.len = 0;
    batch_begin(rig);
    batch_text(rig, "BF.SCANDUMP x 1");
    batch_run(rig);
    (void)bulk_of_reply(rig, ":65\r\n$64\r\n", &bytes);
    run_with_bytes(copy, "BF.LOADCHUNK k 65", buf_slice(&bytes), "changed\n");
    run_with_bytes(copy, "BF.LOADCHUNK k 65", buf_slice(&bytes), "");
    buf_free(&bytes);
    copy_free(copy);
}

/* ---- random commands ----------------------------------------------------- */

enum { ROUNDS = 1500, ITEMS = 40 };

static const char *const kinds[] = { "8", "8 DELETABLE", "8 AGEING 99999",
                                     "20 NONSCALING" };
static const char *const others[] = { "DEL k",        "RENAME k l",
                                      "RENAME l k",   "COPY l k REPLACE",
                                      "BF.RESET k",   "BF.MERGE k l",
                                      "EXPIRE k 100", "PERSIST k",
                                      "FLUSHALL",     "SWAPDB 0 1" };

/* Appends a random command to a list between semicolons. */
static void
put_command(struct buf *text, uint64_t *rng)
{
    uint64_t dice = test_random_below(rng, 100);
    const char *key = test_random_below(rng, 4) > 0 ? "k" : "l";

    if (dice < 70) {
        static const char *const adds[] = { "BF.ADD", "BF.ADD", "BF.MADD",
                                            "BF.DEL" };

        buf_printf(text, "%s %s i%u", adds[test_random_below(rng, 4)], key,
                   (unsigned)test_random_below(rng, ITEMS));
    } else if (dice < 85) {
        buf_printf(text, "BF.INSERT %s ITEMS", key);
        for (uint64_t i = 0; i < 12; i++) {
            buf_printf(text, " i%u", (unsigned)test_random_below(rng, ITEMS));
        }
    } else if (dice < 95) {
        buf_printf(text, "BF.RESERVE %s 0.01 %s", key,
                   kinds[test_random_below(rng, 4)]);
    } else {
        buf_printf(text, "%s", others[test_random_below(rng, 10)]);
    }
}

TEST(a_copy_that_follows_never_lacks_an_item)
{
    struct copy *copy = copy_new();
    uint64_t rng = test_seed();
    unsigned followed = 0;

    for (unsigned round = 0; round < ROUNDS * test_rounds(); round++) {
        struct buf text = { 0 };

        copy->told.len = 0;
        for (uint64_t n = test_random_below(&rng, 8); n > 0; n--) {
            put_command(&text, &rng);
            buf_printf(&text, "%s", n > 1 ? "; " : "");
        }
        buf_append(&text, "", 1);
        run_text(copy->scene->rig, text.data, test_random_below(&rng, 2) == 0);
        follow(copy);
        check(copy, text.data);
        followed += !copy->stale && copy->bloom != NULL;
        if (copy->stale) {
            load(copy);
        }
        buf_free(&text);
    }
    assert_true(followed > ROUNDS / 3);
    copy_free(copy);
}
