/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What INFO and the page see of a pull and of a drop: what loop 0 published
 * last.
 */
#include "slots/slot_figures.h"

#include "../test.h"
#include "base/mem.h"
#include "keyspace/key_hash.h"
#include "slots/pull.h"
#include "slots/pull_state.h"
#include "slots/slot_drop.h"

struct place {
    struct service service;
    struct loop0 loop0;
    struct pull pull;
    struct slot_drop *drop;
    struct slot_figures *figures;
};

static void
ignore_poke(void *ctx)
{
    (void)ctx;
}

static struct place *
place_new(bool slots)
{
    struct place *place = mem_zalloc(sizeof(*place));

    key_hash_by_slot(slots);
    place->loop0.service = &place->service;
    place->pull.roles.loop0 = &place->loop0;
    place->drop = slot_drop_new(&place->loop0, ignore_poke, place);
    place->figures =
        slot_figures_new(&place->service, &place->pull, place->drop);
    return place;
}

static void
place_free(struct place *place)
{
    slot_figures_free(place->figures);
    slot_drop_free(place->drop);
    mem_free(place);
    key_hash_by_slot(false);
}

static void
expect_text(const struct place *place, const char *wanted)
{
    const struct slot_calls *calls = &place->service.slots;
    struct buf text = { 0 };

    calls->describe(calls->ctx, &text);
    buf_append(&text, "", 1);
    assert_string_equal(wanted, text.data);
    buf_free(&text);
}

static struct slot_transfers
transfers_of(const struct place *place)
{
    struct slot_transfers transfers = { .count = 99 };

    place->service.slots.transfers(place->service.slots.ctx, &transfers);
    return transfers;
}

#define COUNTS                                                                 \
    "slot_pulls_done:3\r\nslot_pulls_failed:2\r\nslot_last_cutover_us:7\r\n"   \
    "slot_last_failure:no way\r\n"

static void
begin_pull(struct place *place)
{
    struct pull *pull = &place->pull;

    pull->wanted = true;
    (void)snprintf(pull->host, sizeof(pull->host), "10.0.0.1");
    pull->port = 7379;
    slot_set_add_range(&pull->claimed, 5, 7);
    slot_set_add(&pull->claimed, 9);
    pull->counts.done = 3;
    pull->counts.failed = 2;
    pull->counts.cutover_us = 7;
    (void)snprintf(pull->counts.why, sizeof(pull->counts.why), "no way");
}

TEST(without_slots_nothing_is_said)
{
    struct place *place = place_new(false);

    begin_pull(place);
    slot_figures_publish(place->figures);
    expect_text(place, "");
    assert_int_equal(0, transfers_of(place).count);
    place_free(place);
}

TEST(what_was_published_last_is_shown)
{
    struct place *place = place_new(true);
    struct slot_transfers transfers;

    begin_pull(place);
    assert_int_equal(0, transfers_of(place).count);
    slot_figures_publish(place->figures);
    expect_text(place,
                "slot_pulls:1\r\n"
                "slot_pull0:source=10.0.0.1:7379,state=queued,slots=5-7 9,"
                "keys=0,bytes=0,attempts=0,claimed=yes,position=0,lag_bytes=0,"
                "lag_ms=0,reason=\"\"\r\n" COUNTS
                "slots_being_deleted:0\r\nslot_keys_deleted:0\r\n");
    transfers = transfers_of(place);
    assert_int_equal(1, transfers.count);
    assert_string_equal("10.0.0.1:7379", transfers.source);
    assert_int_equal(4, transfers.slots);
    place->pull.wanted = false;
    assert_int_equal(1, transfers_of(place).count);
    slot_figures_publish(place->figures);
    assert_int_equal(0, transfers_of(place).count);
    assert_string_equal("", transfers_of(place).state);
    place_free(place);
}

TEST(slots_that_are_deleted_are_counted_until_they_are_spared)
{
    struct place *place = place_new(true);
    struct slot_set slots = { { 0 } };
    struct slot_set spared = { { 0 } };

    slot_set_add_range(&slots, 0, 9);
    slot_set_add_range(&spared, 8, 20);
    slot_drop_begin(place->drop, &slots);
    slot_drop_end(place->drop, &spared);
    slot_figures_publish(place->figures);
    expect_text(place, "slot_pulls:0\r\nslot_pulls_done:0\r\n"
                       "slot_pulls_failed:0\r\nslot_last_cutover_us:0\r\n"
                       "slot_last_failure:\r\n"
                       "slots_being_deleted:8\r\nslot_keys_deleted:0\r\n");
    place_free(place);
    slot_figures_free(NULL);
}
