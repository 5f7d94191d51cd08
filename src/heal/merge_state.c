/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The metric of lost bytes begins with the losses of earlier runs of the
 * server. If the counters are reset, the next loss overwrites the earlier
 * losses in the file.
 */
#include "heal/merge_state.h"

#include "base/checksum.h"
#include "base/file.h"
#include "base/log.h"
#include "base/metrics.h"
#include "engine/service.h"
#include "keyspace/gate.h"
#include "persist/kept_file.h"
#include "persist/persist.h"
#include "persist/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 1024 };

/* ---- the text ------------------------------------------------------------ */

static size_t
format(uint64_t lost, const struct history *history, char ret_text[TEXT_BYTES])
{
    size_t len = (size_t)snprintf(
        ret_text, TEXT_BYTES,
        "bloomery-merge 1\nlost %" PRIu64 "\nhistory %s\n", lost, history->id);

    for (int i = 0; i < HISTORY_PAST_MAX && history->past[i].id[0] != '\0';
         i++) {
        len += (size_t)snprintf(ret_text + len, TEXT_BYTES - len,
                                "past %s %" PRIu64 "\n", history->past[i].id,
                                history->past[i].until);
    }
    CHECK(len + CHECKSUM_LINE_BYTES < TEXT_BYTES);
    return checksum_append(ret_text, len);
}

/* Takes the next word if it is the id of a history. */
static bool
take_id(struct slice *line, char ret_id[HISTORY_ID_CHARS + 1])
{
    struct slice id;

    if (!slice_next_word(line, &id) || !history_is_id(id)) {
        return false;
    }
    memcpy(ret_id, id.data, id.len);
    ret_id[id.len] = '\0';
    return true;
}

static bool
take_number(struct slice *line, uint64_t *ret_number)
{
    struct slice word;

    return slice_next_word(line, &word) && slice_to_u64(word, ret_number);
}

/* Parses the file. Its checksum is right, so its form is, too. */
static void
parse(struct slice text, uint64_t *ret_lost, struct history *ret_history)
{
    struct slice line;
    int count = 0;

    while (slice_next_line(&text, &line)) {
        struct slice what;

        if (!slice_next_word(&line, &what)) {
            continue;
        }
        if (slice_is_word(what, "lost")) {
            (void)take_number(&line, ret_lost);
        } else if (slice_is_word(what, "history")) {
            (void)take_id(&line, ret_history->id);
        } else if (slice_is_word(what, "past") && count < HISTORY_PAST_MAX &&
                   take_id(&line, ret_history->past[count].id) &&
                   take_number(&line, &ret_history->past[count].until)) {
            count++;
        }
    }
}

static uint64_t
read_state(const char *dir, struct history *ret_history)
{
    char bytes[TEXT_BYTES + 1];
    struct slice text = { bytes, 0 };
    uint64_t lost = 0;
    int fd = -1;

    if (file_open_dir(dir, false, &fd) == 0 &&
        file_read_name(fd, MERGE_STATE_NAME, bytes, TEXT_BYTES, &text.len) ==
            0 &&
        text.len <= TEXT_BYTES && checksum_take(&text) &&
        slice_take(&text, "bloomery-merge 1\n")) {
        parse(text, &lost, ret_history);
    }
    file_close(fd);
    return lost;
}

static void
write_state(struct merge_state *state)
{
    char text[TEXT_BYTES];
    size_t len =
        format((uint64_t)metric_sum(METRIC_MERGE_LOST), &state->history, text);

    (void)kept_file_write(state->file, (struct slice){ text, len });
}

/* ---- life ---------------------------------------------------------------- */

void
merge_state_open(struct merge_state *state, const struct service *service)
{
    const char *dir = persist_dir(service->persist);
    const struct kept_file_options options = {
        .dir = dir,
        .name = MERGE_STATE_NAME,
        .thread = "merge-state",
        .failed_event = "did not write what a merge needs",
        .mended_event = "wrote what a merge needs after all",
        .written = service->wake_loops,
        .ctx = service->ctx,
    };
    uint64_t lost = read_state(dir, &state->history);

    if (lost > 0) {
        metric_add(METRIC_MERGE_LOST, (int64_t)lost);
        log_warn("server.merge", "merges have lost changes before this start",
                 "bytes=%" PRIu64 " file=\"%s/" MERGE_STATE_NAME "\"", lost,
                 dir);
    }
    state->service = service;
    state->file = kept_file_new(&options);
}

void
merge_state_close(struct merge_state *state)
{
    kept_file_free(state->file);
    state->file = NULL;
}

void
merge_state_history(const struct merge_state *state,
                    struct history *ret_history)
{
    struct gate *gate = keyspace_gate(state->service->keyspace);

    gate_enter(gate, 0);
    *ret_history = *persist_history(state->service->persist);
    gate_leave(gate, 0);
    history_extend(ret_history, &state->history);
}

void
merge_state_look(struct merge_state *state)
{
    struct history history;

    merge_state_history(state, &history);
    if (!history_equals(&history, &state->history)) {
        state->history = history;
        write_state(state);
    }
}

void
merge_state_lose(struct merge_state *state, uint64_t bytes)
{
    metric_add(METRIC_MERGE_LOST, (int64_t)bytes);
    write_state(state);
}

void
merge_state_write_again(struct merge_state *state)
{
    (void)kept_file_write_again(state->file);
}
