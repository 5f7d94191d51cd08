/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inih gives no line numbers, cuts long lines and stops at a zero byte. So it
 * gets its lines from read_line() here, which counts and checks them.
 */
#include "conf/conf_load.h"

#include "base/mem.h"
#include "conf/conf_apply.h"
#include "conf/conf_foreign.h"
#include "conf/conf_secret.h"

#include <errno.h>
#include <glob.h>
#include <ini.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* One file while it is read. */
struct reading {
    struct conf_source source;
    FILE *file;
    const char *path;
    struct conf_error *error;
    char text[CONF_LINE_MAX + 1]; /* of the line */
    int line;
    unsigned depth; /* of files that include each other */
    bool failed;    /* *error has the reason; the rest of the file is skipped */
};

static void
where(const struct reading *reading, struct conf_error *ret_where)
{
    conf_error_set(ret_where, "%s:%d", reading->path, reading->line);
}

static void
fail_at_line(struct reading *reading, const char *why)
{
    if (!reading->failed) {
        conf_error_set(reading->error, "%s:%d: %s", reading->path,
                       reading->line, why);
        reading->failed = true;
    }
}

/* Reads the next line for inih, with its newline, at most size - 1 bytes. */
static char *
read_line(char *ret_line, int size, void *stream)
{
    struct reading *reading = stream;
    int len = 0;
    int c;

    if (reading->failed) {
        return NULL;
    }
    reading->line++;
    while ((c = getc(reading->file)) != EOF && c != '\n') {
        if (c == '\0') {
            fail_at_line(reading, "there is a zero byte in the line");
            return NULL;
        }
        if (len == CONF_LINE_MAX || len + 2 >= size) {
            fail_at_line(reading, "the line is too long");
            return NULL;
        }
        ret_line[len++] = (char)c;
    }
    if (ferror(reading->file) != 0) {
        fail_at_line(reading, strerror(errno));
        return NULL;
    }
    if (c == EOF && len == 0) {
        return NULL;
    }
    memcpy(reading->text, ret_line, (size_t)len);
    reading->text[len] = '\0';
    ret_line[len++] = '\n';
    ret_line[len] = '\0';
    return ret_line;
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

/* Fails, and returns true, if the line is one of redis.conf. */
static bool
fail_foreign(struct reading *reading)
{
    struct conf_error place;

    where(reading, &place);
    if (reading->failed ||
        !conf_foreign_explains(place.text, slice_of(reading->text),
                               reading->error)) {
        return false;
    }
    reading->failed = true;
    return true;
}

/* Fails for a line that no row matches. */
static void
fail_unknown(struct reading *reading, const char *section, const char *key)
{
    const struct conf_row *row = conf_find(slice_of(key));
    struct conf_error why;

    if (fail_foreign(reading)) {
        return;
    }
    if (row != NULL) {
        conf_error_set(&why, "%s belongs in section [%s] as %s", row->name,
                       row->section, conf_key(row));
    } else if (section[0] == '\0') {
        conf_error_set(&why, "unknown option '%.64s' before any section", key);
    } else if (!is_section(section)) {
        conf_error_set(&why, "unknown section [%.64s]", section);
    } else {
        conf_error_set(&why, "unknown option '%.64s' in section [%s]", key,
                       section);
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
        return 0;
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
    return set;
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
        return 0;
    }
    if (!conf_apply_row(&reading->source, row, text, &why)) {
        conf_error_set(&whole, "%s: %.512s", conf_key(row), why.text);
        fail_at_line(reading, whole.text);
        return 0;
    }
    return 1;
}

static bool
parse(struct reading *reading)
{
    int first_bad_line =
        ini_parse_stream(read_line, reading, set_from_line, reading);

    if (first_bad_line != 0 && !reading->failed) {
        reading->line = first_bad_line;
        if (!fail_foreign(reading)) {
            fail_at_line(reading, "neither [section] nor name = value");
        }
    }
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
reading_new(struct conf *conf, const char *path, struct conf_notes *notes,
            struct conf_error *error)
{
    struct reading *reading = mem_zalloc(sizeof(*reading));

    reading->source = (struct conf_source){ .conf = conf, .notes = notes };
    reading->path = path;
    reading->error = error;
    return reading;
}

/* Reads one file in the place of a line. Its own [section] lines hold until its
 * end. */
static bool
load_one(const struct reading *outer, const char *path)
{
    struct reading *inner = reading_new(outer->source.conf, path,
                                        outer->source.notes, outer->error);
    bool done = false;

    inner->depth = outer->depth + 1;
    inner->source.save_seen = outer->source.save_seen;
    inner->file = fopen(path, "re");
    if (inner->file == NULL) {
        conf_error_set(outer->error, "%s:%d: include: %.256s: %s", outer->path,
                       outer->line, path, strerror(errno));
    } else {
        done = parse(inner);
    }
    mem_free(inner);
    return done;
}

/* Reads the files that a line `include = PATTERN` means, by name. As in Redis,
 * a pattern may match nothing, but a file must be there. */
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
        return false;
    }
    text = mem_copy_text(pattern);
    error = glob(text, 0, NULL, &found);
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

/* Reads a stream that is open, or fails with the errno of opening it. */
static bool
load_stream(FILE *file, struct conf *conf, const char *path,
            struct conf_notes *notes, struct conf_error *ret_error)
{
    struct reading *reading;
    bool done;

    if (file == NULL) {
        conf_error_set(ret_error, "%s: %s", path, strerror(errno));
        return false;
    }
    reading = reading_new(conf, path, notes, ret_error);
    reading->file = file;
    lock_inih();
    done = parse(reading);
    pthread_mutex_unlock(&inih);
    mem_free(reading);
    return done;
}

bool
conf_load_file(struct conf *conf, const char *path, struct conf_notes *notes,
               struct conf_error *ret_error)
{
    return load_stream(fopen(path, "re"), conf, path, notes, ret_error);
}

bool
conf_load_text(struct conf *conf, const char *path, struct slice text,
               struct conf_notes *notes, struct conf_error *ret_error)
{
    if (text.len == 0) {
        return true;
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is only read */
    return load_stream(fmemopen((void *)(uintptr_t)text.data, text.len, "r"),
                       conf, path, notes, ret_error);
}

/* Reads standard input once and keeps it for reloads. */
static bool
load_standard_input(struct conf *conf, struct conf_notes *notes,
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
    return conf_load_text(conf, "standard input", (struct slice){ text, len },
                          notes, ret_error);
}

void
conf_rewritten_path(const struct conf *conf,
                    char ret_path[CONF_REWRITTEN_PATH_MAX])
{
    int len = snprintf(ret_path, CONF_REWRITTEN_PATH_MAX,
                       "%s/" CONF_REWRITTEN_NAME, conf->dir);

    CHECK(len > 0 && len < CONF_REWRITTEN_PATH_MAX);
}

/* A command line while it is read. */
struct words {
    struct conf_source source;
    char **argv;
    int argc;
    int at; /* the last argument read */
};

/* Reads the values after --name into `ret_values`, of at most `max` words: up
 * to the next option where several may follow (--save 900 1 300 10), else one.
 */
static size_t
read_values(struct words *words, bool several, struct slice *ret_values,
            size_t max)
{
    size_t count = 0;

    while (words->at + 1 < words->argc && count < (several ? max : 1) &&
           (count == 0 || strncmp(words->argv[words->at + 1], "--", 2) != 0)) {
        ret_values[count++] = slice_of(words->argv[++words->at]);
    }
    return count;
}

/* --include FILE or pattern. */
static bool
load_from_words(struct words *words, struct slice pattern,
                struct conf_error *ret_error)
{
    struct reading *reading = reading_new(
        words->source.conf, "the command line", words->source.notes, ret_error);
    bool done;

    lock_inih();
    done = load_included(reading, pattern);
    pthread_mutex_unlock(&inih);
    mem_free(reading);
    return done;
}

/* Sets the option of --name=value or --name value. */
static bool
set_from_args(struct words *words, struct conf_error *ret_error)
{
    enum { VALUES_MAX = 256 };
    const char *name = words->argv[words->at] + 2;
    const char *equals = strchr(name, '=');
    struct slice name_text = slice_of(name), values[VALUES_MAX];
    const struct conf_row *row;
    struct conf_error why;
    size_t count = 1;

    if (equals != NULL) {
        name_text.len = (size_t)(equals - name);
    }
    row = conf_find(name_text);
    if (equals != NULL) {
        values[0] = slice_of(equals + 1);
    } else {
        count = read_values(words, row == NULL || conf_apply_joins(row), values,
                            VALUES_MAX);
    }
    if (slice_is_word(name_text, "include") && count == 1) {
        return load_from_words(words, values[0], ret_error);
    }
    if (row == NULL && !conf_apply_is_foreign(name_text)) {
        conf_error_set(ret_error, "unknown option --%.*s",
                       name_text.len < 64 ? (int)name_text.len : 64, name);
        return false;
    }
    if (!conf_apply_words(&words->source, name_text, values, count, &why)) {
        conf_error_set(ret_error, "--%.*s: %.512s", slice_shown(name_text),
                       name_text.data, why.text);
        return false;
    }
    return true;
}

static bool
is_word(const char *text, const char *word, const char *other)
{
    return strcmp(text, word) == 0 || strcmp(text, other) == 0;
}

/* Finds an argument that asks for output instead of a server. It must be the
 * first one: elsewhere it may be a value. */
static enum conf_action
find_action(int argc, char **argv, struct conf_args *args)
{
    static const char print[] = "--print=";
    static const char ping[] = "--ping";
    size_t ping_len = sizeof(ping) - 1;

    if (argc < 2) {
        return CONF_ACTION_RUN;
    }
    if (is_word(argv[1], "--help", "-h")) {
        return CONF_ACTION_HELP;
    }
    if (is_word(argv[1], "--version", "-v")) {
        return CONF_ACTION_VERSION;
    }
    if (strcmp(argv[1], "--plan") == 0) {
        return CONF_ACTION_PLAN;
    }
    if (strncmp(argv[1], print, sizeof(print) - 1) == 0) {
        args->print = argv[1] + sizeof(print) - 1;
        return CONF_ACTION_PRINT;
    }
    if (strcmp(argv[1], "--convert") == 0 && argc == 3) {
        args->convert = argv[2];
        return CONF_ACTION_CONVERT;
    }
    if (strcmp(argv[1], "--check-config") == 0) {
        return CONF_ACTION_CHECK;
    }
    if (strncmp(argv[1], ping, ping_len) == 0 &&
        (argv[1][ping_len] == '\0' || argv[1][ping_len] == '=')) {
        args->ping = argv[1] + ping_len + (argv[1][ping_len] == '=' ? 1 : 0);
        while (2 + args->ping_words < argc &&
               strncmp(argv[2 + args->ping_words], "--ping-", 7) == 0) {
            args->ping_words++;
        }
        return CONF_ACTION_PING;
    }
    return CONF_ACTION_RUN;
}

/* Sets the options of the arguments from `from` on. */
static bool
load_words(struct conf *conf, int argc, char **argv, int from,
           struct conf_notes *notes, struct conf_error *ret_error)
{
    struct words words = {
        .source = { .conf = conf, .notes = notes, .where = "the command line" },
        .argv = argv,
        .argc = argc,
    };

    for (words.at = from; words.at < argc; words.at++) {
        if (strncmp(argv[words.at], "--", 2) != 0) {
            conf_error_set(ret_error,
                           "unexpected argument '%.64s': options are --name "
                           "value",
                           argv[words.at]);
            return false;
        }
        if (!set_from_args(&words, ret_error)) {
            return false;
        }
    }
    return true;
}

/* Fails for options that rewritten.conf must not set: `dir`, where it lies
 * itself, and a password that a file of its own gives by now. */
static bool
check_rewritten(const struct conf *conf, const struct conf *given,
                const char *path, struct conf_error *ret_error)
{
    if (strcmp(given->dir, conf->dir) != 0) {
        conf_error_set(ret_error, "%s: dir cannot be set here", path);
        return false;
    }
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];

        if (conf_file_of(conf, row) != NULL && !conf_same(conf, given, row)) {
            conf_error_set(ret_error, "%s: %s cannot be set here beside %s",
                           path, row->name, conf_file_row(row)->name);
            return false;
        }
    }
    return true;
}

