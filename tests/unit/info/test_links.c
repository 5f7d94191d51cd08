/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What clients are told of links, over figures as loop 0 would publish them:
 * copies, what of them is about an earlier role, ROLE, INFO, CLIENT LIST and
 * KILL, WAIT.
 */
#include "info/links.h"

#include "base/clock.h"
#include "engine/client.h"
#include "engine/role.h"
#include "info/info.h"
#include "net/registry.h"

#include "../engine/rig.h"

/* ---- a service with links ------------------------------------------------ */

struct scene {
    struct rig *rig;
    struct status_figures figures;
    struct status_replica replicas[3];
    uint64_t killed[4];
    bool is_full; /* the mailbox of loop 0 */
    size_t kills, acks_wanted;
    uint64_t position_wanted;
};

static bool
note_kill(void *ctx, uint64_t id)
{
    struct scene *scene = ctx;

    scene->killed[scene->kills++] = id;
    return !scene->is_full;
}

static void
note_want(void *ctx, uint64_t position)
{
    struct scene *scene = ctx;

    scene->position_wanted = position;
    scene->acks_wanted++;
}

static void
set_replica(struct scene *scene, size_t i, enum status_replica_state state,
            uint64_t acked)
{
    struct status_replica *replica = &scene->replicas[i];

    replica->id = 100 + i;
    (void)snprintf(replica->ip, sizeof(replica->ip), "10.0.0.%zu", i);
    (void)snprintf(replica->address, sizeof(replica->address),
                   "10.0.0.%zu:5000", i);
    (void)snprintf(replica->local_address, sizeof(replica->local_address),
                   "10.0.0.9:7379");
    (void)snprintf(replica->user, sizeof(replica->user), "repl%zu", i);
    replica->port = 7000 + (unsigned)i;
    replica->state = state;
    replica->acked = acked;
    replica->synced = acked / 2;
    replica->since_mono_ms = clock_mono_ms();
    replica->acked_mono_ms = clock_mono_ms();
    replica->unsent_bytes = i * 1000;
}

static void
publish(struct scene *scene, size_t count)
{
    status_publish(scene->rig->service.status, &scene->figures, scene->replicas,
                   count);
}

static struct scene *
scene_new(void)
{
    struct scene *scene = mem_zalloc(sizeof(*scene));
    struct service *service;

    scene->rig = rig_new();
    service = &scene->rig->service;
    memset(service->run_id, 'a', 40);
    service->status = status_new();
    service->registry = registry_new();
    service->replication.ctx = scene;
    service->replication.kill = note_kill;
    service->replication.want_acks = note_want;
    set_replica(scene, 0, STATUS_ONLINE, 500);
    set_replica(scene, 1, STATUS_ONLINE, 1000);
    set_replica(scene, 2, STATUS_SYNCS, 0);
    return scene;
}

static void
scene_free(struct scene *scene)
{
    status_free(scene->rig->service.status);
    registry_free(scene->rig->service.registry);
    rig_free(scene->rig);
    mem_free(scene);
}

static const char *
said(struct scene *scene, const char *text)
{
    run_text(scene->rig, text, true);
    buf_append(&scene->rig->out, "", 1);
    return scene->rig->out.data;
}

static bool
says(struct scene *scene, const char *text, const char *part)
{
    return strstr(said(scene, text), part) != NULL;
}

static void
follow(struct scene *scene, enum status_link link)
{
    role_follow(&scene->rig->service, slice_lit("10.1.1.1"), 6000);
    scene->figures.epoch = scene->rig->service.role.epoch;
    scene->figures.link = link;
    scene->figures.link_id = 55;
    (void)snprintf(scene->figures.link_address, STATUS_TEXT_MAX,
                   "10.1.1.1:6000");
    (void)snprintf(scene->figures.link_local_address, STATUS_TEXT_MAX,
                   "10.0.0.9:4444");
    scene->figures.heard_mono_ms = clock_mono_ms();
    publish(scene, 0);
}

