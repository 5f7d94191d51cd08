/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clocks may be set back, so the whole chain is read: the cut is behind the
 * last group that is not later than the time, even if a group before it is
 * later. Damage does not matter if the cut is known to be before it.
 */
#include "check/check_cut.h"

#include "base/mem.h"
#include "check/check_beside.h"
#include "check/check_chain.h"
#include "check/check_make.h"
#include "check/check_snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

struct cut {
    struct check *check;
    struct check_made made;
    struct check_target target;
    struct check_journal *journal;
    /* The last group that stays in the journal. */
    size_t index; /* index of its increment; count: there is no such group */
    uint64_t offset, position, sequence, ms, groups;
    bool passed; /* a group that does not stay was seen */
};

/* ---- the target ---------------------------------------------------------- */

/* Returns whether text begins like the mask: 0 stands for any digit, T for T, t
 * or a space. */
static bool
begins_like(const char *text, const char *mask)
{
    for (; *mask != '\0'; text++, mask++) {
        bool fits = *mask == '0' ? *text >= '0' && *text <= '9'
                    : *mask == 'T'
                        ? *text == 'T' || *text == 't' || *text == ' '
                        : *text == *mask;

        if (!fits) {
            return false;
        }
    }
    return true;
}

/* Returns the value of so many digits. */
static unsigned
number_of(const char *digits, int count)
{
    unsigned value = 0;

    for (int i = 0; i < count; i++) {
        value = value * 10 + (unsigned)(digits[i] - '0');
    }
    return value;
}

/* Parses an optional fraction as milliseconds. Ignores further digits. */
static bool
parse_fraction(const char **at, unsigned *ret_ms)
{
    unsigned ms = 0;
    unsigned weight = 100;

    if (**at != '.') {
        return true;
    }
    (*at)++;
    if (**at < '0' || **at > '9') {
        return false;
    }
    for (; **at >= '0' && **at <= '9'; (*at)++, weight /= 10) {
        ms += (unsigned)(**at - '0') * weight;
    }
    *ret_ms = ms;
    return true;
}

