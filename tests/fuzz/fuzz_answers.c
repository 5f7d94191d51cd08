/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the replies of a peer: whole and byte by byte they give the same
 * values and the same end. A list never has more values than were read. Each
 * reply is then read as that of another daemon of a cluster, whose holdings are
 * written and read again as the same ones.
 */
#include "base/err.h"
#include "base/mem.h"
#include "proto/answers.h"
#include "sidecar/sidecar_asks.h"
#include "target.h"

#include <string.h>

enum { BYTES_MAX = 64 * 1024, REASON_MAX = 256 };

struct outcome {
    struct buf log;
    bool bad;
};

static void
ask(const struct answer *answer)
{
    static struct holdings holdings, again;
    struct slot_set granted = { { 0 } };
    char reason[REASON_MAX] = "";
    char why[HOLDINGS_REASON_MAX];
    struct sidecar_answer read =
        sidecar_asks_read(answer, &holdings, &granted, reason, sizeof(reason));
    struct buf text = { 0 };

    CHECK(memchr(reason, '\0', sizeof(reason)) != NULL);
    if (read.holdings != NULL) {
        holdings_write(read.holdings, &text);
        CHECK(holdings_parse(buf_slice(&text), &again, why));
        buf_free(&text);
    }
}

static void
note(struct outcome *outcome, const struct answer *answer)
{
    CHECK(answer->count > 0 && answer->count <= ANSWER_VALUES_MAX);
    for (size_t i = 0; i < answer->count; i++) {
        const struct answer_value *value = &answer->values[i];

        CHECK(value->type != ANSWER_LIST ||
              value->count <= answer->count - i - 1);
        buf_printf(&outcome->log, "%d %lld %zu ", (int)value->type,
                   value->type == ANSWER_INTEGER ? (long long)value->integer
                                                 : 0,
                   value->type == ANSWER_LIST ? value->count : 0);
        if (value->type == ANSWER_TEXT || value->type == ANSWER_ERROR) {
            buf_append_item(&outcome->log, value->text);
        }
    }
    ask(answer);
}

static struct outcome
play(struct slice bytes, size_t step)
{
    struct answers *answers = answers_new(BYTES_MAX);
    struct outcome outcome = { { 0 }, false };

    CHECK(answers != NULL);
    while (bytes.len > 0 && !outcome.bad) {
        size_t len = bytes.len < step ? bytes.len : step;
        enum answers_result result;
        struct answer answer;

        answers_feed(answers, (struct slice){ bytes.data, len });
        bytes.data += len;
        bytes.len -= len;
        while ((result = answers_next(answers, &answer)) == ANSWERS_ONE) {
            note(&outcome, &answer);
        }
        outcome.bad = result == ANSWERS_BAD;
    }
    CHECK(!outcome.bad || answers_reason(answers)[0] != '\0');
    answers_free(answers);
    return outcome;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = { (const char *)data, size };
    struct outcome whole, one;

    if (size > BYTES_MAX) {
        return 0;
    }
    whole = play(bytes, SIZE_MAX);
    one = play(bytes, 1);
    CHECK(whole.bad == one.bad);
    CHECK(slice_equal(buf_slice(&whole.log), buf_slice(&one.log)));
    buf_free(&whole.log);
    buf_free(&one.log);
    return 0;
}

/* ---- inputs -------------------------------------------------------------- */

static const char *const pieces[] = {
    "+OK\r\n",
    "-ERR x\r\n",
    ":1\r\n",
    ":-9223372036854775808\r\n",
    "$3\r\nabc\r\n",
    "$-1\r\n",
    "*0\r\n",
    "*1\r\n",
    "*2\r\n",
    "*-1\r\n",
    "$0\r\n\r\n",
    "*1000\r\n",
    "\r\n",
    "$",
    "*",
    "1",
    "+silent\r\n",
    ":16383\r\n",
    "$10\r\n0-5 7 9-99\r\n",
    "%1\r\n",
};

size_t
fuzz_generate(uint64_t seed, uint8_t *to, size_t max)
{
    uint64_t random = seed;
    size_t len = 0;

    (void)max;
    for (uint64_t n = 1 + fuzz_next(&random) % 20; n > 0; n--) {
        const char *piece =
            pieces[fuzz_next(&random) % (sizeof(pieces) / sizeof(*pieces))];

        memcpy(to + len, piece, strlen(piece));
        len += strlen(piece);
    }
    if (fuzz_next(&random) % 3 == 0) {
        to[fuzz_next(&random) % len] ^= (uint8_t)(1U << fuzz_next(&random) % 8);
    }
    return len;
}