/* ---- copies -------------------------------------------------------------- */

TEST(links_are_copied_and_found_by_what_they_announced)
{
    struct scene *scene = scene_new();
    struct links links;

    publish(scene, 3);
    assert_int_equal(OK, links_get(&scene->rig->service, &links));
    assert_int_equal(3, links.count);
    assert_ptr_equal(&links.replicas[1],
                     links_find(&links, slice_lit("10.0.0.1"), 7001));
    assert_null(links_find(&links, slice_lit("10.0.0.1"), 7000));
    assert_null(links_find(&links, slice_lit("10.0.0."), 7001));
    assert_int_equal(3000, links_unsent(&links));
    assert_false(links_has_primary(&links));
    links_free(&links);
    mem_fail_at(1);
    assert_int_equal(ERR_NOMEM, links_get(&scene->rig->service, &links));
    assert_true(mem_fail_clear());
    scene_free(scene);
}

TEST(without_a_status_there_are_no_links)
{
    struct rig *rig = rig_new();
    struct links links;

    assert_int_equal(OK, links_get(&rig->service, &links));
    assert_int_equal(0, links.count);
    assert_int_equal(STATUS_NO_LINK, links.figures.link);
    assert_false(links_has_data(&rig->service));
    role_follow(&rig->service, slice_lit("h"), 1);
    links_get_figures(&rig->service, &links.figures);
    assert_int_equal(STATUS_CONNECT, links.figures.link);
    links_free(&links);
    rig_free(rig);
}

TEST(reasons_of_an_earlier_role_are_left_out)
{
    struct scene *scene = scene_new();
    struct service *service = &scene->rig->service;
    struct status_figures figures;

    follow(scene, STATUS_CONNECTED);
    scene->figures.synced_once = true;
    (void)snprintf(scene->figures.reason, STATUS_TEXT_MAX, "x");
    publish(scene, 0);
    links_get_figures(service, &figures);
    assert_int_equal(STATUS_CONNECTED, figures.link);
    assert_true(figures.synced_once && links_has_data(service));
    assert_string_equal("x", figures.reason);

    role_follow(service, slice_lit("10.1.1.1"), 6001);
    links_get_figures(service, &figures);
    assert_int_equal(STATUS_CONNECT, figures.link);
    assert_false(figures.synced_once || links_has_data(service));
    assert_string_equal("", figures.reason);
    assert_int_equal(0, figures.link_id);

    role_lead(service);
    scene->figures.epoch = service->role.epoch;
    publish(scene, 0);
    links_get_figures(service, &figures);
    assert_int_equal(STATUS_NO_LINK, figures.link);
    assert_int_equal(0, figures.link_id);
    scene_free(scene);
}

/* ---- ROLE, INFO ---------------------------------------------------------- */

TEST(role_shows_the_replicas_that_are_online)
{
    struct scene *scene = scene_new();

    assert_string_equal("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
                        said(scene, "ROLE"));
    publish(scene, 3);
    assert_string_equal("*3\r\n$6\r\nmaster\r\n:0\r\n*2\r\n"
                        "*3\r\n$8\r\n10.0.0.0\r\n$4\r\n7000\r\n$3\r\n500\r\n"
                        "*3\r\n$8\r\n10.0.0.1\r\n$4\r\n7001\r\n$4\r\n1000\r\n",
                        said(scene, "ROLE"));
    scene_free(scene);
}

