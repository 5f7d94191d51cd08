/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/check_chain.h"

#include "engine/logged.h"
#include "snapshot/snapshot_stamp.h"

#include <stdio.h>

enum { SURVEY_BYTES = 4 << 20 };

struct scan {
    struct check *check;
    struct check_journal *journal;
    check_group_fn *visit;
    void *ctx;
    bool stopped; /* by visit */
};

static bool
on_group(void *ctx, uint32_t index, const struct group *group,
         uint64_t end_position)
{
    struct scan *scan = ctx;
    struct check_journal *journal = scan->journal;
    struct check_increment *increment = &journal->increments[index];

    if (increment->file->groups == 1) {
        increment->first_sequence = group->seal.sequence;
        increment->first_ms = group->seal.unix_ms;
    }
    increment->last_sequence = group->seal.sequence;
    increment->last_ms = group->seal.unix_ms;
    journal->sequence = group->seal.sequence;
    journal->position = end_position;
    journal->last_ms = group->seal.unix_ms;
    journal->groups++;
    tool_bar_add(&scan->check->tool, group->end - group->begin);
    scan->stopped = scan->visit != NULL &&
                    !scan->visit(scan->ctx, increment, group, end_position);
    return !scan->stopped;
}

static void
describe_line(const struct check_increment *increment, char *ret_why,
              size_t size)
{
    const char *why = increment->line_status == GROUP_NEWER
                          ? "it was written by a newer version"
                      : increment->line_status == GROUP_END
                          ? "it is empty"
                          : "its first line is damaged, and with it the key "
                            "of its seals is lost";

    (void)snprintf(ret_why, size, "%s", why);
}

static void
describe_break(const struct verify_result *result,
               const struct check_increment *increment, char *ret_why,
               size_t size)
{
    if (result->cause == VERIFY_SHORT) {
        (void)snprintf(
            ret_why, size,
            "the file ends here, and the manifest says that it has %llu bytes",
            (unsigned long long)increment->file->bytes);
    } else if (result->cause == VERIFY_GAP) {
        (void)snprintf(ret_why, size,
                       "group %llu stands where group %llu is due",
                       (unsigned long long)result->found,
                       (unsigned long long)result->expected);
    } else {
        (void)snprintf(ret_why, size, "no intact group begins here");
    }
}

static void
break_at(struct check_journal *journal, uint32_t index, uint64_t offset,
         enum check_state state)
{
    journal->broken = index;
    journal->broken_offset = offset;
    journal->state = state;
    journal->increments[index].state = state;
    verify_survey(journal->files, journal->count, index, offset,
                  &journal->after);
}

/* Returns how many increments have an intact first line, up to the first that
 * has none: the chain ends there. */
static uint32_t
count_readable(const struct check_journal *journal)
{
    uint32_t count = 0;

    while (count < journal->count &&
           journal->increments[count].line_status == GROUP_OK) {
        count++;
    }
    return count;
}

/* Finds the sequence before the first group of a single increment. Only this
 * group has the number. False: no intact group stands first. */
static bool
find_first(const struct check_journal *journal, uint64_t *ret_sequence)
{
    const struct verify_file *file = &journal->files[0];
    struct group group;

    if (group_read(file->data, file->first.key, GROUP_FIRST_LINE_BYTES,
                   &group) != GROUP_OK) {
        return false;
    }
    *ret_sequence = group.seal.sequence - 1;
    return true;
}

/* Walks the increments before the first unreadable one. */
static void
scan_readable(struct scan *scan, uint32_t readable)
{
    struct check_journal *journal = scan->journal;
    struct verify_walk walk = { .position = journal->manifest.position,
                                .sequence = journal->manifest.sequence,
                                .visit = on_group,
                                .ctx = scan };
    bool placed = !journal->single || readable == 0 ||
                  find_first(journal, &walk.sequence);
    struct verify_result result;
    enum verify_status status =
        verify_each(journal->files, readable, &walk, &result);
    bool refused = status == VERIFY_REFUSED || readable < journal->count;

    if (!placed) { /* no seal can say that the missing group was synced */
        refused = result.behind.groups > 0;
    }
    if (status != VERIFY_OK) {
        describe_break(&result, &journal->increments[result.file], journal->why,
                       sizeof(journal->why));
        break_at(journal, result.file, result.offset,
                 refused ? CHECK_STATE_DAMAGED : CHECK_STATE_TORN);
    } else if (readable < journal->count && !scan->stopped) {
        const struct check_increment *next = &journal->increments[readable];

        describe_line(next, journal->why, sizeof(journal->why));
        break_at(journal, readable, 0,
                 next->line_status == GROUP_NEWER ? CHECK_STATE_NEWER
                                                  : CHECK_STATE_DAMAGED);
    }
}

