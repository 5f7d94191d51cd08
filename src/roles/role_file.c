/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file, version 2: lines that end in LF, words separated by one blank.
 *
 *   bloomery-role 2
 *   role primary | role replica <host> <port>
 *   key <16 hex digits>      of the seals, kept with the data; all zeros: none
 *   replicas yes | no        whether it had replicas
 *   history <id> | -         of the data
 *   before <id> ... | -      histories that replicas may still be in
 *   followers <16 hex digits> ... | - | many
 *   checksum <16 hex digits> XXH3-64 of all lines before it
 *
 * Version 1 lacks the lines before and followers, and is still written if these
 * are empty. A later version must keep the form of the first and the last line,
 * so that this version can distinguish it from a damaged file.
 */
#include "roles/role_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/checksum.h"
#include "base/file.h"
#include "base/hex.h"

enum {
    FILE_BYTES_MAX = 1024, /* ours have about 450 and the host */
    VERSION = 2,
};

static const char first_word[] = "bloomery-role ";

/* ---- the text ------------------------------------------------------------ */

static size_t
add_words(char *to, size_t room, const struct role_state *state)
{
    size_t len = (size_t)snprintf(to, room, "before");

    for (size_t i = 0; i < ROLE_BEFORE_MAX && state->before[i][0] != '\0';
         i++) {
        len += (size_t)snprintf(to + len, room - len, " %s", state->before[i]);
    }
    len += (size_t)snprintf(to + len, room - len, "%s\nfollowers",
                            state->before[0][0] == '\0' ? " -" : "");
    for (size_t i = 0; i < ROLE_FOLLOWERS_MAX && state->followers[i] != 0 &&
                       !state->more_followers;
         i++) {
        len += (size_t)snprintf(to + len, room - len, " %016" PRIx64,
                                state->followers[i]);
    }
    if (state->more_followers) {
        len += (size_t)snprintf(to + len, room - len, " many");
    } else if (state->followers[0] == 0) {
        len += (size_t)snprintf(to + len, room - len, " -");
    }
    return len + (size_t)snprintf(to + len, room - len, "\n");
}

static size_t
format(const struct role_state *state, char ret_text[FILE_BYTES_MAX])
{
    char role[ROLE_HOST_MAX + 32] = "primary";
    bool says_more = state->before[0][0] != '\0' || state->followers[0] != 0 ||
                     state->more_followers;
    size_t len;

    if (state->replica) {
        (void)snprintf(role, sizeof(role), "replica %s %" PRIu32, state->host,
                       state->port);
    }
    len = (size_t)snprintf(ret_text, FILE_BYTES_MAX,
                           "%s%d\nrole %s\nkey %016" PRIx64
                           "\nreplicas %s\nhistory %s\n",
                           first_word, says_more ? VERSION : 1, role,
                           state->key, state->replicas ? "yes" : "no",
                           state->history[0] != '\0' ? state->history : "-");
    if (says_more) {
        len += add_words(ret_text + len, FILE_BYTES_MAX - len, state);
    }
    CHECK(len + CHECKSUM_LINE_BYTES < FILE_BYTES_MAX);
    return checksum_append(ret_text, len);
}

static bool
take_role(struct slice *text, struct role_state *state)
{
    struct slice host;
    struct slice port_text;
    uint64_t port = 0;

    if (slice_take(text, "role primary\n")) {
        return true;
    }
    if (!slice_take(text, "role replica ") ||
        !slice_take_until(text, ' ', &host) ||
        !slice_take_until(text, '\n', &port_text) ||
        !role_host_is_valid(host) || !slice_to_u64(port_text, &port) ||
        port == 0 || port > UINT16_MAX) {
        return false;
    }
    memcpy(state->host, host.data, host.len);
    state->port = (uint32_t)port;
    state->replica = true;
    return true;
}

static bool
take_key(struct slice *text, struct role_state *state)
{
    struct slice digits;

    return slice_take(text, "key ") && slice_take_until(text, '\n', &digits) &&
           hex_parse_u64(digits, &state->key);
}

static bool
take_replicas(struct slice *text, struct role_state *state)
{
    state->replicas = slice_take(text, "replicas yes\n");
    return state->replicas || slice_take(text, "replicas no\n");
}

static bool
take_history(struct slice *text, struct role_state *state)
{
    struct slice id;

    if (!slice_take(text, "history ") || !slice_take_until(text, '\n', &id)) {
        return false;
    }
    if (slice_equal(id, slice_lit("-"))) {
        return true;
    }
    if (!history_is_id(id)) {
        return false;
    }
    memcpy(state->history, id.data, id.len);
    return true;
}

/* Takes a line that begins with `begin` off the text. *ret_line gets the words
 * behind `begin`. False: the next line is another one, or has none. */
static bool
take_words(struct slice *text, const char *begin, struct slice *ret_line)
{
    return slice_take(text, begin) && slice_take_until(text, '\n', ret_line) &&
           ret_line->len > 0 && ret_line->data[ret_line->len - 1] != ' ';
}

/* Cuts the next word off such a line. False: there is none, or the word is
 * empty. */
static bool
next_word(struct slice *line, struct slice *ret_word)
{
    if (!slice_take_until(line, ' ', ret_word)) {
        *ret_word = *line;
        line->data += line->len;
        line->len = 0;
    }
    return ret_word->len > 0;
}

