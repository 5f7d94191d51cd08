/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text: lines that end in LF, words separated by one blank. The file has
 * version 2. Replies have version 1, without the line `data`; the file of 1.0.0
 * had it, too.
 *
 *   bloomery-slots 2
 *   data <position> <40 hex digits>...  what is held is in data of one of these
 *                                       histories that reaches this position
 *   node <40 hex digits> | -
 *   follows <40 hex digits> | -
 *   history <40 hex digits> | -
 *   claimed <ranges, separated by blanks> | -
 *   held <first>[-<last>] <epoch>      for each range of one epoch, ascending
 *   known <first>[-<last>] <epoch>     as for held
 *   copied <first>[-<last>] <position> as for held; servers of 1.0.0 refuse a
 *                                      text with this line
 *   checksum <16 hex digits>           XXH3-64 of all lines before it
 */
#include "cluster/holdings.h"

#include "base/checksum.h"
#include "base/hex.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

#define FIRST_LINE         "bloomery-slots 1"
#define FIRST_LINE_OF_FILE "bloomery-slots 2"

void
holdings_set(struct holdings *holdings, const struct slot_set *set,
             uint64_t epoch_plus_1)
{
    slot_set_foreach (set, slot) {
        uint64_t *known = &holdings->known[slot];

        holdings->held[slot] = epoch_plus_1;
        holdings->copied[slot] = 0;
        *known = epoch_plus_1 > *known ? epoch_plus_1 : *known;
    }
}

bool
holdings_equal(const struct holdings *one, const struct holdings *other)
{
    return strcmp(one->node, other->node) == 0 &&
           strcmp(one->follows, other->follows) == 0 &&
           strcmp(one->history, other->history) == 0 &&
           memcmp(one->held, other->held, sizeof(one->held)) == 0 &&
           memcmp(one->copied, other->copied, sizeof(one->copied)) == 0 &&
           memcmp(one->known, other->known, sizeof(one->known)) == 0 &&
           memcmp(&one->claimed, &other->claimed, sizeof(one->claimed)) == 0;
}

void
holdings_clear(struct holdings *holdings)
{
    struct slot_set all;

    holdings_slots(holdings, &all);
    holdings_set(holdings, &all, 0);
    holdings->follows[0] = holdings->history[0] = '\0';
}

/* Returns whether all bytes are 0: compares them with their successors. */
static bool
is_zero(const void *data, size_t size)
{
    const char *bytes = data;

    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

enum { CHUNK = 128 }; /* slots that are compared at once */

/* Skips equal chunks, since nearly always nothing has changed. */
bool
holdings_learn(struct holdings *holdings, const struct holdings *other)
{
    uint64_t *known = holdings->known;
    bool changed = false;

    for (unsigned first = 0; first < CLUSTER_SLOTS; first += CHUNK) {
        size_t size = CHUNK * sizeof(*known);
        const uint64_t *held = &other->held[first];
        const uint64_t *theirs = &other->known[first];

        if (memcmp(&known[first], theirs, size) == 0 &&
            (memcmp(&known[first], held, size) == 0 || is_zero(held, size))) {
            continue;
        }
        for (unsigned i = 0; i < CHUNK; i++) {
            uint64_t most = held[i] > theirs[i] ? held[i] : theirs[i];

            if (most > known[first + i]) {
                known[first + i] = most;
                changed = true;
            }
        }
    }
    return changed;
}

bool
holdings_has_slots(const struct holdings *holdings)
{
    return !is_zero(holdings->held, sizeof(holdings->held));
}

void
holdings_slots(const struct holdings *holdings, struct slot_set *ret_set)
{
    memset(ret_set, 0, sizeof(*ret_set));
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        if (holdings->held[slot] != 0) {
            slot_set_add(ret_set, slot);
        }
    }
}

/* ---- writing ------------------------------------------------------------- */

static void
write_table(struct buf *out, const char *word,
            const uint64_t table[CLUSTER_SLOTS])
{
    unsigned slot = 0;

    while (slot < CLUSTER_SLOTS) {
        unsigned first = slot;
        uint64_t value = table[slot];

        while (slot < CLUSTER_SLOTS && table[slot] == value) {
            slot++;
        }
        if (value == 0) {
            continue;
        }
        buf_printf(out, "%s %u", word, first);
        if (slot - first > 1) {
            buf_printf(out, "-%u", slot - 1);
        }
        buf_printf(out, " %" PRIu64 "\n", value - 1);
    }
}

static const char *
id_or_dash(const char *id)
{
    return id[0] != '\0' ? id : "-";
}

/* Appends the lines after the first one and after `data`. The text begins at
 * offset `begin` of the buffer. */
static void
write_lines(const struct holdings *holdings, size_t begin, struct buf *out)
{
    char *end;

    buf_printf(out, "node %s\nfollows %s\nhistory %s\nclaimed ",
               id_or_dash(holdings->node), id_or_dash(holdings->follows),
               id_or_dash(holdings->history));
    slot_set_write(out, &holdings->claimed);
    buf_printf(out, "%s\n", slot_set_is_empty(&holdings->claimed) ? "-" : "");
    write_table(out, "held", holdings->held);
    write_table(out, "known", holdings->known);
    write_table(out, "copied", holdings->copied);
    end = buf_reserve(out, CHECKSUM_LINE_BYTES);
    if (end != NULL && !out->failed) {
        size_t len = out->len - begin;

        out->len = begin + checksum_append(out->data + begin, len);
    }
}

void
holdings_write(const struct holdings *holdings, struct buf *out)
{
    size_t begin = out->len;

    buf_append_slice(out, slice_lit(FIRST_LINE "\n"));
    write_lines(holdings, begin, out);
}