TEST(role_of_a_replica_says_how_its_link_is)
{
    static const struct {
        enum status_link link;
        const char *word;
    } cases[] = {
        { STATUS_NO_LINK, "connect" },
        { STATUS_CONNECT, "connect" },
        { STATUS_CONNECTING, "connecting" },
        { STATUS_HANDSHAKE, "handshake" },
        { STATUS_SYNC, "sync" },
        { STATUS_CONNECTED, "connected" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene *scene = scene_new();
        char expected[128];

        follow(scene, cases[i].link);
        (void)snprintf(expected, sizeof(expected),
                       "*5\r\n$5\r\nslave\r\n$8\r\n10.1.1.1\r\n:6000\r\n"
                       "$%zu\r\n%s\r\n:-1\r\n",
                       strlen(cases[i].word), cases[i].word);
        assert_string_equal(expected, said(scene, "ROLE"));
        assert_true(says(scene, "HELLO 3", "$4\r\nrole\r\n$7\r\nreplica"));
        scene_free(scene);
    }
}

static const char *
info_of(struct scene *scene)
{
    struct buf *out = &scene->rig->out;

    out->len = 0;
    info_write(&scene->rig->service, 1U << INFO_REPLICATION, out);
    buf_append(out, "", 1);
    return out->data;
}

/* Each of these lines, in this order, and those before the last one directly
 * behind each other. */
static void
assert_lines(const char *text, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        size_t len = strlen(*lines);

        if (strncmp(text, *lines, len) != 0 ||
            strncmp(text + len, "\r\n", 2) != 0) {
            fail_msg("expected [%s] at [%.60s]", *lines, text);
        }
        text += len + 2;
    }
}

TEST(a_replica_shows_no_offset_and_no_priority_before_it_has_data)
{
    static const char *const empty[] = {
        "# Replication",
        "role:slave",
        "master_host:10.1.1.1",
        "master_port:6000",
        "master_link_status:down",
        "master_last_io_seconds_ago:-1",
        "master_sync_in_progress:0",
        "slave_read_repl_offset:0",
        "slave_repl_offset:0",
        "master_link_down_since_seconds:-1",
        "slave_priority:0",
        "slave_read_only:1",
        "replica_announced:1",
        "connected_slaves:0",
        "master_failover_state:no-failover",
        "master_replid:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "master_replid2:0000000000000000000000000000000000000000",
        NULL,
    };
    static const char *const synced[] = {
        "# Replication",
        "role:slave",
        "master_host:10.1.1.1",
        "master_port:6000",
        "master_link_status:up",
        "master_last_io_seconds_ago:0",
        "master_sync_in_progress:0",
        "slave_read_repl_offset:0",
        "slave_repl_offset:0",
        "slave_priority:77",
        "slave_read_only:1",
        "replica_announced:0",
        "connected_slaves:0",
        NULL,
    };
    struct scene *scene = scene_new();

    set_option(scene->rig, "replica-priority", "77");
    follow(scene, STATUS_CONNECT);
    assert_lines(info_of(scene), empty);
    set_option(scene->rig, "replica-announced", "no");
    scene->figures.synced_once = true;
    scene->figures.link = STATUS_CONNECTED;
    publish(scene, 0);
    assert_lines(info_of(scene), synced);
    scene_free(scene);
}

TEST(a_synchronization_shows_how_far_it_is)
{
    static const char *const lines[] = {
        "master_sync_in_progress:1",
        "slave_read_repl_offset:0",
        "slave_repl_offset:0",
        "master_sync_total_bytes:2000",
        "master_sync_read_bytes:500",
        "master_sync_left_bytes:1500",
        "master_sync_perc:25.00",
        "master_sync_last_io_seconds_ago:3",
        "master_link_down_since_seconds:60",
        "slave_priority:0",
        NULL,
    };
    struct scene *scene = scene_new();

    follow(scene, STATUS_SYNC);
    scene->figures.sync_total_bytes = 2000;
    scene->figures.sync_read_bytes = 500;
    scene->figures.sync_heard_mono_ms = clock_mono_ms() - 3100;
    scene->figures.down_mono_ms = clock_mono_ms() - 60100;
    publish(scene, 0);
    assert_lines(strstr(info_of(scene), "master_sync_in"), lines);
    scene_free(scene);
}