static bool
take_before(struct slice *text, struct role_state *state)
{
    struct slice line;
    struct slice id;

    if (!take_words(text, "before ", &line)) {
        return false;
    }
    if (slice_equal(line, slice_lit("-"))) {
        return true;
    }
    for (size_t i = 0; next_word(&line, &id); i++) {
        if (i == ROLE_BEFORE_MAX || !history_is_id(id)) {
            return false;
        }
        memcpy(state->before[i], id.data, id.len);
    }
    return line.len == 0;
}

static bool
take_followers(struct slice *text, struct role_state *state)
{
    struct slice line;
    struct slice digits;

    if (!take_words(text, "followers ", &line)) {
        return false;
    }
    state->more_followers = slice_equal(line, slice_lit("many"));
    if (state->more_followers || slice_equal(line, slice_lit("-"))) {
        return true;
    }
    for (size_t i = 0; next_word(&line, &digits); i++) {
        if (i == ROLE_FOLLOWERS_MAX ||
            !hex_parse_u64(digits, &state->followers[i]) ||
            state->followers[i] == 0) {
            return false;
        }
    }
    return line.len == 0;
}

enum verdict { GOOD, DAMAGED, NEWER };

/* Reads the text. A text that format() would not have written counts as
 * damaged. */
static enum verdict
parse(struct slice text, struct role_state *ret_state, const char **ret_reason)
{
    static const struct {
        unsigned version; /* first version with this line */
        bool (*take)(struct slice *text, struct role_state *state);
        const char *reason;
    } lines[] = {
        { 1, take_role, "the line of the role is wrong" },
        { 1, take_key, "the line of the key is wrong" },
        { 1, take_replicas, "the line of the replicas is wrong" },
        { 1, take_history, "the line of the history is wrong" },
        { 2, take_before,
          "the line of earlier histories or of followers is wrong" },
        { 2, take_followers,
          "the line of earlier histories or of followers is wrong" },
    };
    struct role_state state = { .known = true };
    struct slice rest = text;
    struct slice version;
    uint64_t number = 0;

    *ret_reason = "its last line is not the checksum of the others";
    if (!checksum_take(&rest)) {
        return DAMAGED;
    }
    *ret_reason = "its first line is wrong";
    if (!slice_take(&rest, first_word) ||
        !slice_take_until(&rest, '\n', &version) ||
        !slice_to_u64(version, &number) || number == 0) {
        return DAMAGED;
    }
    *ret_reason = "it was written by a newer version of this program";
    if (number > VERSION) {
        return NEWER;
    }
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        *ret_reason = lines[i].reason;
        if (number >= lines[i].version && !lines[i].take(&rest, &state)) {
            return DAMAGED;
        }
    }
    if (rest.len > 0) {
        return DAMAGED;
    }
    *ret_reason = "";
    *ret_state = state;
    return GOOD;
}

bool
role_state_same(const struct role_state *one, const struct role_state *other)
{
    char text[FILE_BYTES_MAX];
    char other_text[FILE_BYTES_MAX];
    size_t len = format(one, text);

    return len == format(other, other_text) &&
           memcmp(text, other_text, len) == 0;
}

/* ---- reading ------------------------------------------------------------- */

static bool
set_aside(int dir_fd, const char *why, char *ret_reason, unsigned reason_size)
{
    int error = file_rename(dir_fd, ROLE_FILE_NAME, ROLE_FILE_DAMAGED);

    if (error == 0) {
        error = file_sync_dir(dir_fd);
    }
    if (error == 0) {
        (void)snprintf(ret_reason, reason_size,
                       "%s was damaged (%s), it is %s now", ROLE_FILE_NAME, why,
                       ROLE_FILE_DAMAGED);
    } else {
        (void)snprintf(ret_reason, reason_size,
                       "it is damaged (%s) and cannot be renamed: %s", why,
                       strerror(error));
    }
    return error == 0;
}

bool
role_file_read(int dir_fd, struct role_state *ret_state, char *ret_reason,
               unsigned reason_size)
{
    char text[FILE_BYTES_MAX + 1];
    const char *why = "it is too long";
    enum verdict verdict = DAMAGED;
    size_t len = 0;
    int error =
        file_read_name(dir_fd, ROLE_FILE_NAME, text, FILE_BYTES_MAX, &len);

    *ret_state = (struct role_state){ 0 };
    ret_reason[0] = '\0';
    if (error == ENOENT) {
        return true;
    }
    if (error != 0) {
        (void)snprintf(ret_reason, reason_size, "%s", strerror(error));
        return false;
    }
    if (len <= FILE_BYTES_MAX) {
        verdict = parse((struct slice){ text, len }, ret_state, &why);
    }
    if (verdict == DAMAGED) {
        return set_aside(dir_fd, why, ret_reason, reason_size);
    }
    (void)snprintf(ret_reason, reason_size, "%s", why);
    return verdict == GOOD;
}

/* ---- writing ------------------------------------------------------------- */

struct kept_file *
role_file_new(const char *dir, void (*written)(void *ctx), void *ctx)
{
    const struct kept_file_options options = {
        .dir = dir,
        .name = ROLE_FILE_NAME,
        .thread = "role",
        .failed_event = "did not write the role, a restart would forget it; "
                        "a new primary holds replies to writes until it is "
                        "written, or refuses writes (misconf-after)",
        .mended_event = "wrote the role after all",
        .written = written,
        .ctx = ctx
    };

    return kept_file_new(&options);
}

uint64_t
role_file_write(struct kept_file *file, const struct role_state *state)
{
    char text[FILE_BYTES_MAX];
    struct slice bytes = { text, format(state, text) };
    struct role_state again;
    const char *why;

    /* The next start must be able to read it. */
    CHECK(parse(bytes, &again, &why) == GOOD);
    return kept_file_write(file, bytes);
}