/* Reads rewritten.conf, if there is one. The operator did not write it and may
 * not know it, so an error says what to do. */
static bool
load_rewritten(struct conf *conf, const struct conf *given,
               struct conf_error *ret_error)
{
    char path[CONF_REWRITTEN_PATH_MAX];
    struct conf_error why;

    conf_rewritten_path(conf, path);
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return true;
    }
    if (conf_load_file(conf, path, NULL, &why) &&
        check_rewritten(conf, given, path, &why)) {
        return true;
    }
    conf_error_set(ret_error,
                   "%.512s (CONFIG REWRITE wrote this file: correct it, or "
                   "remove it to start without the options that it sets)",
                   why.text);
    return false;
}

/* Sets what the file and the words after it give. */
static bool
load_given(struct conf *conf, int argc, char **argv, int from,
           struct conf_args *args, struct conf_error *ret_error)
{
    bool input = args->file != NULL && strcmp(args->file, "-") == 0;

    if (input) {
        if (!load_standard_input(conf, &args->notes, ret_error)) {
            return false;
        }
    } else if (args->file != NULL &&
               !conf_load_file(conf, args->file, &args->notes, ret_error)) {
        return false;
    }
    return load_words(conf, argc, argv, from, &args->notes, ret_error);
}

/* The command line is read twice: it may give the directory of rewritten.conf,
 * and it wins over that file. */
