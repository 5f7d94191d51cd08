/* SPDX-License-Identifier: BSD-3-Clause */
#include "load/load_ttl.h"

#include "base/clock.h"

enum {
    SECOND_MS = 1000,
    TIME_WORDS = 3,    /* EXPIRE key time */
    RESTORE_WORDS = 4, /* RESTORE key time value */
    BATCH_KEYS = 512
};

/* ---- commands ------------------------------------------------------------ */

/* Reads a time as one since 1970; one that was never is 1. */
static bool
read_time(struct slice number, int64_t unit_ms, bool relative,
          uint64_t *ret_at_ms)
{
    int64_t at_ms;

    if (!slice_to_i64(number, &at_ms) ||
        __builtin_mul_overflow(at_ms, unit_ms, &at_ms) ||
        (relative &&
         __builtin_add_overflow(at_ms, (int64_t)clock_wall_ms(), &at_ms))) {
        return false;
    }
    *ret_at_ms = at_ms > 0 ? (uint64_t)at_ms : 1;
    return true;
}

static bool
is_absolute(const struct slice *words, size_t count)
{
    for (size_t i = RESTORE_WORDS; i < count; i++) {
        if (slice_is_word(words[i], "absttl")) {
            return true;
        }
    }
    return false;
}

static bool
read_restore(const struct slice *words, size_t count, uint64_t *ret_at_ms)
{
    return count >= RESTORE_WORDS && count <= LOAD_TTL_WORDS_MAX &&
           slice_is_word(words[0], "restore") &&
           !slice_equal(words[2], slice_lit("0")) &&
           read_time(words[2], 1, !is_absolute(words, count), ret_at_ms);
}

static bool
read_expire(const struct slice *words, size_t count, uint64_t *ret_at_ms)
{
    static const struct {
        const char *name;
        int64_t unit_ms;
        bool relative;
    } kinds[] = { { "expire", SECOND_MS, true },
                  { "pexpire", 1, true },
                  { "expireat", SECOND_MS, false },
                  { "pexpireat", 1, false } };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (count == TIME_WORDS && slice_is_word(words[0], kinds[i].name)) {
            return read_time(words[2], kinds[i].unit_ms, kinds[i].relative,
                             ret_at_ms);
        }
    }
    return false;
}

const struct slice *
load_ttl_words(struct load_target *target, const struct slice *words,
               size_t *count, struct load_ttl *ret_ttl)
{
    uint64_t at_ms, later_ms;
    bool restores = read_restore(words, *count, &at_ms);

    if (!restores && !read_expire(words, *count, &at_ms)) {
        return words;
    }
    later_ms = load_target_put_off(target, at_ms);
    if (later_ms == at_ms) {
        return words;
    }
    memcpy(ret_ttl->words, words, *count * sizeof(*words));
    ret_ttl->words[2] =
        (struct slice){ ret_ttl->digits,
                        num_format_u64(later_ms, ret_ttl->digits) };
    if (!restores) {
        ret_ttl->words[0] = slice_lit("PEXPIREAT");
    } else if (!is_absolute(words, *count)) {
        ret_ttl->words[(*count)++] = slice_lit("ABSTTL");
    }
    return ret_ttl->words;
}

/* ---- the end ------------------------------------------------------------- */

/* The connection is an own one: a transaction of the source may be open on that
 * of the target. */
struct release {
    struct load_target *target;
    struct load_link link;
    uint64_t db;
    struct buf names;
};

static bool
note_name(void *ctx, struct slice name, void *value)
{
    struct release *release = ctx;

    (void)value;
    if (load_target_key(release->target, release->db, name) == LOAD_KEY_OURS) {
        buf_append_item(&release->names, name);
    }
    return !release->names.failed;
}

/* Waits for a reply that is an integer. */
static bool
take_integer(struct release *release, int64_t *ret_value)
{
    struct slice reply, text;

    if (!load_link_reply(&release->link, &reply)) {
        return false;
    }
    if (!resp_integer(reply, ret_value)) {
        text = resp_text(reply);
        load_link_fail(&release->link, "cannot set times to live: %.*s",
                       resp_shown(text), text.data);
        return false;
    }
    return true;
}

static void
set_time(struct release *release, struct slice name, uint64_t at_ms)
{
    char digits[NUM_U64_MAX];
    const struct slice words[] = { slice_lit("PEXPIREAT"),
                                   name,
                                   { digits, num_format_u64(at_ms, digits) } };

    load_link_send(&release->link, words, 3);
    release->target->expired += at_ms <= clock_wall_ms();
}

/* Sets the times of the next names. */
static bool
release_some(struct release *release, size_t *at)
{
    struct slice names[BATCH_KEYS];
    size_t count = 0, set = 0;
    int64_t at_ms = 0;

    while (count < BATCH_KEYS &&
           buf_next_item(&release->names, at, &names[count])) {
        const struct slice words[] = { slice_lit("PEXPIRETIME"),
                                       names[count++] };

        load_link_send(&release->link, words, 2);
    }
    for (size_t i = 0; i < count; i++) {
        if (!take_integer(release, &at_ms)) {
            return false;
        }
        if (at_ms >= (int64_t)LOAD_LATER_MS) {
            names[set] = names[i];
            set_time(release, names[set++], (uint64_t)at_ms - LOAD_LATER_MS);
        }
    }
    while (set-- > 0) {
        if (!take_integer(release, &at_ms)) {
            return false;
        }
    }
    return true;
}

static bool
release_database(struct release *release)
{
    char digits[NUM_U64_MAX + 1];
    struct slice reply;
    size_t at = 0;
    bool ok = map_each(&release->target->keys[release->db], note_name, release);

    if (!ok) {
        load_link_fail(&release->link, "no memory for the names of the keys");
    }
    digits[num_format_u64(release->db, digits)] = '\0';
    ok = ok && load_link_ask(&release->link, &reply, "SELECT", digits, NULL) &&
         !resp_is_error(reply);
    while (ok && at < release->names.len) {
        ok = release_some(release, &at);
    }
    buf_reset(&release->names, SIZE_MAX);
    return ok;
}

bool
load_ttl_release(struct load_target *target)
{
    struct release release = { .target = target };
    bool ok = true;

    if (!target->held || target->link.failed) {
        return true;
    }
    if (!load_link_open(target->load, &target->load->to, &release.link)) {
        return false;
    }
    for (; ok && release.db < LOAD_DATABASES_MAX; release.db++) {
        ok = target->keys[release.db].count == 0 || release_database(&release);
    }
    load_link_close(&release.link);
    buf_free(&release.names);
    return ok;
}
