/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random lives of one server: primary or replica, with the journal and the tap
 * switched on and off, saved, rewritten, given other data, promoted, on a disk
 * that fails now and then, and killed at any moment. Two rules must hold. A
 * place (history, position) has one state: a server that reaches it again, in
 * whatever way, has the same data as the first time, and sees the same groups
 * from there. And data that was reported to be on the disk is there after a
 * kill.
 */
#include "persist_rig.h"

#include "base/random.h"
#include "persist/reload.h"

enum { LIVES = 15, STEPS = 120, PLACES_MAX = 4096 };

/* The data at one place, and how the log continued from there. */
struct place_known {
    char id[HISTORY_ID_CHARS + 1];
    uint64_t position, data;
    bool goes_on, said; /* by a group; said: the next id, else a key */
    unsigned key;
    char next[HISTORY_ID_CHARS + 1];
};

struct life {
    struct prig *rig;
    uint64_t random;
    bool replica;
    struct place_known places[PLACES_MAX];
    unsigned count;
    unsigned keys; /* names given so far */
};

static uint64_t
below(struct life *life, uint64_t bound)
{
    return test_random_below(&life->random, bound);
}

static uint64_t
data_of(const struct life *life)
{
    uint64_t data = 0;

    for (unsigned i = 0; i < life->keys; i++) {
        uint64_t key = i + 1;

        data ^= prig_has(life->rig, i) ? test_random(&key) : 0;
    }
    return data;
}

static struct place_known *
find(struct life *life, const char *id, uint64_t position)
{
    for (unsigned i = 0; i < life->count; i++) {
        struct place_known *place = &life->places[i];

        if (place->position == position && strcmp(place->id, id) == 0) {
            return place;
        }
    }
    return NULL;
}

/* Where it is now: seen before with this data, or never. */
static struct place_known *
look(struct life *life)
{
    struct prig *rig = life->rig;
    struct history history = prig_history(rig);
    uint64_t position = prig_position(rig);
    uint64_t data = data_of(life);
    struct place_known *place = find(life, history.id, position);

    if (persist_is_tapped(rig->persist)) {
        assert_int_equal(position, rig->tape_begin + rig->taped.len);
    }
    if (place == NULL) {
        assert_true(life->count < PLACES_MAX);
        place = &life->places[life->count++];
        *place = (struct place_known){ .position = position, .data = data };
        memcpy(place->id, history.id, sizeof(place->id));
    }
    assert_int_equal(place->data, data);
    for (int i = 0; i < HISTORY_PAST_MAX && history.past[i].id[0] != '\0';
         i++) {
        const struct place_known *past =
            find(life, history.past[i].id, history.past[i].until);
        const struct place_known *same =
            find(life, history.id, history.past[i].until);

        assert_true(past == NULL || same == NULL || past->data == same->data);
    }
    return place;
}

/* ---- what happens -------------------------------------------------------- */

static void
set_tap(struct life *life, bool on)
{
    if (persist_is_tapped(life->rig->persist) != on) {
        (void)look(life);
        prig_tap(life->rig, on);
        (void)look(life);
    }
}

static void
write_one(struct life *life)
{
    struct place_known *before = look(life);
    bool logged = life->rig->journal != NULL;

    life->rig->written = life->keys;
    (void)prig_write(life->rig);
    if (logged) {
        before->goes_on = true;
        before->key = life->keys;
    }
    life->keys = life->rig->written;
    (void)look(life);
}

static void
renew(struct life *life)
{
    struct place_known *before = look(life);

    prig_renew(life->rig);
    if (life->rig->journal != NULL) {
        before->goes_on = before->said = true;
        memcpy(before->next, prig_history(life->rig).id, sizeof(before->next));
    }
    (void)look(life);
}

static void
arrive(struct life *life)
{
    struct prig *rig = life->rig;
    char id[HISTORY_ID_CHARS + 1];
    unsigned count = (unsigned)below(life, 5);

    random_hex(id, HISTORY_ID_CHARS);
    (void)look(life);
    prig_adopt(rig, life->keys, count, id, below(life, 5000));
    life->keys += count;
    rig->written = life->keys;
    assert_string_equal(prig_history(rig).id, id);
    (void)look(life);
}

/* A group was executed in part: no other server has this data. */
static void
lose_track(struct life *life)
{
    struct prig *rig = life->rig;
    struct persist_arrival arrival = { .fresh = NULL };
    char name[24];

    (void)look(life);
    gate_raise(keyspace_gate(rig->ks), 0);
    (void)snprintf(name, sizeof(name), "w%u", life->keys++);
    prig_create(rig, slice_of(name));
    rig->written = life->keys;
    persist_place(rig->persist, &arrival.position, &arrival.sequence);
    arrival.position++;
    persist_adopt(rig->persist, &arrival);
    gate_lower(keyspace_gate(rig->ks), 0);
    (void)look(life);
}

