/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is to be done about one wanted slot, by what is known of it.
 */
#include "cluster/claim_decide.h"

#include "../test.h"
#include "cluster/sidecar_peers.h"
#include "sidecar_rig.h"

/* Epochs stand for themselves + 1, and 0 for none, as in the structs. Our
 * node's epoch is 1, so 2 is ours. */
enum { OURS = 2 };

struct scene {
    enum want want;
    uint64_t held, known, copied;
    struct sidecar_holder found;
    bool silent;     /* a daemon was, in the last round */
    bool patient;    /* the slot is wanted for long */
    bool unsurveyed; /* no round has ended since */
    bool fenced, forced;
    bool forced_found; /* when all daemons answered, and one had the data */
    bool of_source;    /* the owner before is known */
};

static void
check_scene(struct rig *rig, const struct scene *scene)
{
    struct sidecar *sidecar = rig->sidecar;
    struct sidecar_slot *slot = &sidecar->slots[0];
    uint64_t now_ms = 100000;
    uint16_t b = sidecar_peer_of(sidecar, RIG_B);

    sidecar->own->held[0] = scene->held;
    sidecar->own->known[0] = scene->known;
    sidecar->own->copied[0] = scene->copied;
    sidecar->survey.found[0] = scene->found;
    sidecar->survey.found[0].peer = b;
    sidecar->survey.complete = !scene->silent;
    sidecar->survey.rounds = 7;
    slot->wanted_round = scene->unsurveyed ? 7 : 6;
    slot->wanted_ms =
        now_ms - (scene->patient ? sidecar->options.silence_ms : 0);
    slot->fenced = scene->fenced;
    slot->fenced_ms = scene->fenced ? now_ms : 0;
    slot->forced = scene->forced;
    slot->forced_found = scene->forced_found;
    slot->forced_from = PEER_NONE;
    slot->source = scene->of_source ? b : PEER_NONE;
    slot->surveyed = false;
    slot->judged = slot->source_epoch = 0;
    assert_int_equal(sidecar_epoch(sidecar), OURS);
    assert_int_equal(claim_decide(sidecar, 0, now_ms), scene->want);
    if (scene->want == WANT_CLAIM) {
        assert_int_equal(slot->source, b);
        assert_int_equal(slot->surveyed, !scene->of_source);
    }
}

static void
check_scenes(const struct scene *scenes, size_t count)
{
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    for (size_t i = 0; i < count; i++) {
        print_message("scene %zu\n", i);
        check_scene(&rig, &scenes[i]);
    }
    rig_fini(&rig);
}

TEST(what_we_held_all_the_time_is_served)
{
    static const struct scene scenes[] = {
        { WANT_SERVE, .held = OURS, .known = OURS },
        { WANT_SERVE, .held = OURS, .known = OURS, .unsurveyed = true },
        /* It was fenced a moment ago. */
        { WANT_WAITS, .held = OURS, .known = OURS, .fenced = true },
        /* It was claimed at a higher epoch, or is a copy, or from before. */
        { WANT_WAITS, .held = OURS, .known = OURS + 1, .unsurveyed = true },
        { WANT_WAITS, .held = OURS, .known = OURS, .copied = 9,
          .unsurveyed = true },
        { WANT_WAITS, .held = OURS - 1, .known = OURS - 1, .unsurveyed = true },
    };

    check_scenes(scenes, sizeof(scenes) / sizeof(scenes[0]));
}

TEST(the_owner_before_is_asked_without_a_survey)
{
    static const struct scene scenes[] = {
        { WANT_CLAIM, .unsurveyed = true, .of_source = true },
        { WANT_WAITS, .unsurveyed = true },
    };

    check_scenes(scenes, sizeof(scenes) / sizeof(scenes[0]));
}

TEST(a_survey_tells_who_has_the_newest)
{
    static const struct scene scenes[] = {
        { WANT_CLAIM, .known = OURS,
          .found = { .epoch = OURS, .known = OURS } },
        { WANT_KEEP, .held = OURS - 1, .known = OURS - 1,
          .found = { .known = OURS - 1 } },
        /* A copy, while its original may serve. */
        { WANT_WAITS, .known = OURS,
          .found = { .epoch = OURS, .known = OURS, .copy = true } },
        { WANT_CLAIM, .known = OURS,
          .found = { .epoch = OURS, .known = OURS, .copy = true },
          .patient = true },
        /* Nobody has ever held it: it is new. */
        { WANT_KEEP, .held = 0 },
        /* What was found is not the last word. */
        { WANT_WAITS, .known = OURS,
          .found = { .epoch = OURS, .known = OURS, .claimed = true } },
        { WANT_WAITS, .known = OURS + 1,
          .found = { .epoch = OURS, .known = OURS } },
        { WANT_WAITS, .known = OURS,
          .found = { .epoch = OURS - 1, .known = OURS, .rises = true } },
    };

    check_scenes(scenes, sizeof(scenes) / sizeof(scenes[0]));
}

TEST(what_a_silent_daemon_may_have_is_missing)
{
    static const struct scene scenes[] = {
        { WANT_MISSING, .silent = true },
        { WANT_MISSING, .held = OURS - 1, .known = OURS,
          .found = { .known = OURS }, .silent = true },
        /* All have answered: what one knew of nobody has. */
        { WANT_KEEP, .held = OURS - 1, .known = OURS,
          .found = { .known = OURS } },
        { WANT_MISSING, .known = OURS, .found = { .known = OURS } },
        /* An operator has said to take what there is, after a lease. */
        { WANT_WAITS, .silent = true, .forced = true },
        { WANT_KEEP, .silent = true, .forced = true, .patient = true },
        { WANT_MISSING, .silent = true, .forced = true, .forced_found = true,
          .patient = true },
        /* The best that is there, but the silent one may still serve. */
        { WANT_WAITS, .known = OURS, .found = { .epoch = OURS, .known = OURS },
          .silent = true },
        { WANT_CLAIM, .known = OURS, .found = { .epoch = OURS, .known = OURS },
          .silent = true, .patient = true },
    };

    check_scenes(scenes, sizeof(scenes) / sizeof(scenes[0]));
}

/* sidecar-missing-slot empty holds whatever an operator has ordered. */
TEST(a_missing_slot_is_empty_if_the_option_says_so)
{
    static const struct scene scene = {
        WANT_KEEP,      .known = 5,           .found.known = 5,
        .silent = true, .forced_found = true, .patient = true
    };
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    rig.sidecar->options.missing_empty = true;
    check_scene(&rig, &scene);
    rig_fini(&rig);
}

TEST(a_holder_of_a_higher_epoch_gives_it_when_forced)
{
    struct scene scene = { WANT_WAITS, .known = OURS + 5,
                           .found = { .epoch = OURS + 5, .known = OURS + 5 } };

    check_scenes(&scene, 1); /* perhaps our node does not know its owner yet */
    scene.patient = true;
    scene.want = WANT_MISSING;
    check_scenes(&scene, 1);
    scene.forced = true;
    scene.want = WANT_CLAIM;
    check_scenes(&scene, 1);
}
