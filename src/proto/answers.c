/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hiredis calls a function for each value, in the order of the reply. Texts are
 * gathered in one buffer, which moves while it grows, so values have offsets
 * until the reply is complete.
 */
#include "proto/answers.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdio.h>

#if HIREDIS_MAJOR >= 1
typedef size_t hiredis_count;
#else
typedef int hiredis_count;
#endif

enum { ANSWERS_MAGIC = 0x616e7377, KEEP_BYTES = 64 * 1024, REASON_MAX = 192 };

struct answers {
    uint32_t magic;
    redisReader *hiredis;
    size_t bytes_max;
    size_t fed;  /* bytes of the replies that are not taken yet */
    size_t peak; /* most bytes in hiredis's buffer so far */
    struct buf text;
    size_t count;
    bool bad;
    char reason[REASON_MAX];
    size_t offset[ANSWER_VALUES_MAX]; /* of the texts */
    struct answer_value values[ANSWER_VALUES_MAX];
};

/* ---- callbacks of hiredis --------------------------------------------------
 * Each returns `answers` as the object of the value, which hiredis only passes
 * on; or NULL, after which hiredis reports an error. */

static struct answers *
answers_of(const redisReadTask *task)
{
    struct answers *answers = task->privdata;

    CHECK(answers->magic == ANSWERS_MAGIC);
    return answers;
}

static void *
refuse_answer(struct answers *answers, const char *reason)
{
    if (!answers->bad) {
        answers->bad = true;
        (void)snprintf(answers->reason, sizeof(answers->reason), "%s", reason);
    }
    return NULL;
}

static struct answer_value *
add_value(struct answers *answers, enum answer_type type)
{
    struct answer_value *value;

    if (answers->count == ANSWER_VALUES_MAX) {
        return refuse_answer(answers, "a reply has too many values");
    }
    value = &answers->values[answers->count++];
    *value = (struct answer_value){ .type = type };
    return value;
}

static void *
/* NOLINTNEXTLINE(readability-non-const-parameter): hiredis's signature */
on_string(const redisReadTask *task, char *data, size_t len)
{
    struct answers *answers = answers_of(task);
    bool error = task->type == REDIS_REPLY_ERROR;
    struct answer_value *value =
        add_value(answers, error ? ANSWER_ERROR : ANSWER_TEXT);

    if (value == NULL) {
        return NULL;
    }
    answers->offset[answers->count - 1] = answers->text.len;
    value->text.len = len;
    buf_append(&answers->text, data, len);
    return answers->text.failed
               ? refuse_answer(answers, "no memory for a reply")
               : answers;
}

static void *
on_array(const redisReadTask *task, hiredis_count count)
{
    struct answers *answers = answers_of(task);
    struct answer_value *value = add_value(answers, ANSWER_LIST);

    if (value == NULL) {
        return NULL;
    }
    if ((uint64_t)count > ANSWER_VALUES_MAX) {
        return refuse_answer(answers, "a reply has too many values");
    }
    value->count = (size_t)count;
    return answers;
}

static void *
on_integer(const redisReadTask *task, long long number)
{
    struct answers *answers = answers_of(task);
    struct answer_value *value = add_value(answers, ANSWER_INTEGER);

    if (value == NULL) {
        return NULL;
    }
    value->integer = number;
    return answers;
}

static void *
on_nil(const redisReadTask *task)
{
    struct answers *answers = answers_of(task);

    return add_value(answers, ANSWER_NULL) != NULL ? answers : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *
/* NOLINTNEXTLINE(readability-non-const-parameter): hiredis's signature */
on_double(const redisReadTask *task, double value, char *data, size_t len)
{
    (void)value;
    return on_string(task, data, len);
}

static void *
on_bool(const redisReadTask *task, int value)
{
    return on_integer(task, value);
}
#endif

static void
on_free(void *object)
{
    (void)object;
}

static redisReplyObjectFunctions functions = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .freeObject = on_free,
};

/* ---- life --------------------------------------------------------------- */

struct answers *
answers_new(size_t bytes_max)
{
    struct answers *answers = mem_try_zalloc(sizeof(*answers));

    if (answers == NULL) {
        return NULL;
    }
    answers->magic = ANSWERS_MAGIC;
    answers->bytes_max = bytes_max;
    answers->hiredis = redisReaderCreateWithFunctions(&functions);
    if (answers->hiredis == NULL) {
        mem_free(answers);
        return NULL;
    }
    answers->hiredis->privdata = answers;
    answers->hiredis->maxbuf = KEEP_BYTES;
#if HIREDIS_MAJOR >= 1
    answers->hiredis->maxelements = ANSWER_VALUES_MAX;
#endif
    return answers;
}

void
answers_free(struct answers *answers)
{
    if (answers == NULL) {
        return;
    }
    metric_add(METRIC_MEM_USED, -(int64_t)answers->peak);
    redisReaderFree(answers->hiredis);
    buf_free(&answers->text);
    answers->magic = 0;
    mem_free(answers);
}

void
answers_feed(struct answers *answers, struct slice bytes)
{
    redisReader *hiredis = answers->hiredis;

    CHECK(answers->magic == ANSWERS_MAGIC);
    if (answers->bad || bytes.len == 0) {
        return;
    }
    answers->fed += bytes.len;
    if (redisReaderFeed(hiredis, bytes.data, bytes.len) != REDIS_OK) {
        (void)refuse_answer(answers, "no memory for a reply");
    } else if (hiredis->len > answers->peak) {
        metric_add(METRIC_MEM_USED, (int64_t)(hiredis->len - answers->peak));
        answers->peak = hiredis->len;
    }
}

/* Turns the offsets of the texts into slices. */
static void
resolve(struct answers *answers, struct answer *ret_answer)
{
    /* If all texts are empty, there is no buffer. */
    const char *texts = answers->text.data != NULL ? answers->text.data : "";

    for (size_t i = 0; i < answers->count; i++) {
        if (answers->values[i].type <= ANSWER_ERROR) {
            answers->values[i].text.data = texts + answers->offset[i];
        }
    }
    *ret_answer = (struct answer){ answers->values, answers->count };
}

/* If a reply has not arrived completely, its state is kept, and hiredis
 * continues later. */
enum answers_result
answers_next(struct answers *answers, struct answer *ret_answer)
{
    redisReader *hiredis = answers->hiredis;
    void *reply = NULL;

    CHECK(answers->magic == ANSWERS_MAGIC);
    if (answers->bad) {
        return ANSWERS_BAD;
    }
    if (hiredis->ridx == -1) { /* the caller is done with the reply before */
        answers->count = 0;
        buf_reset(&answers->text, KEEP_BYTES);
    }
    if (redisReaderGetReply(hiredis, &reply) != REDIS_OK) {
        (void)refuse_answer(answers, hiredis->errstr);
        return ANSWERS_BAD;
    }
    if (reply == NULL) {
        if (answers->fed > answers->bytes_max) {
            (void)refuse_answer(answers, "a reply is too long");
            return ANSWERS_BAD;
        }
        return ANSWERS_MORE;
    }
    answers->fed = hiredis->len - hiredis->pos;
    resolve(answers, ret_answer);
    return ANSWERS_ONE;
}

const char *
answers_reason(const struct answers *answers)
{
    return answers->reason;
}
