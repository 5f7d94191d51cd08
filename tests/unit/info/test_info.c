/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which sections INFO's arguments select, and the form of the text, over a
 * service that nothing has happened to yet.
 */
#include "info/info.h"

#include "../test.h"
#include "access/table.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "command/rows.h"
#include "keyspace/make.h"
#include "measure/sampler.h"

#include <stdio.h>

#define BIT(section) (1U << (section))

enum {
    DEFAULT = BIT(INFO_SERVER) | BIT(INFO_CLIENTS) | BIT(INFO_MEMORY) |
              BIT(INFO_PERSISTENCE) | BIT(INFO_STATS) | BIT(INFO_REPLICATION) |
              BIT(INFO_CPU) | BIT(INFO_MODULES) | BIT(INFO_ERRORSTATS) |
              BIT(INFO_CLUSTER) | BIT(INFO_KEYSPACE),
    BF = BIT(INFO_BF_CORE) | BIT(INFO_BF_DEFRAG),
    ALL = DEFAULT | BIT(INFO_TLS) | BIT(INFO_COMMANDSTATS) |
          BIT(INFO_LATENCYSTATS),
};

static uint32_t
select_two(const char *a, const char *b)
{
    struct slice names[] = { slice_of(a), slice_of(b) };

    return info_select(names, 2);
}

static uint32_t
select_one(const char *name)
{
    struct slice names[] = { slice_of(name) };

    return info_select(names, 1);
}

TEST(info_select_knows_groups_and_sections_in_any_case)
{
    assert_int_equal(info_select(NULL, 0), DEFAULT);
    assert_int_equal(select_one("default"), DEFAULT);
    assert_int_equal(select_one("ALL"), ALL);
    assert_int_equal(select_one("everything"), ALL | BF);
    assert_int_equal(select_one("bf"), BF);
    assert_int_equal(select_one("BF"), BF);
    assert_int_equal(select_one("modules"), BF | BIT(INFO_MODULES));
    assert_int_equal(select_one("bf_bloom_core_metrics"), BIT(INFO_BF_CORE));
    assert_int_equal(select_one("bf_bloom_defrag_metrics"),
                     BIT(INFO_BF_DEFRAG));
    assert_int_equal(select_one("commandStats"), BIT(INFO_COMMANDSTATS));
    assert_int_equal(select_two("server", "CPU"),
                     BIT(INFO_SERVER) | BIT(INFO_CPU));
    assert_int_equal(select_two("nope", "server"), BIT(INFO_SERVER));
    assert_int_equal(select_one("nope"), 0);
    assert_int_equal(select_one(""), 0);
}

struct fixture {
    struct service service;
    struct conf conf;
    struct buf text;
};

static struct fixture *
fixture_new(void)
{
    struct fixture *f = mem_zalloc(sizeof(*f));
    struct keyspace_options options = { .threads = 1, .databases = 16 };

    conf_init(&f->conf);
    f->service.conf = &f->conf;
    f->service.keyspace = keyspace_new(&options);
    f->service.stats = stats_new(1, CMD_ID_COUNT);
    f->service.sampler = sampler_new();
    f->service.threads = 1;
    f->service.started_mono_ns = clock_mono_ns();
    memset(f->service.run_id, 'a', 40);
    return f;
}

static void
fixture_free(struct fixture *f)
{
    buf_free(&f->text);
    sampler_free(f->service.sampler);
    stats_free(f->service.stats);
    keyspace_free(f->service.keyspace);
    conf_fini(&f->conf);
    mem_free(f);
}

static const char *
text_of(struct fixture *f, uint32_t sections)
{
    f->text.len = 0;
    info_write(&f->service, sections, &f->text);
    buf_append(&f->text, "", 1);
    assert_false(f->text.failed);
    return f->text.data;
}

