/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A past history counts only up to the position at which its successor began.
 * If a later history continues from an earlier position, older ones end there
 * as well.
 */
#include "journal/history.h"

#include "base/hex.h"
#include "base/random.h"

static void
copy_id(char *to, const char *from)
{
    size_t len = strnlen(from, HISTORY_ID_CHARS);

    memmove(to, from, len);
    to[len] = '\0';
}

void
history_begin(struct history *history, const char *id)
{
    char fresh[HISTORY_ID_CHARS + 1];

    if (id == NULL) {
        random_hex(fresh, HISTORY_ID_CHARS);
    } else {
        copy_id(fresh, id);
    }
    *history = (struct history){ 0 };
    copy_id(history->id, fresh);
}

void
history_go_on(struct history *history, const char *id, uint64_t position)
{
    struct history_past *past = history->past;
    char next[HISTORY_ID_CHARS + 1];

    copy_id(next, id); /* id may point into history */
    if (strcmp(next, history->id) == 0) {
        return;
    }
    memmove(past + 1, past, (HISTORY_PAST_MAX - 1) * sizeof(*past));
    copy_id(past[0].id, history->id);
    past[0].until = position;
    for (int i = 1; i < HISTORY_PAST_MAX; i++) {
        if (past[i].until > position) {
            past[i].until = position;
        }
    }
    copy_id(history->id, next);
}

static bool
is(const char *id, struct slice text)
{
    return text.len == HISTORY_ID_CHARS &&
           memcmp(id, text.data, HISTORY_ID_CHARS) == 0;
}

bool
history_equals(const struct history *history, const struct history *other)
{
    const struct history_past *past = history->past;
    bool equal = strcmp(history->id, other->id) == 0;

    for (int i = 0; equal && i < HISTORY_PAST_MAX; i++) {
        equal = strcmp(past[i].id, other->past[i].id) == 0;
        if (!equal || past[i].id[0] == '\0') {
            break;
        }
        equal = past[i].until == other->past[i].until;
    }
    return equal;
}

bool
history_covers(const struct history *history, struct slice id,
               uint64_t position)
{
    const struct history_past *past = history->past;

    if (is(history->id, id)) {
        return true;
    }
    for (int i = 0; i < HISTORY_PAST_MAX && past[i].id[0] != '\0'; i++) {
        if (is(past[i].id, id) && position <= past[i].until) {
            return true;
        }
    }
    return false;
}

/* Finds where a history ends in a log that ends at `end`. */
static bool
find_end(const struct history *history, uint64_t end, const char *id,
         uint64_t *ret_end)
{
    const struct history_past *past = history->past;

    if (strcmp(history->id, id) == 0) {
        *ret_end = end;
        return true;
    }
    for (int i = 0; i < HISTORY_PAST_MAX && past[i].id[0] != '\0'; i++) {
        if (strcmp(past[i].id, id) == 0) {
            *ret_end = past[i].until;
            return true;
        }
    }
    return false;
}

/* Both logs share a history up to the lower of its two ends. Of the histories
 * that both have, the newest one ends last. */
bool
history_common(const struct history *ours, uint64_t our_end,
               const struct history *theirs, uint64_t their_end,
               uint64_t *ret_position)
{
    const char *id = ours->id;
    uint64_t until = our_end;
    int i = 0;

    for (;;) {
        uint64_t there;

        if (find_end(theirs, their_end, id, &there)) {
            *ret_position = until < there ? until : there;
            return true;
        }
        if (i == HISTORY_PAST_MAX || ours->past[i].id[0] == '\0') {
            return false;
        }
        id = ours->past[i].id;
        until = ours->past[i].until;
        i++;
    }
}

void
history_extend(struct history *history, const struct history *older)
{
    int count = 0;
    int at = strcmp(history->id, older->id) == 0 ? 0 : -1;

    while (count < HISTORY_PAST_MAX && history->past[count].id[0] != '\0') {
        if (strcmp(history->past[count].id, older->id) == 0) {
            at = count + 1; /* the number of histories newer than `older` */
        }
        count++;
    }
    if (at < 0 || older->id[0] == '\0') {
        return;
    }
    for (int i = count - at; i < HISTORY_PAST_MAX && count < HISTORY_PAST_MAX &&
                             older->past[i].id[0] != '\0';
         i++) {
        history->past[count++] = older->past[i];
    }
}

bool
history_is_id(struct slice text)
{
    return hex_is_digits(text, HISTORY_ID_CHARS);
}
