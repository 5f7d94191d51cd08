/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any text as what the log of another server says of slots that this one takes
 * over: a line is a command, its words as those of an inline command, and a
 * line "-" ends a group. A group is executed or refused with a reason. Only
 * keys of the slots come of it. A text that begins with "#" is a group as it
 * is.
 */
#include "base/err.h"
#include "base/mem.h"
#include "command/rows.h"
#include "keyspace/key_hash.h"
#include "keyspace/make.h"
#include "keyspace/scan.h"
#include "measure/sampler.h"
#include "measure/stats.h"
#include "proto/compose.h"
#include "replay/inject.h"
#include "slots/pull_log.h"
#include "target.h"

#include <string.h>

enum {
    TEXT_MAX = 8192,
    DIGITS_MAX = 5, /* of a figure that may cost memory */
    DATABASES = 4,
    SLOTS = 16384,
    REASON_MAX = 256
};

/* A server without sockets, threads and files. */
struct target {
    struct conf conf;
    struct service service;
    struct worker worker;
    struct inject *inject;
    struct pull_log *log;
    struct slot_set slots; /* the even ones */
};

static void
begin(struct target *target)
{
    struct service *service = &target->service;

    memset(target, 0, sizeof(*target));
    key_hash_by_slot(true);
    command_table_init(command_rows);
    conf_init(&target->conf);
    service->conf = &target->conf;
    service->threads = 1;
    service->keyspace = keyspace_new(
        &(struct keyspace_options){ .threads = 1, .databases = DATABASES });
    service->stats = stats_new(1, CMD_ID_COUNT);
    service->sampler = sampler_new();
    service_follow_conf(service);
    target->worker.service = service;
    target->worker.stats = stats_slot(service->stats, 0);
    target->inject = inject_new(&target->worker);
    for (unsigned slot = 0; slot < SLOTS; slot += 2) {
        slot_set_add(&target->slots, slot);
    }
    target->log =
        pull_log_new(target->inject, service->keyspace, &target->slots);
}

static bool
is_of_the_slots(void *ctx, uint32_t db, const struct entry *entry,
                uint64_t expires_at)
{
    const struct target *target = ctx;

    (void)expires_at;
    CHECK(db < DATABASES);
    CHECK(slot_set_has(&target->slots, hash_slot_of(entry_name(entry))));
    return true;
}

static void
end(struct target *target)
{
    CHECK(keyspace_each(target->service.keyspace, is_of_the_slots, target));
    pull_log_free(target->log);
    inject_free(target->inject);
    keyspace_free(target->service.keyspace);
    sampler_free(target->service.sampler);
    stats_free(target->service.stats);
    conf_fini(&target->conf);
}

/* ---- from lines to groups ------------------------------------------------ */

/* Whether the command makes a filter that is too large for a test. */
static bool
is_costly(const struct slice *words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t number;

        if (words[i].len > DIGITS_MAX && slice_to_u64(words[i], &number) &&
            !slice_is_word(words[i - 1], "incarnation")) {
            return true;
        }
    }
    return false;
}

/* Returns false if the group is refused: the pull would begin anew. */
static bool
execute(struct target *target, struct slice commands, uint64_t sequence)
{
    char reason[REASON_MAX] = "";
    bool done = pull_log_group(target->log, commands, sequence * TEXT_MAX,
                               sequence, reason, sizeof(reason));

    CHECK(done || reason[0] != '\0');
    return done;
}

static void
play(struct target *target, struct slice text)
{
    static const struct slice select[] = { { "SELECT", 6 }, { "0", 1 } };
    struct buf group = { 0 };
    uint64_t sequence = 0;
    bool good = true;

    while (text.len > 0 && good) {
        group.len = 0;
        compose_command(&group, select, 2);
        (void)fuzz_next_group(&text, is_costly, &group);
        good = execute(target, buf_slice(&group), ++sequence);
    }
    buf_free(&group);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct target target;
    struct slice text = { (const char *)data, size };

    if (size > TEXT_MAX) {
        return 0;
    }
    begin(&target);
    if (size > 1 && text.data[0] == '#') {
        (void)execute(&target, (struct slice){ text.data + 1, size - 1 }, 1);
    } else {
        play(&target, text);
    }
    end(&target);
    return 0;
}

/* ---- inputs -------------------------------------------------------------- */

static const char *const lines[] = {
    "BF.INSERT k CAPACITY 9 ERROR 0.01 INCARNATION 4 ITEMS a",
    "BF.INSERT {k}2 CAPACITY 9 ERROR 0.01 DELETABLE INCARNATION 5 PLACED + a",
    "BF.INSERT {k}2 PLACED + b + c",
    "BF.MDEL {k}2 PLACED 0 b 0:3 c",
    "BF.INSERT o CAPACITY 9 ERROR 0.01 INCARNATION 6 ITEMS a",
    "BF.MADD k b c",
    "BF.MADD o b c",
    "SELECT 3",
    "SELECT 9",
    "DEL k",
    "DEL k o",
    "RENAME k {k}3",
    "RENAME k o",
    "COPY k {k}4 REPLACE INCARNATION 9",
    "COPY o k REPLACE INCARNATION 10",
    "MOVE k 1",
    "SWAPDB 0 1",
    "SWAPDB 1 1",
    "FLUSHALL",
    "FLUSHDB",
    "PEXPIREAT k 99",
    "PERSIST k",
    "MULTI",
    "EXEC",
    "BF.MERGE {k}5 2 k {k}3 INCARNATION 4",
    "BF.RESET k INCARNATION 1",
    "RESTORE k 0 x REPLACE ABSTTL INCARNATION 2",
    "BF.LOADCHUNK k 1 x INCARNATION 3",
    "SELECT",
    "PING",
    "-",
    "-",
};

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    size_t len = 0;

    (void)max;
    for (uint64_t n = 1 + fuzz_next(&random) % 16; n > 0; n--) {
        const char *line =
            lines[fuzz_next(&random) % (sizeof(lines) / sizeof(*lines))];

        memcpy(to + len, line, strlen(line));
        len += strlen(line);
        to[len++] = '\n';
    }
    if (fuzz_next(&random) % 6 == 0) {
        to[fuzz_next(&random) % len] ^= (uint8_t)(1U << fuzz_next(&random) % 8);
    }
    return len;
}