void
check_chain_scan(struct check *check, struct check_journal *journal,
                 check_group_fn *visit, void *ctx)
{
    struct scan scan = { check, journal, visit, ctx, false };
    uint64_t position = journal->manifest.position;

    journal->state = CHECK_STATE_INTACT;
    journal->position = position;
    journal->sequence = journal->manifest.sequence;
    journal->groups = 0;
    journal->last_ms = 0;
    for (uint32_t i = 0; i < journal->count; i++) {
        journal->increments[i].state = CHECK_STATE_INTACT;
        journal->files[i].groups = 0;
        journal->files[i].end = 0;
    }
    scan_readable(&scan, count_readable(journal));
    for (uint32_t i = 0; i < journal->count; i++) {
        uint64_t end = journal->files[i].end;

        journal->increments[i].position = position;
        position += end > 0 ? end - GROUP_FIRST_LINE_BYTES : 0;
    }
}

void
check_chain_refuse(struct check_journal *journal,
                   const struct check_increment *increment,
                   const struct group *group, const char *why)
{
    uint32_t index = (uint32_t)(increment - journal->increments);

    CHECK(index < journal->count && group->seal.sequence > 0);
    (void)snprintf(journal->why, sizeof(journal->why),
                   "group %llu cannot be executed: %s",
                   (unsigned long long)group->seal.sequence, why);
    break_at(journal, index, group->end, check_card_failure(why));
    journal->broken_offset = group->begin;
    journal->sequence = group->seal.sequence - 1;
    journal->position -= group->end - group->begin;
}

/* ---- groups past damage -------------------------------------------------- */

bool
check_chain_next_intact(const struct check_increment *increment, uint64_t *at,
                        struct group *ret_group)
{
    struct slice data = increment->map.bytes;
    struct group_survey survey = { 0 };
    uint64_t window = SURVEY_BYTES;

    if (increment->line_status != GROUP_OK) {
        return false;
    }
    if (*at < GROUP_FIRST_LINE_BYTES) {
        *at = GROUP_FIRST_LINE_BYTES;
    }
    if (*at >= data.len) {
        return false;
    }
    if (group_read(data, increment->file->first.key, *at, ret_group) ==
        GROUP_OK) {
        *at = ret_group->end;
        return true;
    }
    /* Usually a group begins within the next few MiB. To survey the whole rest
     * at each of many damaged places would take for ever. */
    while (survey.groups == 0 && window != UINT64_MAX) {
        uint64_t seen = data.len - *at < window ? data.len : *at + window;

        group_survey((struct slice){ data.data, (size_t)seen },
                     increment->file->first.key, *at, &survey);
        window = seen == data.len ? UINT64_MAX : window * 2;
    }
    if (survey.groups == 0 ||
        group_read(data, increment->file->first.key, survey.first_offset,
                   ret_group) != GROUP_OK) {
        return false;
    }
    *at = ret_group->end;
    return true;
}

/* Notes the last history that a group names. */
static void
note_history(struct logged_reader *reader, struct slice commands, char *history)
{
    enum { HISTORY_AT = 2 }; /* REPLCONF HISTORY id */
    struct logged logged;

    logged_begin(reader, commands);
    while (logged_next(reader, &logged)) {
        if (logged.kind == LOGGED_HISTORY && logged.argc > HISTORY_AT &&
            logged.argv[HISTORY_AT].len == SNAPSHOT_HISTORY_BYTES) {
            memcpy(history, logged.argv[HISTORY_AT].data,
                   SNAPSHOT_HISTORY_BYTES);
        }
    }
}

bool
check_chain_is_of(const struct check_journal *journal, const char *first,
                  uint64_t sequence, const char *history)
{
    struct logged_reader reader = { 0 };
    char last[SNAPSHOT_HISTORY_BYTES];

    memcpy(last, first, sizeof(last));
    for (size_t i = 0; i < journal->count; i++) {
        struct group group;
        uint64_t at = 0;

        while (check_chain_next_intact(&journal->increments[i], &at, &group) &&
               group.seal.sequence <= sequence) {
            note_history(&reader, group.commands, last);
        }
    }
    logged_fini(&reader);
    return memcmp(last, history, sizeof(last)) == 0;
}