bool
conf_load_args(struct conf *conf, struct conf *ret_given, int argc, char **argv,
               struct conf_args *ret_args, struct conf_error *ret_error)
{
    struct conf_args args = { .action = CONF_ACTION_RUN };
    struct conf given;
    int from = 1;

    args.action = find_action(argc, argv, &args);
    if (args.action == CONF_ACTION_CHECK || args.action == CONF_ACTION_PING) {
        from = 2 + args.ping_words;
    } else if (args.action != CONF_ACTION_RUN) {
        *ret_args = args;
        return true;
    }
    if (argc > from && (argv[from][0] != '-' || argv[from][1] == '\0')) {
        args.file = argv[from++];
    }
    if (!load_given(conf, argc, argv, from, &args, ret_error) ||
        !conf_copy(conf, &given, ret_error)) {
        return false;
    }
    if (!load_rewritten(conf, &given, ret_error) ||
        !load_words(conf, argc, argv, from, NULL, ret_error)) {
        goto fini_given;
    }
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        args.overridden[i] =
            !conf_table[i].alias && !conf_same(conf, &given, &conf_table[i]);
    }
    if (!conf_secrets_load(conf, &args.notes, ret_error)) {
        goto fini_given;
    }
    *ret_given = given;
    *ret_args = args;
    return true;

fini_given:
    conf_fini(&given);
    return false;
}