TEST(a_primary_lists_its_replicas_as_sentinels_read_them)
{
    static const char *const lines[] = {
        "# Replication",
        "role:master",
        "connected_slaves:3",
        "min_slaves_good_slaves:1",
        "slave0:ip=10.0.0.0,port=7000,state=online,offset=500,lag=20",
        "slave1:ip=10.0.0.1,port=7001,state=online,offset=1000,lag=0",
        "slave2:ip=10.0.0.2,port=7002,state=send_bulk,offset=0,lag=0",
        "master_failover_state:waiting-for-sync",
        NULL,
    };
    static const char *const backlog[] = {
        "repl_backlog_active:1",
        "repl_backlog_size:16777216",
        "repl_backlog_first_byte_offset:101",
        "repl_backlog_histlen:900",
        "sync_full_refusal:",
        "replica_lost:",
        "master_failover_error:it is ?late?",
        NULL,
    };
    struct scene *scene = scene_new();
    const char *text;

    set_option(scene->rig, "min-replicas-to-write", "1");
    scene->replicas[0].acked_mono_ms = clock_mono_ms() - 20100;
    scene->figures.failover = STATUS_FAILOVER_WAITS;
    scene->figures.backlog_active = true;
    scene->figures.backlog_first = 100;
    scene->figures.backlog_end = 1000;
    (void)snprintf(scene->figures.failover_error, STATUS_TEXT_MAX,
                   "it is \nlate\x7f");
    publish(scene, 3);
    text = info_of(scene);
    assert_lines(text, lines);
    assert_lines(strstr(text, "repl_backlog_active"), backlog);
    scene_free(scene);
}

TEST(why_a_link_was_refused_is_told_in_one_line)
{
    struct scene *scene = scene_new();

    follow(scene, STATUS_CONNECT);
    (void)snprintf(scene->figures.reason, STATUS_TEXT_MAX,
                   "-WRONGPASS\r\nslave_priority:1");
    publish(scene, 0);
    assert_non_null(
        strstr(info_of(scene),
               "\r\nmaster_link_refusal:-WRONGPASS??slave_priority:1\r\n"));
    scene->figures.link = STATUS_CONNECTED;
    publish(scene, 0);
    assert_null(strstr(info_of(scene), "master_link_refusal"));
    scene_free(scene);
}

/* ---- CLIENT LIST, CLIENT KILL -------------------------------------------- */

TEST(client_list_shows_links_and_finds_them_by_type_and_id)
{
    struct scene *scene = scene_new();
    const char *text;

    publish(scene, 2);
    text = said(scene, "CLIENT LIST");
    assert_non_null(strstr(text, "id=100 addr=10.0.0.0:5000 "
                                 "laddr=10.0.0.9:7379 fd=-1 name= age="));
    assert_non_null(strstr(text,
                           " flags=S capa= db=0 sub=0 psub=0 ssub=0 multi=-1 "
                           "qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 "
                           "rbs=0 rbp=0 obl=0 oll=1 omem=1000 "
                           "tot-mem=1000 events=rw cmd=replconf "
                           "user=repl1 redir=-1 resp=2"));
    assert_true(says(scene, "CLIENT LIST TYPE replica", "id=101 "));
    assert_true(says(scene, "CLIENT LIST TYPE slave", "id=101 "));
    assert_string_equal("$0\r\n\r\n", said(scene, "CLIENT LIST TYPE master"));
    assert_string_equal("$0\r\n\r\n", said(scene, "CLIENT LIST TYPE normal"));
    assert_true(says(scene, "CLIENT LIST ID 101", "id=101 "));
    assert_false(says(scene, "CLIENT LIST ID 101", "id=100 "));
    follow(scene, STATUS_CONNECTED);
    assert_true(says(scene, "CLIENT LIST TYPE master",
                     "id=55 addr=10.1.1.1:6000 laddr=10.0.0.9:4444 "));
    assert_true(says(scene, "CLIENT LIST ID 55", " flags=M "));
    assert_true(says(scene, "CLIENT LIST ID 55", " user=(superuser) "));
    scene_free(scene);
}

static void
assert_kills(struct scene *scene, const char *text, const char *reply,
             uint64_t first)
{
    scene->kills = 0;
    scene->killed[0] = 0;
    assert_string_equal(reply, said(scene, text));
    assert_int_equal(first, scene->killed[0]);
}