TEST(loading_lasts_as_long_as_commands_are_refused)
{
    struct fixture *f = fixture_new();

    assert_non_null(
        strstr(text_of(f, select_one("persistence")), "\nloading:0\r\n"));
    atomic_store(&f->service.loading, true);
    assert_non_null(
        strstr(text_of(f, select_one("persistence")), "\nloading:1\r\n"));
    fixture_free(f);
}

TEST(info_text_has_each_metric_exactly_once)
{
    struct fixture *f = fixture_new();
    const char *text = text_of(f, select_one("everything"));

    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        char line[128];
        const char *at;

        (void)snprintf(line, sizeof(line), "\n%s:", metric_table[i].name);
        at = strstr(text, line);
        if (strncmp(metric_table[i].name, "cluster_", 8) == 0) {
            assert_null(at); /* in sidecar mode only */
            continue;
        }
        assert_non_null(at);
        assert_null(strstr(at + 1, line));
    }
    fixture_free(f);
}

TEST(info_text_has_every_field_once_and_ends_lines_with_crlf)
{
    struct fixture *f = fixture_new();
    const char *text = text_of(f, select_one("everything"));
    unsigned fields = 0;

    for (const char *line = text; *line != '\0';) {
        const char *end = strstr(line, "\r\n");
        const char *colon;
        char name[128] = "\n";

        assert_non_null(end);
        assert_null(memchr(line, '\n', (size_t)(end - line)));
        colon = memchr(line, ':', (size_t)(end - line));
        if (colon != NULL && line[0] != '#') {
            assert_true((size_t)(colon - line) < sizeof(name) - 3);
            memcpy(name + 1, line, (size_t)(colon - line) + 1);
            assert_null(strstr(end, name));
            fields++;
        }
        line = end + 2;
    }
    assert_true(fields > METRIC_COUNT);
    fixture_free(f);
}

TEST(info_text_separates_sections_by_a_blank_line)
{
    struct fixture *f = fixture_new();

    assert_string_equal(
        text_of(f,
                BIT(INFO_CLUSTER) | BIT(INFO_KEYSPACE) | BIT(INFO_BF_DEFRAG)),
        "# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\n\r\n"
        "# bf_bloom_defrag_metrics\r\nbf_bloom_defrag_hits:0\r\n"
        "bf_bloom_defrag_misses:0\r\n");
    assert_string_equal(text_of(f, 0), "");
    fixture_free(f);
}

TEST(info_commandstats_and_errorstats_show_what_was_counted)
{
    struct fixture *f = fixture_new();
    struct stats_slot *slot = stats_slot(f->service.stats, 0);

    command_table_init(command_rows);
    assert_string_equal(text_of(f, BIT(INFO_COMMANDSTATS)),
                        "# Commandstats\r\n");
    stats_bump(&slot->command[CMD_ID_BF_ADD].calls, 4);
    stats_bump(&slot->command[CMD_ID_BF_ADD].ns, 10000);
    stats_bump(&slot->command[CMD_ID_BF_ADD].failed, 1);
    stats_bump(&slot->command[CMD_ID_CLIENT_ID].rejected, 2);
    assert_string_equal(text_of(f, BIT(INFO_COMMANDSTATS)),
                        "# Commandstats\r\n"
                        "cmdstat_BF.ADD:calls=4,usec=10,usec_per_call=2.50,"
                        "rejected_calls=0,failed_calls=1\r\n"
                        "cmdstat_client|id:calls=0,usec=0,usec_per_call=0.00,"
                        "rejected_calls=2,failed_calls=0\r\n");
    stats_bump(&slot->error[ERR_SYNTAX], 1);
    stats_bump(&slot->error[ERR_ARITY], 2);
    stats_bump(&slot->error[ERR_NOAUTH], 5);
    assert_string_equal(text_of(f, BIT(INFO_ERRORSTATS)),
                        "# Errorstats\r\nerrorstat_ERR:count=3\r\n"
                        "errorstat_NOAUTH:count=5\r\n");
    fixture_free(f);
}
