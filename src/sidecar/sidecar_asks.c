/* SPDX-License-Identifier: BSD-3-Clause */
#include "sidecar/sidecar_asks.h"

#include "base/num.h"
#include "proto/reply.h"

#include <stdio.h>

static void
add_u64(struct reply *reply, uint64_t number)
{
    char text[NUM_U64_MAX];

    reply_bulk(reply, (struct slice){ text, num_format_u64(number, text) });
}

void
sidecar_asks_write(struct buf *out, const struct sidecar_ask *ask,
                   const char *own)
{
    static const char *const words[] = {
        [SIDECAR_ASK_FENCE] = "all",
        [SIDECAR_ASK_FENCE_EMPTY] = "empty",
        [SIDECAR_ASK_HAND_OFF] = "handoff",
        [SIDECAR_ASK_COME] = "come",
    };
    struct reply reply = { out, 2 };
    struct buf ranges = { 0 };

    if (ask->question == SIDECAR_ASK_HOLDINGS) {
        reply_array(&reply, ask->seen != 0 ? 3 : 2);
        reply_bulk_text(&reply, "SIDECAR");
        reply_bulk_text(&reply, "HOLDINGS");
        if (ask->seen != 0) {
            add_u64(&reply, ask->seen);
        }
        return;
    }
    slot_set_write(&ranges, ask->set);
    out->failed = out->failed || ranges.failed;
    reply_array(&reply, 8);
    reply_bulk_text(&reply, "SIDECAR");
    reply_bulk_text(&reply, "FENCE");
    reply_bulk_text(&reply, words[ask->question]);
    reply_bulk_text(&reply, own);
    add_u64(&reply, ask->epoch);
    reply_bulk_text(&reply, ask->chosen     ? "chosen"
                            : ask->surveyed ? "surveyed"
                                            : "owner");
    add_u64(&reply, ask->known);
    reply_bulk(&reply, buf_slice(&ranges));
    buf_free(&ranges);
}

void
sidecar_asks_count(struct buf *out, const struct slot_set *set)
{
    struct reply reply = { out, 2 };
    struct buf ranges = { 0 };

    slot_set_write(&ranges, set);
    out->failed = out->failed || ranges.failed;
    reply_array(&reply, 3);
    reply_bulk_text(&reply, "SIDECAR");
    reply_bulk_text(&reply, "COUNT");
    reply_bulk(&reply, buf_slice(&ranges));
    buf_free(&ranges);
}

/* ---- replies ------------------------------------------------------------- */

/* Reads a history and a position. */
static bool
read_place(const struct answer_value *values, struct sidecar_answer *answer)
{
    if (values[0].type != ANSWER_TEXT || values[1].type != ANSWER_INTEGER ||
        values[0].text.len != HISTORY_ID_CHARS || values[1].integer < 0) {
        return false;
    }
    memcpy(answer->history, values[0].text.data, HISTORY_ID_CHARS);
    answer->history[HISTORY_ID_CHARS] = '\0';
    answer->position = (uint64_t)values[1].integer;
    return true;
}

static bool
read_list(const struct answer *reply, struct holdings *holdings,
          struct slot_set *granted, struct sidecar_answer *answer)
{
    const struct answer_value *values = reply->values + 1;
    char why[HOLDINGS_REASON_MAX];

    if (reply->count == 2 && values[0].type == ANSWER_TEXT &&
        slice_is_word(values[0].text, "keys")) {
        answer->kind = SIDECAR_HAS_KEYS;
        return true;
    }
    if (reply->count == 4 && read_place(values, answer) &&
        values[2].type == ANSWER_TEXT &&
        (values[2].text.len == 0 ||
         holdings_parse(values[2].text, holdings, why))) {
        answer->kind = values[2].text.len == 0 ? SIDECAR_SAME : SIDECAR_HOLDS;
        answer->version = holdings_version(values[2].text);
        answer->holdings = holdings;
        return true;
    }
    if (reply->count == 5 && values[0].type == ANSWER_TEXT &&
        slice_is_word(values[0].text, "fenced") &&
        read_place(values + 1, answer) && values[3].type == ANSWER_TEXT &&
        slot_set_parse(values[3].text, granted)) {
        answer->kind = SIDECAR_FENCED;
        answer->granted = granted;
        return true;
    }
    return false;
}

struct sidecar_answer
sidecar_asks_read(const struct answer *reply, struct holdings *holdings,
                  struct slot_set *granted, char *reason, size_t size)
{
    struct sidecar_answer answer = { .kind = SIDECAR_SILENT, .reason = reason };
    const struct answer_value *value = &reply->values[0];

    (void)snprintf(reason, size, "its reply makes no sense");
    if (value->type == ANSWER_ERROR) {
        /* ERR: the daemon refuses the question. Other errors, such as LOADING,
         * say only that it cannot answer now. */
        answer.kind =
            value->text.len > 4 && memcmp(value->text.data, "ERR ", 4) == 0
                ? SIDECAR_REFUSED
                : SIDECAR_SILENT;
        (void)snprintf(reason, size, "%.*s", slice_shown(value->text),
                       value->text.data);
    } else if (value->type == ANSWER_LIST) {
        (void)read_list(reply, holdings, granted, &answer);
    }
    return answer;
}