TEST(client_kill_takes_links_by_each_filter)
{
    struct scene *scene = scene_new();

    publish(scene, 2);
    assert_kills(scene, "CLIENT KILL TYPE replica", ":2\r\n", 100);
    assert_kills(scene, "CLIENT KILL TYPE slave ID 101", ":1\r\n", 101);
    assert_kills(scene, "CLIENT KILL ID 101", ":1\r\n", 101);
    assert_kills(scene, "CLIENT KILL ADDR 10.0.0.1:5000", ":1\r\n", 101);
    assert_kills(scene, "CLIENT KILL 10.0.0.1:5000", "+OK\r\n", 101);
    assert_kills(scene, "CLIENT KILL LADDR 10.0.0.9:7379", ":2\r\n", 100);
    assert_kills(scene, "CLIENT KILL TYPE replica USER default", ":2\r\n", 100);
    assert_kills(scene, "CLIENT KILL TYPE replica NOT-ID 100", ":1\r\n", 101);
    assert_kills(scene, "CLIENT KILL FLAGS S IP 10.0.0.1", ":1\r\n", 101);
    assert_kills(scene, "CLIENT KILL NOT-TYPE normal NOT-FLAGS M", ":2\r\n",
                 100);
    assert_kills(scene, "CLIENT KILL FLAGS S MAXAGE 1000000", ":0\r\n", 0);
    assert_kills(scene, "CLIENT KILL TYPE normal", ":0\r\n", 0);
    assert_kills(scene, "CLIENT KILL TYPE pubsub", ":0\r\n", 0);
    assert_kills(scene, "CLIENT KILL TYPE master", ":0\r\n", 0);
    assert_kills(scene, "CLIENT KILL TYPE replica ID 102", ":0\r\n", 0);
    assert_kills(scene, "CLIENT KILL 10.0.0.7:5000", "-ERR No such client\r\n",
                 0);
    follow(scene, STATUS_CONNECTED);
    assert_kills(scene, "CLIENT KILL TYPE master", ":1\r\n", 55);
    assert_kills(scene, "CLIENT KILL USER default", ":0\r\n", 0);
    assert_kills(scene, "CLIENT KILL SKIPME yes", ":1\r\n", 55);
    scene_free(scene);
}

TEST(client_kill_says_that_a_link_stays_since_loop_0_has_no_room)
{
    struct scene *scene = scene_new();

    publish(scene, 2);
    scene->is_full = true;
    assert_kills(scene, "CLIENT KILL TYPE replica",
                 "-ERR a thread has too many requests waiting, try again\r\n",
                 100);
    assert_kills(scene, "CLIENT KILL 10.0.0.1:5000",
                 "-ERR a thread has too many requests waiting, try again\r\n",
                 101);
    scene_free(scene);
}

/* ---- WAIT, WAITAOF ------------------------------------------------------- */

static uint32_t
run_again(struct rig *rig)
{
    rig->out.len = 0;
    return dispatch_batch(rig->worker, &rig->session, &rig->batch, 0,
                          UINT64_MAX, &rig->out);
}

static void
begin_waiting(struct rig *rig, const char *text)
{
    batch_begin(rig);
    batch_text(rig, text);
    assert_int_equal(0, run_again(rig));
    assert_int_equal(CONN_FOR_EVENT, rig->session.wait);
}

