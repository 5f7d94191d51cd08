/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as a configuration file: it loads or is refused with path and
 * line, and what it set shows texts that set the same again. Then its lines are
 * the pairs of a CONFIG SET, which sets all of them or none.
 */
#include "base/err.h"
#include "conf/conf_apply.h"
#include "conf/conf_load.h"
#include "conf/conf_rewrite.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void
check_values(struct conf *conf)
{
    struct conf_error error;
    struct conf again;
    struct conf_changes changes;

    conf_init(&again);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        struct buf text = { 0 };

        if (conf_table[i].type == CONF_SECRET || conf_table[i].alias) {
            continue; /* an alias may take less than the row it stands for */
        }
        conf_get(conf, &conf_table[i], &text);
        CHECK(conf_set(&again, &conf_table[i], buf_slice(&text), &error));
        buf_free(&text);
    }
    conf_take(conf, &again, &changes);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        CHECK(conf_table[i].type == CONF_SECRET ||
              (!changes.changed[i] && !changes.needs_restart[i]));
    }
    conf_fini(&again);
    CHECK(conf_copy(conf, &again,
                    &error)); /* checks that every value can be set */
    conf_fini(&again);
}

/* What CONFIG REWRITE would write reads back, and then nothing is left to be
 * written; where a value cannot be written the reason is one of ours. */
static void
check_rewrite(struct conf *conf)
{
    struct buf out = { 0 };
    struct conf_error error;
    struct conf given;

    conf_init(&given);
    if (conf_rewrite(conf, &given, &out, &error)) {
        CHECK(conf_load_text(&given, "x", buf_slice(&out), NULL, &error));
        for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
            const struct conf_row *row = &conf_table[i];

            CHECK(row->when != CONF_RUNTIME || conf_same(conf, &given, row) ||
                  conf_file_of(conf, row) != NULL);
        }
    } else {
        CHECK(error.text[0] != '\0');
    }
    buf_free(&out);
    conf_fini(&given);
}

/* ---- CONFIG SET ---------------------------------------------------------- */

enum { PAIRS_MAX = 16 };

/* Makes pairs of the lines "name = value", or "name value", with all bytes of
 * the value. */
static size_t
split_pairs(struct slice text, struct slice pairs[])
{
    size_t count = 0;

    while (text.len > 0 && count < PAIRS_MAX) {
        const char *lf = memchr(text.data, '\n', text.len);
        size_t len = lf != NULL ? (size_t)(lf - text.data) : text.len;
        size_t name = 0;
        size_t at;

        while (name < len && text.data[name] != ' ' && text.data[name] != '=') {
            name++;
        }
        at = name;
        while (at < len && (text.data[at] == ' ' || text.data[at] == '=')) {
            at++;
        }
        pairs[2 * count] = (struct slice){ text.data, name };
        pairs[2 * count + 1] = (struct slice){ text.data + at, len - at };
        count++;
        text.data += len + (lf != NULL);
        text.len -= len + (lf != NULL);
    }
    return count;
}

/* All pairs or none; and what a client may set, a file may say. */
static void
check_set(struct slice text)
{
    struct slice pairs[2 * PAIRS_MAX];
    size_t count = split_pairs(text, pairs);
    struct conf_changes changes;
    struct conf_error error = { .text = "" };
    struct conf conf, one_by_one;
    bool all;

    conf_init(&conf);
    conf_init(&one_by_one);
    all = conf_set_many(&conf, pairs, count, &changes, &error);
    CHECK(all == (error.text[0] == '\0'));
    for (size_t i = 0; all && i < count; i++) {
        const struct conf_row *row = conf_find(pairs[2 * i]);

        CHECK(row != NULL && row->when == CONF_RUNTIME);
        CHECK(conf_set(&one_by_one, row, pairs[2 * i + 1], &error));
        CHECK(!changes.needs_restart[row - conf_table]);
    }
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        CHECK(conf_same(&conf, &one_by_one, &conf_table[i]));
    }
    if (all) {
        check_values(&conf);
        check_rewrite(&conf);
    }
    conf_fini(&one_by_one);
    conf_fini(&conf);
}

/* Looks for all mistakes of a file, of which the first one is known. */
static void
check_mistakes(const char *path, const char *first)
{
    struct buf mistakes = { 0 };
    struct conf conf;
    struct conf_error error;
    const struct conf_source source = { .conf = &conf, .mistakes = &mistakes };

    conf_init(&conf);
    CHECK(conf_load_source(&source, path, &error));
    CHECK(mistakes.len > strlen(first));
    CHECK(memcmp(mistakes.data, first, strlen(first)) == 0);
    CHECK(mistakes.data[strlen(first)] == '\n');
    check_values(&conf);
    buf_free(&mistakes);
    conf_fini(&conf);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("conf", MFD_CLOEXEC);
    char path[32];
    struct conf conf;
    struct conf_error error;

    CHECK(fd >= 0);
    CHECK(size == 0 || write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    conf_init(&conf);
    if (conf_load_file(&conf, path, NULL, &error)) {
        check_values(&conf);
        check_rewrite(&conf);
    } else {
        CHECK(strncmp(error.text, path, strlen(path)) == 0);
        CHECK(error.text[strlen(path)] == ':');
        check_mistakes(path, error.text);
    }
    conf_fini(&conf);
    (void)close(fd);
    check_set((struct slice){ (const char *)data, size });
    return 0;
}