static bool
parse_date(const char *text, uint64_t *ret_ms)
{
    static const char mask[] = "0000-00-00T00:00:00";
    const char *end = text + strlen(mask);
    unsigned year, month, day, hour, minute, second;
    unsigned ms = 0;
    struct tm utc = { 0 };
    time_t seconds;

    if (!begins_like(text, mask) || !parse_fraction(&end, &ms)) {
        return false;
    }
    year = number_of(text, 4);
    month = number_of(text + 5, 2);
    day = number_of(text + 8, 2);
    hour = number_of(text + 11, 2);
    minute = number_of(text + 14, 2);
    second = number_of(text + 17, 2);
    if ((strcmp(end, "Z") != 0 && strcmp(end, "z") != 0 &&
         strcmp(end, "+00:00") != 0) ||
        year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 ||
        hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    utc.tm_year = (int)year - 1900;
    utc.tm_mon = (int)month - 1;
    utc.tm_mday = (int)day;
    utc.tm_hour = (int)hour;
    utc.tm_min = (int)minute;
    seconds = timegm(&utc) + (time_t)second; /* a leap second ends a day */
    if (utc.tm_mday != (int)day) {
        return false; /* the 31st of a shorter month */
    }
    *ret_ms = (uint64_t)seconds * 1000 + ms;
    return true;
}

bool
check_cut_parse(const char *text, struct check_target *ret_target)
{
    struct slice digits = slice_of(text);
    struct check_target target = { 0 };
    uint64_t unit = 1;

    if (parse_date(text, &target.value)) {
        target.is_time = true;
        *ret_target = target;
        return true;
    }
    if (digits.len > 1 && text[digits.len - 1] == 's') {
        target.is_time = true;
        unit = text[digits.len - 2] == 'm' ? 1 : 1000;
        digits.len -= unit == 1 ? 2 : 1;
    }
    if (!slice_to_u64(digits, &target.value) ||
        __builtin_mul_overflow(target.value, unit, &target.value)) {
        return false;
    }
    *ret_target = target;
    return true;
}

/* ---- where to cut -------------------------------------------------------- */

static bool
on_group(void *ctx, const struct check_increment *increment,
         const struct group *group, uint64_t end_position)
{
    struct cut *cut = ctx;
    bool stays = cut->target.is_time ? group->seal.unix_ms <= cut->target.value
                                     : end_position <= cut->target.value;

    if (!stays) {
        cut->passed = true;
        return cut->target.is_time;
    }
    cut->index = (size_t)(increment - cut->journal->increments);
    cut->offset = group->end;
    cut->position = end_position;
    cut->sequence = group->seal.sequence;
    cut->ms = group->seal.unix_ms;
    cut->groups = cut->journal->groups;
    return true;
}

/* Complains and returns false if the base is newer than the target. */
static bool
base_is_old_enough(struct cut *cut, const struct check_snapshot *base)
{
    const struct snapshot_stamp *stamp = &base->stamp;
    char time[CHECK_TIME_BYTES];
    uint64_t at = cut->target.is_time ? stamp->created_ms : stamp->position;

    if (at <= cut->target.value) {
        return true;
    }
    check_format_time(stamp->created_ms, time);
    tool_complain(&cut->check->tool, CHECK_USAGE,
                  "%s: the base is newer than that: it was made at %s "
                  "(%llums), at position %llu; an older backup is needed",
                  cut->journal->base_path, time,
                  (unsigned long long)stamp->created_ms,
                  (unsigned long long)stamp->position);
    return false;
}

/* Complains and returns false if damage, or the end, comes before the cut. */
static bool
cut_is_certain(struct cut *cut)
{
    const struct check_journal *journal = cut->journal;

    bool reached = cut->passed || (!cut->target.is_time &&
                                   journal->position >= cut->target.value);

    if (!reached && journal->state > CHECK_STATE_TORN) {
        check_journal_complain(cut->check, journal);
        tool_complain(&cut->check->tool, CHECK_DAMAGED,
                      "%s: the damage comes before that; what precedes it "
                      "ends at position %llu",
                      journal->path, (unsigned long long)journal->position);
        return false;
    }
    if (!reached && !cut->target.is_time) {
        tool_complain(&cut->check->tool, CHECK_USAGE,
                      "%s: ends at position %llu, before that one",
                      journal->path, (unsigned long long)journal->position);
        return false;
    }
    return true;
}

/* ---- writing ------------------------------------------------------------- */

static void
show_cut(struct cut *cut, const char *out, const char *kind)
{
    struct check *check = cut->check;

    check_card_begin(check, out, kind, CHECK_STATE_INTACT);
    check_card_number(check, "groups", cut->groups);
    if (!cut->journal->single) {
        check_card_number(check, "position", cut->position);
    }
    check_card_number(check, "sequence", cut->sequence);
    check_card_time(check, "last_time", cut->ms);
    check_card_end(check);
}

static bool
cut_increment(void *ctx, const char *path, const char *out)
{
    struct cut *cut = ctx;
    struct check_journal *journal = cut->journal;

    if (!check_journal_open_single(cut->check, path, journal)) {
        return false;
    }
    if (!cut->target.is_time) {
        tool_complain(&cut->check->tool, CHECK_USAGE,
                      "%s: positions are known only in a journal's directory; "
                      "give a time",
                      path);
        return false;
    }
    tool_bar_begin(&cut->check->tool, TOOL_UNIT_MIB,
                   2 * check_journal_bytes(journal));
    cut->index = 1;
    check_chain_scan(cut->check, journal, on_group, cut);
    if (cut->index == 1) {
        cut->offset = GROUP_FIRST_LINE_BYTES;
    }
    if (!cut_is_certain(cut) ||
        !check_make_copy(&cut->made, journal->increments[0].fd, cut->offset,
                         path, out)) {
        return false;
    }
    tool_bar_end(&cut->check->tool);
    show_cut(cut, out, "increment");
    return true;
}

/* Copies the base and the increments up to the cut. All become closed. */
static bool
write_files(struct cut *cut, const char *out, const struct check_snapshot *base,
            struct manifest *manifest)
{
    const struct check_journal *journal = cut->journal;
    char to[CHECK_PATH_MAX];

    if (!check_file_join(cut->check, out, check_file_name(journal->base_path),
                         to) ||
        !check_make_copy(&cut->made, journal->base_fd, base->file_bytes,
                         journal->base_path, to)) {
        return false;
    }
    manifest->count = 0;
    for (size_t i = 0;
         i < journal->count && i <= cut->index && cut->index < journal->count;
         i++) {
        const struct check_increment *increment = &journal->increments[i];
        uint64_t bytes = i < cut->index ? increment->file->end : cut->offset;

        if (!check_file_join(cut->check, out, check_file_name(increment->path),
                             to) ||
            !check_make_copy(&cut->made, increment->fd, bytes, increment->path,
                             to)) {
            return false;
        }
        manifest->increments[manifest->count++] = (struct manifest_increment){
            .number = increment->number, .closed = true, .bytes = bytes
        };
    }
    return true;
}

static bool
write_journal(struct cut *cut, const char *out,
              const struct check_snapshot *base)
{
    struct manifest *manifest = mem_alloc(sizeof(*manifest));
    bool ok;

    *manifest = cut->journal->manifest;
    manifest->generation++;
    ok = check_make_dir(&cut->made, out) &&
         write_files(cut, out, base, manifest) &&
         check_make_manifest(&cut->made, out, manifest);
    mem_free(manifest);
    return ok;
}

static bool
cut_journal(void *ctx, const char *path, const char *out,
            const struct check_data *data)
{
    struct cut *cut = ctx;
    struct check_journal *journal = cut->journal;
    struct check_snapshot base;

    (void)data;
    if (!check_journal_open_found(cut->check, path, journal)) {
        return false;
    }
    tool_bar_begin(&cut->check->tool, TOOL_UNIT_MIB,
                   2 * check_journal_bytes(journal));
    check_snapshot_look(cut->check, journal->base_fd, true, &base);
    if (base.state != CHECK_STATE_INTACT) {
        check_snapshot_complain(cut->check, journal->base_path, &base);
        return false;
    }
    if (!base_is_old_enough(cut, &base)) {
        return false;
    }
    cut->index = journal->count;
    cut->position = journal->manifest.position;
    cut->sequence = journal->manifest.sequence;
    cut->ms = base.stamp.created_ms;
    check_chain_scan(cut->check, journal, on_group, cut);
    if (!cut_is_certain(cut) || !write_journal(cut, out, &base)) {
        return false;
    }
    tool_bar_end(&cut->check->tool);
    show_cut(cut, out, "journal");
    return true;
}

static bool
cut_beside(void *ctx, const char *path, const char *out)
{
    struct cut *cut = ctx;

    return check_beside_copy(&cut->made, path, out, check_beside_cut);
}

void
check_cut(struct check *check, const struct check_target *target,
          const char *path, const char *out)
{
    struct cut cut = { .check = check,
                       .made = { .check = check },
                       .target = *target,
                       .journal = mem_zalloc(sizeof(struct check_journal)) };
    /* Snapshots are left out: a start would load one that is newer than the
     * target. */
    struct check_maker maker = {
        .increment = cut_increment,
        .journal = cut_journal,
        .beside = cut_beside,
        .refusal = "is no journal: only a journal knows what was when",
        .ctx = &cut,
    };

    cut.journal->base_fd = -1;
    (void)check_make_all(&cut.made, path, out, &maker);
    tool_bar_end(&check->tool);
    check_journal_close(cut.journal);
    mem_free(cut.journal);
}