void
holdings_write_file(const struct holdings *holdings, struct buf *out)
{
    size_t begin = out->len;

    if (holdings->data[0][0] == '\0') {
        /* Without a history there is no line `data`. */
        holdings_write(holdings, out);
        return;
    }
    buf_printf(out, FIRST_LINE_OF_FILE "\ndata %" PRIu64, holdings->from);
    for (int i = 0; i < HOLDINGS_DATA_MAX && holdings->data[i][0] != '\0';
         i++) {
        buf_printf(out, " %s", holdings->data[i]);
    }
    buf_append_slice(out, slice_lit("\n"));
    write_lines(holdings, begin, out);
}

/* ---- reading ------------------------------------------------------------- */

/* Reads a line that consists of a name and an id. */
static bool
take_id(struct slice *text, const char *name, char ret_id[TOPOLOGY_ID_LEN + 1])
{
    struct slice id;

    if (!slice_take(text, name) || !slice_take(text, " ") ||
        !slice_take_until(text, '\n', &id)) {
        return false;
    }
    if (slice_equal(id, slice_lit("-"))) {
        ret_id[0] = '\0';
        return true;
    }
    if (!hex_is_digits(id, TOPOLOGY_ID_LEN)) {
        return false;
    }
    memcpy(ret_id, id.data, id.len);
    ret_id[id.len] = '\0';
    return true;
}

static bool
take_claimed(struct slice *text, struct slot_set *ret_set)
{
    struct slice ranges;

    return slice_take(text, "claimed ") &&
           slice_take_until(text, '\n', &ranges) && ranges.len > 0 &&
           (slice_equal(ranges, slice_lit("-")) ||
            slot_set_parse(ranges, ret_set));
}

/* Reads the line `data`. */
static bool
take_data(struct slice *text, struct holdings *holdings)
{
    struct slice line;
    struct slice word;
    int count = 0;

    if (!slice_take(text, "data ") || !slice_take_until(text, '\n', &line) ||
        !slice_next_word(&line, &word) ||
        !slice_to_u64(word, &holdings->from)) {
        return false;
    }
    while (slice_next_word(&line, &word)) {
        if (count == HOLDINGS_DATA_MAX ||
            !hex_is_digits(word, TOPOLOGY_ID_LEN)) {
            return false;
        }
        memcpy(holdings->data[count], word.data, word.len);
        count++;
    }
    return count > 0;
}

/* Reads a line `held`, `known` or `copied`. least: for each of them, the first
 * slot that its next range may begin with. */
static bool
take_range(struct slice *text, struct holdings *holdings, unsigned least[3])
{
    static const char *const names[] = { "held", "known", "copied" };
    uint64_t *const tables[] = { holdings->held, holdings->known,
                                 holdings->copied };
    struct slice word;
    struct slice range;
    struct slice number;
    uint64_t value;
    unsigned first;
    unsigned last;
    unsigned at = 0;

    if (!slice_take_until(text, ' ', &word) ||
        !slice_take_until(text, ' ', &range) ||
        !slice_take_until(text, '\n', &number) ||
        !slice_to_u64(number, &value) || value == UINT64_MAX ||
        !slot_set_parse_range(range, &first, &last)) {
        return false;
    }
    while (at < 3 && !slice_equal(word, slice_of(names[at]))) {
        at++;
    }
    if (at == 3 || first < least[at]) {
        return false;
    }
    least[at] = last + 1;
    for (unsigned slot = first; slot <= last; slot++) {
        tables[at][slot] = value + 1;
    }
    return true;
}

static bool
parse_lines(struct slice text, struct holdings *holdings)
{
    unsigned least[3] = { 0 };

    if (!take_id(&text, "node", holdings->node) ||
        !take_id(&text, "follows", holdings->follows) ||
        !take_id(&text, "history", holdings->history) ||
        !take_claimed(&text, &holdings->claimed)) {
        return false;
    }
    while (text.len > 0) {
        if (!take_range(&text, holdings, least)) {
            return false;
        }
    }
    return true;
}

bool
holdings_parse(struct slice text, struct holdings *ret_holdings,
               char ret_reason[HOLDINGS_REASON_MAX])
{
    struct slice version;
    bool of_file = false;
    struct holdings *holdings;
    const char *reason = "its last line is not the checksum of the others";
    bool good = false;

    while (text.len > 1 && text.data[text.len - 2] == '\n') {
        text.len--;
    }
    if (text.len <= HOLDINGS_TEXT_MAX && checksum_take(&text)) {
        reason = "its first line is not the one of this version";
        good = slice_take_until(&text, '\n', &version);
        of_file = good && slice_equal(version, slice_lit(FIRST_LINE_OF_FILE));
        good = of_file || (good && slice_equal(version, slice_lit(FIRST_LINE)));
    }
    if (good) {
        holdings = mem_zalloc(sizeof(*holdings));
        reason = "a line is malformed";
        good = (!of_file || take_data(&text, holdings)) &&
               parse_lines(text, holdings);
        if (good) {
            memcpy(ret_holdings, holdings, sizeof(*ret_holdings));
        }
        mem_free(holdings);
    }
    if (!good) {
        (void)snprintf(ret_reason, HOLDINGS_REASON_MAX, "%s", reason);
    }
    return good;
}

uint64_t
holdings_version(struct slice text)
{
    uint64_t version = 0;

    for (size_t i = text.len > 17 ? text.len - 17 : 0; i + 1 < text.len; i++) {
        char c = text.data[i];

        version = version << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return text.len > 0 && version == 0 ? 1 : version;
}
