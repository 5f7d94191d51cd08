/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inih gives no line numbers, cuts long lines and stops at a zero byte. So it
 * gets its lines from read_line() here, which counts and checks them.
 */
#include "conf/conf_load.h"

#include "base/mem.h"
#include "conf/conf_apply.h"
#include "conf/conf_foreign.h"
#include "conf/conf_near.h"

#include <errno.h>
#include <glob.h>
#include <ini.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* The state of reading a file. */
struct reading {
    struct conf_source source;
    FILE *file;
    const char *path;
    struct conf_error *error;
    char text[CONF_LINE_MAX + 1];    /* of the line */
    char section[CONF_LINE_MAX + 1]; /* the last line [section] */
    int line;
    unsigned depth; /* of files that include each other */
    bool failed;    /* *error has the reason; the rest of the file is skipped */
    bool foreign;   /* a line of redis.conf was explained */
    bool resumes;   /* behind a bad line: inih must get the section again */
};

static void
where(const struct reading *reading, struct conf_error *ret_where)
{
    conf_error_set(ret_where, "%s:%d", reading->path, reading->line);
}

/* Notes the error, so that reading goes on, or fails with it. */
static void
note_or_fail(struct reading *reading)
{
    reading->failed =
        !conf_error_note(reading->error, reading->source.mistakes);
}

static void
fail_at_line(struct reading *reading, const char *why)
{
    if (!reading->failed) {
        conf_error_set(reading->error, "%s:%d: %s", reading->path,
                       reading->line, why);
        note_or_fail(reading);
    }
}

/* Gives inih a line with its newline. */
static char *
hand_over(const char *text, size_t len, char *ret_line)
{
    memcpy(ret_line, text, len);
    ret_line[len] = '\n';
    ret_line[len + 1] = '\0';
    return ret_line;
}

static void
remember_section(struct reading *reading)
{
    const char *begin = reading->text;

    begin += strncmp(begin, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* skips a BOM */
    begin += strspn(begin, " \t");
    if (*begin == '[' && strchr(begin, ']') != NULL) {
        memcpy(reading->section, begin, strlen(begin) + 1);
    }
}

/* Reads the next line for inih, with its newline, at most size - 1 bytes. */
static char *
read_line(char *ret_line, int size, void *stream)
{
    struct reading *reading = stream;
    const char *wrong = NULL;
    int len = 0;
    int c;

    if (reading->failed) {
        return NULL;
    }
    if (reading->resumes) {
        reading->resumes = false;
        return hand_over(reading->section, strlen(reading->section), ret_line);
    }
    reading->line++;
    while ((c = getc(reading->file)) != EOF && c != '\n' &&
           (wrong == NULL || reading->source.mistakes != NULL)) {
        if (c == '\0') {
            wrong = "there is a zero byte in the line";
        } else if (len == CONF_LINE_MAX || len + 2 >= size) {
            wrong = "the line is too long";
        } else {
            reading->text[len++] = (char)c;
        }
    }
    if (ferror(reading->file) != 0) {
        fail_at_line(reading, strerror(errno));
        return NULL;
    }
    if (c == EOF && len == 0 && wrong == NULL) {
        return NULL;
    }
    if (wrong != NULL) {
        fail_at_line(reading, wrong);
        len = 0;
    }
    reading->text[len] = '\0';
    remember_section(reading);
    return reading->failed ? NULL
                           : hand_over(reading->text, (size_t)len, ret_line);
}

static const struct conf_row *
find_in_section(const char *section, const char *key)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];

        if (slice_is_word(slice_of(section), row->section) &&
            slice_is_word(slice_of(key), conf_key(row))) {
            return row;
        }
    }
    return NULL;
}

static bool
is_section(const char *section)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        if (slice_is_word(slice_of(section), conf_table[i].section)) {
            return true;
        }
    }
    return false;
}

/* Fails, and returns true, if the line is one of redis.conf. Such a file may
 * have many of them: only the first one is explained at length. */
static bool
fail_foreign(struct reading *reading)
{
    struct conf_error place;

    where(reading, &place);
    if (reading->failed ||
        !conf_foreign_explains(place.text, slice_of(reading->text),
                               reading->foreign, reading->error)) {
        return false;
    }
    reading->foreign = true;
    note_or_fail(reading);
    return true;
}