TEST(wait_counts_those_that_have_what_was_written)
{
    struct scene *scene = scene_new();
    struct rig *rig = scene->rig;

    publish(scene, 3);
    assert_string_equal(":2\r\n", said(scene, "WAIT 0 0"));
    atomic_store(&rig->session.written, 500);
    assert_string_equal(":2\r\n", said(scene, "WAIT 2 0"));
    atomic_store(&rig->session.written, 501);
    assert_string_equal(":1\r\n", said(scene, "WAIT 1 0"));
    atomic_store(&rig->session.written, 1001);
    assert_string_equal(":0\r\n", said(scene, "WAIT 0 0"));
    assert_int_equal(0, scene->acks_wanted);
    assert_string_equal("+OK\r\n+QUEUED\r\n*1\r\n:0\r\n",
                        said(scene, "MULTI; WAIT 2 0; EXEC"));
    atomic_store(&rig->session.written, 250);
    assert_string_equal("*2\r\n:0\r\n:2\r\n", said(scene, "WAITAOF 0 2 0"));
    atomic_store(&rig->session.written, 251);
    assert_string_equal("*2\r\n:0\r\n:1\r\n", said(scene, "WAITAOF 0 1 0"));
    scene_free(scene);
}

TEST(wait_asks_replicas_and_ends_when_they_have_it)
{
    struct scene *scene = scene_new();
    struct rig *rig = scene->rig;

    publish(scene, 3);
    atomic_store(&rig->session.written, 800);
    begin_waiting(rig, "WAIT 2 0");
    assert_int_equal(1, scene->acks_wanted);
    assert_int_equal(800, scene->position_wanted);
    assert_int_equal(0, run_again(rig));
    assert_int_equal(1, scene->acks_wanted); /* not each time it looks */
    scene->replicas[0].acked = 800;
    publish(scene, 3);
    assert_int_equal(1, run_again(rig));
    buf_append(&rig->out, "", 1);
    assert_string_equal(":2\r\n", rig->out.data);
    scene_free(scene);
}

TEST(wait_is_refused_on_a_replica_and_ends_when_the_role_changes)
{
    struct scene *scene = scene_new();
    struct rig *rig = scene->rig;

    atomic_store(&rig->session.written, 800);
    begin_waiting(rig, "WAIT 2 0");
    follow(scene, STATUS_CONNECT);
    assert_int_equal(1, run_again(rig));
    buf_append(&rig->out, "", 1);
    assert_string_equal("-UNBLOCKED force unblock from blocking operation, "
                        "instance state changed (master -> replica?)\r\n",
                        rig->out.data);
    assert_true(rig->session.closing);
    rig->session.closing = false;
    assert_true(says(scene, "WAIT x 0",
                     "-ERR WAIT cannot be used with replica instances. "));
    assert_true(says(scene, "WAITAOF 0 0 0",
                     "-ERR WAITAOF cannot be used with replica instances. "));
    assert_true(says(scene, "WAITAOF x 0 0", "-ERR value is not an integer"));
    scene_free(scene);
}

TEST(wait_counts_nothing_that_was_written_before_the_server_followed)
{
    struct scene *scene = scene_new();
    struct rig *rig = scene->rig;

    publish(scene, 3);
    atomic_store(&rig->session.written, UINT64_MAX);
    assert_true(says(scene, "WAIT 0 0",
                     "-ERR the last write of this connection may be lost"));
    assert_true(says(scene, "WAITAOF 0 0 0",
                     "-ERR the last write of this connection may be lost"));
    (void)said(scene, "BF.ADD k a");
    assert_string_equal(":2\r\n", said(scene, "WAIT 2 0"));
    scene_free(scene);
}

TEST(a_replica_is_measured_by_what_it_has_acknowledged)
{
    struct status_replica replica = { .state = STATUS_ONLINE,
                                      .ip = "10.0.0.7",
                                      .port = 6379,
                                      .acked = 100,
                                      .since_mono_ms = 1 };
    struct links_replica figures;

    links_measure(&replica, 130, &figures);
    assert_string_equal(figures.name, "10.0.0.7:6379");
    assert_true(figures.online);
    assert_int_equal(figures.lag_bytes, 30);
    assert_true(figures.silent_ms > 0); /* since it came */
    replica.acked_mono_ms = clock_mono_ms() + 1000000;
    replica.state = STATUS_PULLS;
    links_measure(&replica, 99, &figures);
    assert_false(figures.online);
    assert_int_equal(figures.lag_bytes, 0);
    assert_int_equal(figures.silent_ms, 0);
}