/* A server that has the log of this history beyond this place has it from here.
 */
static bool
is_in_a_log(const struct life *life, const struct place_known *place)
{
    bool last = true;

    for (unsigned i = 0; i < life->count; i++) {
        last = last && (life->places[i].position <= place->position ||
                        strcmp(life->places[i].id, place->id) != 0);
    }
    return place->goes_on || last;
}

static void
hear(struct life *life)
{
    struct prig *rig = life->rig;
    struct place_known *before = look(life);

    if (!is_in_a_log(life, before)) { /* it went on here without a log */
        arrive(life);
        return;
    }
    if (!before->goes_on) {
        before->goes_on = true;
        before->said = below(life, 10) == 0;
        before->key = life->keys;
        random_hex(before->next, HISTORY_ID_CHARS);
    }
    if (before->said) {
        prig_relay_history(rig, before->next);
    } else {
        rig->written = before->key;
        (void)prig_relay(rig);
        life->keys = before->key < life->keys ? life->keys : before->key + 1;
    }
    (void)look(life);
}

static void
follow(struct life *life)
{
    set_tap(life, true);
    life->replica = true;
    if (below(life, 3) > 0) {
        arrive(life);
    }
}

static void
lead(struct life *life)
{
    renew(life);
    life->replica = false;
}

static void
fail_something(struct life *life)
{
    static const int errors[] = { EIO, ENOSPC };

    if (below(life, 2) == 0) {
        (void)file_fail_clear();
        return;
    }
    file_fail_at((enum file_call)below(life, FILE_CALL_COUNT),
                 1 + (unsigned)below(life, 4), errors[below(life, 2)],
                 below(life, 3) == 0);
}

static void
kill_and_start(struct life *life)
{
    struct prig *rig = life->rig;
    uint64_t synced;

    (void)look(life);
    (void)file_fail_clear();
    synced = journal_synced(rig->persist->journal);
    prig_restart(rig);
    assert_true(prig_position(rig) >= synced);
    if (data_of(life) != 0) { /* something was there, so it has a name */
        assert_non_null(find(life, prig_history(rig).id, prig_position(rig)));
    }
    (void)look(life);
    if (life->replica) {
        set_tap(life, true);
    } else {
        renew(life);
    }
}

static void
tick_a_while(struct life *life)
{
    for (uint64_t i = below(life, 8); i > 0; i--) {
        if (reload_is_due(life->rig->persist)) {
            (void)file_fail_clear(); /* it would end the process, see there */
        }
        persist_tick(life->rig->persist);
        (void)look(life); /* after a fault it may be in a place of its own */
        (void)poll(NULL, 0, (int)below(life, 3));
    }
}

/* A queue with hardly any room is one on a disk that does not keep up. */
static void
switch_journal(struct life *life)
{
    struct prig *rig = life->rig;

    prig_set(rig, "appendonly", below(life, 3) > 0 ? "yes" : "no");
    if (below(life, 3) == 0) {
        journal_set_limit(rig->persist->journal, 1 + below(life, 2000));
    }
}

static void
do_something(struct life *life)
{
    struct persist *persist = life->rig->persist;
    uint64_t what = below(life, 100);

    if (what < 40) {
        for (uint64_t i = below(life, 6); i > 0; i--) {
            (life->replica ? hear : write_one)(life);
        }
    } else if (what < 65) {
        tick_a_while(life);
    } else if (what < 70) {
        switch_journal(life);
    } else if (what < 76) {
        fail_something(life);
    } else if (what < 80) {
        (void)persist_ask(persist, PERSIST_SAVE);
    } else if (what < 84) {
        (void)persist_ask(persist, PERSIST_REWRITE);
    } else if (what < 88) {
        kill_and_start(life);
    } else if (what < 92) {
        (life->replica ? lead : follow)(life);
    } else if (life->replica) {
        (below(life, 4) == 0 ? lose_track : arrive)(life);
    } else if (what < 96) {
        set_tap(life, below(life, 2) == 0);
    } else if (!life->rig->conf.appendonly) {
        (void)persist_ask(persist, PERSIST_RELOAD_NOSAVE);
    }
}

static void
live(uint64_t seed)
{
    static const char *const policies[] = { "always", "everysec", "no" };
    struct life *life = mem_zalloc(sizeof(*life));

    life->random = seed;
    life->rig = prig_start(below(life, 2) == 0 ? "yes" : "no",
                           policies[below(life, 3)]);
    for (int i = 0; i < STEPS; i++) {
        do_something(life);
        (void)look(life);
    }
    kill_and_start(life);
    prig_free(life->rig);
    mem_free(life);
}

TEST(no_place_ever_has_two_states)
{
    for (unsigned i = 0; i < LIVES * test_rounds(); i++) {
        live(test_seed() + i);
    }
}
