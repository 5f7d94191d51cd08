/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One primary, one replica, and a connection that ends at every byte: of a
 * stream, of a handshake, of a full synchronization.
 */
#include "sim_node.h"

#include "journal/journal_tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SHORT_BYTES = 16 << 10, LONG_CUTS = 2500 };
#else
enum { SHORT_BYTES = 64 << 10, LONG_CUTS = 10000 };
#endif

enum { LONG_BYTES = 4 << 20, ENOUGH_MS = 1000 * 1000 * 1000 };

/* The bytes at which successive connections end. */
static struct {
    uint64_t *places;
    size_t count, next;
    unsigned side;
} cuts;

static struct sim *world;

static bool
agree(struct sim *sim)
{
    const struct node *a = sim->nodes[0];
    const struct node *b = sim->nodes[1];

    return a->open_bytes == 0 && b->position == a->position &&
           strcmp(a->history.id, b->history.id) == 0 &&
           node_digest(a) == node_digest(b) && replica_is_connected(b->replica);
}

static bool
agree_after_all(struct sim *sim)
{
    return sim->counts.cuts == cuts.count && agree(sim);
}

/* Resets what a failed test left. */
static void
reset(void)
{
    node_dialled = NULL;
    node_continued = NULL;
    mem_free(cuts.places);
    memset(&cuts, 0, sizeof(cuts));
}

static void
begin(bool connected)
{
    struct sim *sim = sim_new(test_seed());

    log_set_level(LOG_ERROR);
    world = sim;
    sim->latency_max_ms = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct node *node = node_new(sim);

        node->leader = (int)i - 1;
        node->limits.backlog_bytes = 1 << 30;
        /* No line may be in the stream, since its bytes are counted. */
        node->limits.ping_ms = node->limits.timeout_ms = ENOUGH_MS;
        node->options.timeout_ms = ENOUGH_MS;
        node->snapshot_padding = 512;
        node_boot(node, NULL);
    }
    if (connected) {
        assert_true(sim_run(sim, sim->now_ms + 10000, agree));
        assert_int_equal(1, sim->counts.fulls);
    }
}

static void
end(void)
{
    reset();
    for (unsigned i = 0; i < 2; i++) {
        node_free(world->nodes[i]);
    }
    sim_free(world);
}

/* The replica has not seen any of it. */
static void
write_alone(uint64_t bytes, size_t padding_max)
{
    struct node *node = world->nodes[0];
    uint64_t from = node->position;

    world->refuse[1][0] = true;
    primary_drop_all(node->primary, "to be alone");
    while (node->position - from < bytes) {
        for (uint64_t i = sim_below(world, 4); i > 0; i--) {
            node_write(node, padding_max);
        }
        (void)journal_close_group(node->journal);
    }
    node_stream(node);
}

static void
cut_stream(struct node *node, struct conn *conn, uint64_t from)
{
    (void)node;
    if (cuts.next < cuts.count) {
        assert_true(cuts.places[cuts.next] >= from);
        conn->side[DIALER].cut_at =
            conn->log_at + cuts.places[cuts.next++] - from;
    }
}

static void
resume_to_the_end(void)
{
    struct sim *sim = world;

    node_continued = cut_stream;
    sim->refuse[1][0] = false;
    assert_true(sim_run(sim, sim->now_ms + ENOUGH_MS, agree_after_all));
    assert_int_equal(cuts.count, sim->counts.cuts);
    assert_int_equal(1, sim->counts.fulls);
    assert_true(sim->counts.partials >= cuts.count);
    assert_int_equal(0, sim->counts.doubts);
}

TEST(a_stream_that_is_cut_at_every_byte_arrives)
{
    uint64_t from;

    reset();
    begin(true);
    from = world->nodes[0]->position;
    write_alone(SHORT_BYTES, 600);
    cuts.count = (size_t)(world->nodes[0]->position - from + 1);
    cuts.places = mem_alloc(cuts.count * sizeof(*cuts.places));
    for (size_t i = 0; i < cuts.count; i++) {
        cuts.places[i] = from + i;
    }
    resume_to_the_end();
    end();
}

static int
compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

TEST(a_long_stream_that_is_cut_at_random_places_arrives)
{
    uint64_t from;

    reset();
    begin(true);
    from = world->nodes[0]->position;
    write_alone(LONG_BYTES, 8000);
    cuts.count = LONG_CUTS;
    cuts.places = mem_alloc(cuts.count * sizeof(*cuts.places));
    for (size_t i = 0; i < cuts.count; i++) {
        cuts.places[i] =
            from + sim_below(world, world->nodes[0]->position - from + 1);
    }
    qsort(cuts.places, cuts.count, sizeof(*cuts.places), compare);
    resume_to_the_end();
    end();
}

/* Cuts the nth connection at its nth byte, until one lasts to the end. */
static void
cut_connection(struct node *node, struct conn *conn)
{
    (void)node;
    if (cuts.next < cuts.count) {
        conn->side[cuts.side].cut_at = cuts.next++;
    }
}

static void
cut_handshakes(unsigned side, bool connected, uint64_t cuts_min)
{
    reset();
    if (connected) {
        begin(true);
        write_alone(2000, 100);
        world->refuse[1][0] = false;
    }
    cuts.side = side;
    cuts.count = SIZE_MAX;
    node_dialled = cut_connection;
    if (!connected) {
        begin(false);
    }
    assert_true(sim_run(world, world->now_ms + ENOUGH_MS, agree));
    assert_in_range(world->counts.cuts, cuts.next - 1, cuts.next);
    assert_true(world->counts.cuts >= cuts_min);
    if (connected) {
        assert_int_equal(1, world->counts.fulls);
    } else {
        assert_true(world->counts.fulls >= (side == DIALER ? 500 : 1));
        assert_int_equal(1, world->counts.loads);
    }
    end();
}

TEST(a_replica_that_resumes_may_be_cut_at_every_byte_it_hears)
{
    cut_handshakes(DIALER, true, 150);
}

TEST(a_replica_that_resumes_may_be_cut_at_every_byte_it_says)
{
    cut_handshakes(ACCEPTER, true, 200);
}

TEST(a_full_synchronization_may_be_cut_at_every_byte)
{
    cut_handshakes(DIALER, false, 500);
}

TEST(a_new_replica_may_be_cut_at_every_byte_it_says)
{
    cut_handshakes(ACCEPTER, false, 150);
}