/* Fails for a line that no row matches. */
static void
fail_unknown(struct reading *reading, const char *section, const char *key)
{
    const struct conf_row *row = conf_find(slice_of(key));
    const struct conf_row *near = conf_near_option(slice_of(key), section);
    const char *meant = conf_near_section(slice_of(section));
    struct conf_error why, hint = { 0 };

    if (fail_foreign(reading)) {
        return;
    }
    if (near != NULL && slice_is_word(slice_of(section), near->section)) {
        conf_error_set(&hint, ": did you mean %s?", conf_key(near));
    } else if (near != NULL) {
        conf_error_set(&hint, ": did you mean %s in section [%s]?",
                       conf_key(near), near->section);
    }
    if (row != NULL) {
        conf_error_set(&why, "%s belongs in section [%s] as %s", row->name,
                       row->section, conf_key(row));
    } else if (section[0] == '\0') {
        conf_error_set(&why, "unknown option '%.64s' before any section%s", key,
                       hint.text);
    } else if (!is_section(section)) {
        conf_error_set(&why, "unknown section [%.64s]%s%s%s", section,
                       meant != NULL ? ": did you mean [" : hint.text,
                       meant != NULL ? meant : "", meant != NULL ? "]?" : "");
    } else {
        conf_error_set(&why, "unknown option '%.64s' in section [%s]%s", key,
                       section, hint.text);
    }
    fail_at_line(reading, why.text);
}

static bool
unquote(struct slice *value)
{
    bool opens = value->len > 0 && value->data[0] == '"';
    bool closes = value->len > 0 && value->data[value->len - 1] == '"';

    if (!opens && !closes) {
        return true;
    }
    if (!opens || !closes || value->len < 2) {
        return false;
    }
    *value = (struct slice){ value->data + 1, value->len - 2 };
    return true;
}

static bool load_included(struct reading *reading, struct slice pattern);

/* Obeys a line that sets no option of ours; nonzero is success. */
static int
set_other(struct reading *reading, const char *section, const char *key,
          struct slice text)
{
    enum { WORDS_MAX = 64 };
    struct slice name = slice_of(key), words[WORDS_MAX];
    struct conf_error place, why, whole;
    struct buf store = { 0 };
    size_t count;
    bool set;

    if (slice_is_word(name, "include")) {
        return load_included(reading, text);
    }
    if (!conf_apply_is_foreign(name)) {
        fail_unknown(reading, section, key);
        return !reading->failed;
    }
    where(reading, &place);
    reading->source.where = place.text;
    set = conf_apply_split(text, &store, words, WORDS_MAX, &count);
    if (!set) {
        conf_error_set(&why, "unbalanced quotes, or too many words");
    } else if (count == 0) {
        words[count++] = slice_lit("");
    }
    set = set && conf_apply_words(&reading->source, name, words, count, &why);
    if (!set) {
        conf_error_set(&whole, "%.64s: %.512s", key, why.text);
        fail_at_line(reading, whole.text);
    }
    buf_free(&store);
    return !reading->failed;
}

/* Sets the option of a line, for inih; nonzero is success. */
static int
set_from_line(void *user, const char *section, const char *key,
              const char *value)
{
    struct reading *reading = user;
    const struct conf_row *row = find_in_section(section, key);
    struct slice text = slice_of(value);
    struct conf_error why;
    struct conf_error whole;

    if (reading->failed) {
        return 0;
    }
    if (row == NULL) {
        return set_other(reading, section, key, text);
    }
    if (!unquote(&text)) {
        conf_error_set(&whole, "%s: unbalanced double quotes", conf_key(row));
        fail_at_line(reading, whole.text);
    } else if (!conf_apply_row(&reading->source, row, text, &why)) {
        conf_error_set(&whole, "%s: %.512s", conf_key(row), why.text);
        fail_at_line(reading, whole.text);
    }
    return !reading->failed;
}

static bool
parse(struct reading *reading)
{
    int bad_line, before;

    do { /* inih ends at a bad line */
        before = reading->line;
        bad_line = ini_parse_stream(read_line, reading, set_from_line, reading);
        if (bad_line != 0 && !reading->failed && !fail_foreign(reading)) {
            fail_at_line(reading, "neither [section] nor name = value");
        }
        reading->resumes = true;
    } while (bad_line > 0 && !reading->failed && reading->line > before);
    (void)fclose(reading->file);
    return !reading->failed;
}

static pthread_mutex_t inih = PTHREAD_MUTEX_INITIALIZER;

static void
lock_inih(void)
{
    pthread_mutex_lock(&inih);
    /* Continuation lines and comments after values would change values
     * silently: a password may contain a semicolon. */
    ini_allow_multiline = false;
    ini_allow_inline_comments = false;
    ini_stop_on_first_error = true;
    ini_max_line = CONF_LINE_MAX + 2; /* the newline and the end */
}

static struct reading *
reading_new(const struct conf_source *source, const char *path,
            struct conf_error *error)
{
    struct reading *reading = mem_zalloc(sizeof(*reading));

    reading->source = *source;
    reading->source.where = NULL;
    reading->source.save_seen = false;
    reading->path = path;
    reading->error = error;
    return reading;
}

/* Reads an included file in the place of an `include` line. The [section] lines
 * of the file hold until its end. */
