/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any words as those of BF.RESERVE and BF.INSERT, in both dialects, of a client
 * and of a log: an error, or what a filter can be made of, with items that are
 * words of the request.
 *
 * Input: a byte that chooses, then words that blanks separate.
 */
#include "base/err.h"
#include "base/mem.h"
#include "bloom/grammar_redis.h"
#include "bloom/grammar_valkey.h"
#include "command/rows.h"
#include "engine/service.h"
#include "engine/session.h"
#include "target.h"

#include <string.h>

enum { WORDS_MAX = 48, RATE_AT = 2 };

struct scene {
    struct conf conf;
    struct service service;
    struct worker worker;
    struct session session;
};

static struct scene *
scene_of(void)
{
    static struct scene *scene;
    struct conf_error error;

    if (scene == NULL) {
        scene = mem_zalloc(sizeof(*scene));
        CHECK(conf_try_init(&scene->conf, &error));
        scene->service.conf = &scene->conf;
        scene->worker.service = &scene->service;
        scene->worker.session = &scene->session;
        command_table_init(command_rows);
    }
    return scene;
}

static enum err
parse(struct request *req, bool redis, bool inserts,
      struct bloom_insert *insert)
{
    if (inserts) {
        return redis ? grammar_redis_insert(req, insert)
                     : grammar_valkey_insert(req, insert);
    }
    return redis ? grammar_redis_reserve(req, RATE_AT, insert)
                 : grammar_valkey_reserve(req, RATE_AT, insert);
}

static void
check_insert(const struct request *req, const struct bloom_insert *insert)
{
    const struct bloom_params *params = &insert->params;

    CHECK(params->kind < BLOOM_KINDS);
    CHECK(params->error_rate > 0 && params->error_rate < 1);
    CHECK(params->capacity > 0);
    CHECK(insert->count == 0 ||
          (insert->items > req->argv &&
           insert->items + insert->count <= req->argv + req->argc));
    CHECK(insert->placed_count == 0 ||
          (insert->placed > req->argv &&
           insert->placed + insert->placed_count <= req->argv + req->argc));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scene *scene = scene_of();
    struct slice argv[WORDS_MAX + RATE_AT] = { slice_lit("x"),
                                               slice_lit("key") };
    struct request req = { .service = &scene->service,
                           .worker = &scene->worker,
                           .session = &scene->session,
                           .argv = argv,
                           .argc = RATE_AT,
                           .now_ms = 1790000000000 };
    struct slice text = { (const char *)data, size };
    struct bloom_insert insert = {
        .params = { .struct_size = sizeof(struct bloom_params),
                    .capacity = 100,
                    .error_rate = 0.01,
                    .tightening = 0.5,
                    .expansion = 2 },
    };
    bool redis, inserts;
    enum err err;

    if (size == 0) {
        return 0;
    }
    redis = (data[0] & 1) != 0;
    inserts = (data[0] & 2) != 0;
    req.obey = (data[0] & 4) != 0 && !redis;
    scene->conf.dialect = redis ? CONF_DIALECT_REDIS : CONF_DIALECT_VALKEY;
    req.command = command_at(inserts ? CMD_ID_BF_INSERT : CMD_ID_BF_RESERVE);
    text.data++;
    text.len--;
    while (req.argc < WORDS_MAX && slice_next_word(&text, &argv[req.argc])) {
        req.argc++;
    }
    if (!command_arity_fits(req.command, req.argc)) {
        return 0;
    }
    scene->worker.detail[0] = '\0';
    err = parse(&req, redis, inserts, &insert);
    CHECK(err != ERR_AGAIN);
    CHECK(err != ERR_CUSTOM || scene->worker.detail[0] != '\0');
    if (err == OK) {
        check_insert(&req, &insert);
    }
    return 0;
}

/* ---- inputs -------------------------------------------------------------- */

static const char *const words[] = {
    "0.01",
    "100",
    "CAPACITY",
    "ERROR",
    "EXPANSION",
    "2",
    "0",
    "-1",
    "NONSCALING",
    "NOCREATE",
    "ITEMS",
    "a",
    "b",
    "TIGHTENING",
    "0.5",
    "SEED",
    "VALIDATESCALETO",
    "1000000",
    "EX",
    "PXAT",
    "9999999999999",
    "DELETABLE",
    "AGEING",
    "60",
    "GENERATIONS",
    "3",
    "HASH",
    "keyed",
    "plain",
    "IFINCARNATION",
    "INCARNATION",
    "PLACED",
    "+",
    "AT",
    "LINES",
    "1e400",
    "nan",
    "1e-320",
    "E",
    "18446744073709551615",
    "9223372036854775807",
    "FINGERPRINT",
    "KIND",
    "RATE",
};

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    size_t len = 0;

    (void)max;
    to[len++] = (uint8_t)fuzz_next(&random);
    if (fuzz_next(&random) % 2 == 0) {
        memcpy(to + len, "0.01 100 ", 9);
        len += 9;
    }
    for (uint64_t n = fuzz_next(&random) % 12; n > 0; n--) {
        const char *word =
            words[fuzz_next(&random) % (sizeof(words) / sizeof(*words))];

        memcpy(to + len, word, strlen(word));
        len += strlen(word);
        to[len++] = ' ';
    }
    return len;
}
