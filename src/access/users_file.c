/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading goes on behind an error, so that all errors can be shown, up to a
 * limit.
 */
#include "access/users_file.h"

#include "base/mem.h"
#include "conf/conf_file.h"

enum { WORDS_TYPICAL = 64, ERRORS_BYTES = 640 /* fit a reply */ };

struct reading {
    const char *path;
    struct users_draft *draft;
    struct slice *words;
    size_t words_room;
    unsigned line;
    struct buf *error; /* empty: none so far */
};

/* Appends the beginning of an error. False: enough are shown. */
static bool
begin_error(struct reading *reading, const char *between)
{
    if (reading->error->len > ERRORS_BYTES) {
        return false;
    }
    buf_append_slice(reading->error, slice_of(reading->path));
    buf_printf(reading->error, ":%u%s", reading->line, between);
    return true;
}

static void
fail_line(struct reading *reading, const char *between, const char *reason)
{
    if (begin_error(reading, between)) {
        buf_printf(reading->error, "%s. ", reason);
    }
}

/* Redis names an operation only if its command is unknown: others may contain
 * a password. */
static void
fail_rule(struct reading *reading, const struct user_refusal *refusal)
{
    struct slice words = buf_slice(&refusal->words);

    if (refusal->reason == NULL) {
        fail_line(reading, ": ",
                  "Unmatched parenthesis in selector definition");
    } else if (refusal->reason != SELECTOR_UNKNOWN_COMMAND) {
        fail_line(reading, ": ", refusal->reason);
    } else if (begin_error(reading, ": Error in applying operation '")) {
        buf_append(reading->error, words.data, (size_t)slice_shown(words));
        buf_printf(reading->error, "': %s. ", refusal->reason);
    }
}

static void
read_user(struct reading *reading, size_t count)
{
    struct slice name = reading->words[1];
    struct user_refusal refusal = { 0 };
    bool no_memory;
    struct user *user = users_draft_add(reading->draft, name, &no_memory);

    if (user == NULL && no_memory) {
        fail_line(reading, ": ", SELECTOR_NO_MEMORY);
    } else if (user == NULL) {
        if (begin_error(reading, ": WARNING: Duplicate user '")) {
            buf_append(reading->error, name.data, (size_t)slice_shown(name));
            buf_append_slice(reading->error, slice_lit("'. "));
        }
    } else if (!user_rules_apply(&user->rules, reading->words + 2, count - 2,
                                 &refusal)) {
        fail_rule(reading, &refusal);
        buf_wipe(&refusal.words);
    }
}

/* Makes room for one more word than COUNT. */
static bool
has_room(struct reading *reading, size_t count)
{
    size_t room = reading->words_room * 2 + WORDS_TYPICAL;
    struct slice *words;

    if (count < reading->words_room) {
        return true;
    }
    words = mem_try_realloc(reading->words, room * sizeof(*words));
    if (words != NULL) {
        reading->words = words;
        reading->words_room = room;
    }
    return words != NULL;
}

static void
read_line(struct reading *reading, struct slice line)
{
    size_t count = 0;
    struct slice word;

    while (slice_next_word(&line, &word)) {
        if (!has_room(reading, count)) {
            fail_line(reading, ": ", SELECTOR_NO_MEMORY);
            return;
        }
        reading->words[count++] = word;
    }
    if (count == 0 || reading->words[0].data[0] == '#') {
        return;
    }
    if (count < 2 || !slice_equal(reading->words[0], slice_lit("user"))) {
        fail_line(reading, " ",
                  "should start with user keyword followed by the username");
    } else if (!user_name_is_valid(reading->words[1])) {
        fail_line(reading, ": ", "the username contains invalid characters");
    } else {
        read_user(reading, count);
    }
}

bool
users_file_parse(const char *path, struct slice text,
                 struct users_draft *ret_draft, struct buf *ret_error)
{
    struct users_draft draft = { 0 };
    struct reading reading = { .path = path,
                               .draft = &draft,
                               .error = ret_error };
    struct slice line;

    while (slice_next_line(&text, &line)) {
        reading.line++;
        read_line(&reading, line);
    }
    mem_free(reading.words);
    if (ret_error->len > 0 || ret_error->failed) {
        buf_append_slice(ret_error,
                         slice_lit("WARNING: ACL errors detected, no change to "
                                   "the previously active ACL rules was "
                                   "performed"));
        users_draft_free(&draft);
        return false;
    }
    *ret_draft = draft;
    return true;
}

bool
users_file_read(const struct users *users, const char *path, struct slice text,
                struct users_draft *ret_draft, struct buf *ret_error)
{
    struct users_draft draft = { 0 };

    if (!users_file_parse(path, text, &draft, ret_error)) {
        return false;
    }
    if (!users_draft_complete(&draft, users)) {
        buf_append_slice(ret_error, slice_of(SELECTOR_NO_MEMORY));
        users_draft_free(&draft);
        return false;
    }
    *ret_draft = draft;
    return true;
}

/* ---- writing ------------------------------------------------------------- */

static bool
put_users(struct user *const *list, size_t count, struct buf *text)
{
    for (size_t i = 0; i < count; i++) {
        user_put(list[i], text);
        buf_append_slice(text, slice_lit("\n"));
    }
    return !text->failed;
}

/* Returns whether the text makes the same users again. If not, appends the
 * reason. */
static bool
reads_back(struct slice text, struct buf *ret_error)
{
    struct users_draft draft = { 0 };
    struct buf again = { 0 };
    bool same;

    if (text.len > CONF_FILE_MAX) {
        buf_printf(ret_error, "the users need %zu bytes, and ACL LOAD reads %d",
                   text.len, CONF_FILE_MAX);
        return false;
    }
    if (!users_file_parse("aclfile", text, &draft, ret_error)) {
        return false;
    }
    same = put_users(draft.list, draft.count, &again) && text.data != NULL &&
           again.data != NULL && slice_equal(buf_slice(&again), text);
    if (!same) {
        buf_append_slice(ret_error, slice_lit("the text of the users does not "
                                              "make them again"));
    }
    buf_wipe(&again);
    users_draft_free(&draft);
    return same;
}

bool
users_file_write(struct users_draft *draft, struct buf *text,
                 struct buf *ret_error)
{
    users_draft_sort(draft);
    if (!put_users(draft->list, draft->count, text)) {
        buf_append_slice(ret_error, slice_of(SELECTOR_NO_MEMORY));
        return false;
    }
    return reads_back(buf_slice(text), ret_error);
}