static bool
load_one(const struct reading *outer, const char *path)
{
    struct reading *inner = reading_new(&outer->source, path, outer->error);
    bool done = false;

    inner->depth = outer->depth + 1;
    inner->source.save_seen = outer->source.save_seen;
    inner->file = fopen(path, "re");
    if (inner->file == NULL) {
        conf_error_set(outer->error, "%s:%d: include: %.256s: %s", outer->path,
                       outer->line, path, strerror(errno));
        done = conf_error_note(outer->error, outer->source.mistakes);
    } else {
        done = parse(inner);
    }
    mem_free(inner);
    return done;
}

/* Stops glob() by a result other than 0, unless a folder is only missing. */
static int
fail_folder(const char *path, int error)
{
    (void)path;
    return error != ENOENT;
}

/* Reads the files that match the PATTERN of a line `include = PATTERN`, in the
 * order of their names. As in Redis, a pattern may match no file, but a file
 * that is named must exist. */
static bool
load_included(struct reading *reading, struct slice pattern)
{
    enum { DEPTH_MAX = 16 };
    char *text;
    glob_t found;
    int error;

    if (!unquote(&pattern) || reading->depth == DEPTH_MAX) {
        fail_at_line(reading, reading->depth == DEPTH_MAX
                                  ? "include: too many files include files"
                                  : "include: unbalanced double quotes");
        return !reading->failed;
    }
    text = mem_copy_text(pattern);
    error = glob(text, 0, fail_folder, &found);
    if (error == GLOB_NOMATCH && strpbrk(text, "*?[") == NULL) {
        reading->failed = !load_one(reading, text);
    } else if (error != 0 && error != GLOB_NOMATCH) {
        fail_at_line(reading, "include: the folder cannot be read");
    }
    for (size_t i = 0; error == 0 && i < found.gl_pathc; i++) {
        reading->failed = !load_one(reading, found.gl_pathv[i]);
        if (reading->failed) {
            break;
        }
    }
    if (error == 0) {
        globfree(&found);
    }
    mem_free(text);
    return !reading->failed;
}

/* Reads an open stream. NULL: fails with the errno that fopen() has set. */
static bool
load_stream(FILE *file, const struct conf_source *source, const char *path,
            struct conf_error *ret_error)
{
    struct reading *reading;
    bool done;

    if (file == NULL) {
        conf_error_set(ret_error, "%s: %s", path, strerror(errno));
        return conf_error_note(ret_error, source->mistakes);
    }
    reading = reading_new(source, path, ret_error);
    reading->file = file;
    lock_inih();
    done = parse(reading);
    pthread_mutex_unlock(&inih);
    mem_free(reading);
    return done;
}

static bool
load_text(const struct conf_source *source, const char *path, struct slice text,
          struct conf_error *ret_error)
{
    if (text.len == 0) {
        return true;
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is only read */
    return load_stream(fmemopen((void *)(uintptr_t)text.data, text.len, "r"),
                       source, path, ret_error);
}

bool
conf_load_file(struct conf *conf, const char *path, struct conf_notes *notes,
               struct conf_error *ret_error)
{
    const struct conf_source source = { .conf = conf, .notes = notes };

    return load_stream(fopen(path, "re"), &source, path, ret_error);
}

bool
conf_load_text(struct conf *conf, const char *path, struct slice text,
               struct conf_notes *notes, struct conf_error *ret_error)
{
    const struct conf_source source = { .conf = conf, .notes = notes };

    return load_text(&source, path, text, ret_error);
}

/* Reads standard input once and keeps it for reloads. */
static bool
load_standard_input(const struct conf_source *source,
                    struct conf_error *ret_error)
{
    static char *text;
    static size_t len;
    char line[CONF_LINE_MAX];
    struct buf all = { 0 };
    size_t got;

    if (text == NULL) {
        while ((got = fread(line, 1, sizeof(line), stdin)) > 0) {
            buf_append(&all, line, got);
        }
        if (ferror(stdin) != 0 || all.failed) {
            conf_error_set(ret_error, "standard input: %s",
                           all.failed ? "too much" : strerror(errno));
            buf_free(&all);
            return false;
        }
        len = all.len;
        text = mem_copy_text(len > 0 ? buf_slice(&all) : slice_lit(""));
        buf_free(&all);
    }
    return load_text(source, "standard input", (struct slice){ text, len },
                     ret_error);
}

bool
conf_load_source(const struct conf_source *source, const char *path,
                 struct conf_error *ret_error)
{
    return strcmp(path, "-") == 0
               ? load_standard_input(source, ret_error)
               : load_stream(fopen(path, "re"), source, path, ret_error);
}

bool
conf_load_pattern(const struct conf_source *source, struct slice pattern,
                  struct conf_error *ret_error)
{
    struct reading *reading =
        reading_new(source, "the command line", ret_error);
    bool done;

    lock_inih();
    done = load_included(reading, pattern);
    pthread_mutex_unlock(&inih);
    mem_free(reading);
    return done;
}
