/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --check-config looks for all mistakes. So each function here succeeds after a
 * mistake that it could note. Options that were not read keep their defaults.
 */
#include "conf/conf_args.h"

#include "base/mem.h"
#include "conf/conf_apply.h"
#include "conf/conf_load.h"
#include "conf/conf_near.h"
#include "conf/conf_secret.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void
conf_rewritten_path(const struct conf *conf,
                    char ret_path[CONF_REWRITTEN_PATH_MAX])
{
    int len = snprintf(ret_path, CONF_REWRITTEN_PATH_MAX,
                       "%s/" CONF_REWRITTEN_NAME, conf->dir);

    CHECK(len > 0 && len < CONF_REWRITTEN_PATH_MAX);
}

/* The state of reading a command line. */
struct words {
    struct conf_source source;
    char **argv;
    int argc;
    int at; /* the last argument read */
};

/* Reads the values after --name into `ret_values`. If the option takes several
 * (--save 900 1 300 10), reads all up to the next option, at most `max`;
 * otherwise one. */
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

/* Sets the error for an unknown option. It may be misspelt, or a word that asks
 * for output, but has no value or does not come first. */
static void
set_unknown(struct slice name, struct conf_error *ret_error)
{
    static const struct {
        const char *name, *use;
    } outputs[] = {
        { "convert", "takes one file: bloomery-server --convert FILE" },
        { "print", "takes a word: bloomery-server --print=WHAT" },
        { "plan", "must come first: bloomery-server --plan WORDS" },
        { "ping", "must come first: bloomery-server --ping [FILE]" },
        { "check-config",
          "must come first: bloomery-server --check-config [FILE]" },
    };
    const struct conf_row *row = conf_near_option(name, NULL);
    int shown = name.len < 64 ? (int)name.len : 64;

    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        if (slice_is_word(name, outputs[i].name)) {
            conf_error_set(ret_error, "--%s %s", outputs[i].name,
                           outputs[i].use);
            return;
        }
    }
    conf_error_set(ret_error, "unknown option --%.*s%s%s%s", shown, name.data,
                   row != NULL ? ": did you mean --" : "",
                   row != NULL ? row->name : "", row != NULL ? "?" : "");
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
        return conf_load_pattern(&words->source, values[0], ret_error);
    }
    if (row == NULL && !conf_apply_is_foreign(name_text)) {
        set_unknown(name_text, ret_error);
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

/* Returns whether a first argument names the configuration file. */
static bool
is_file(const char *word)
{
    return word[0] != '-' || word[1] == '\0';
}

/* Finds an argument that asks for output instead of a server. It must be the
 * first one: elsewhere it may be a value. --help and --version may also follow
 * FILE, which the entrypoint of a container gives. */
static enum conf_action
find_action(int argc, char **argv, struct conf_args *args)
{
    static const char print[] = "--print=";
    static const char ping[] = "--ping";
    size_t ping_len = sizeof(ping) - 1;
    int at = argc > 2 && is_file(argv[1]) ? 2 : 1;

    if (argc < 2) {
        return CONF_ACTION_RUN;
    }
    if (is_word(argv[at], "--help", "-h")) {
        return CONF_ACTION_HELP;
    }
    if (is_word(argv[at], "--version", "-v")) {
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
load_words(struct words *words, int from, struct conf_error *ret_error)
{
    for (words->at = from; words->at < words->argc; words->at++) {
        const char *word = words->argv[words->at];
        bool set = false;

        if (strncmp(word, "--", 2) == 0) {
            set = set_from_args(words, ret_error);
        } else {
            conf_error_set(ret_error,
                           "unexpected argument '%.64s': options are --name "
                           "value",
                           word);
        }
        if (!set && !conf_error_note(ret_error, words->source.mistakes)) {
            return false;
        }
    }
    return true;
}

/* Sets the options again, without noting their mistakes a second time. */
static bool
load_words_again(const struct words *words, int from,
                 struct conf_error *ret_error)
{
    struct words again = *words;
    struct buf known = { 0 };
    bool loaded;

    again.source.notes = NULL;
    again.source.save_seen = false;
    again.source.mistakes = words->source.mistakes != NULL ? &known : NULL;
    loaded = load_words(&again, from, ret_error);
    buf_free(&known);
    return loaded;
}

/* Fails for options that rewritten.conf must not set: `dir`, the directory that
 * the file itself is in, and a password that is now read from its own file. */
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
load_rewritten(const struct conf_source *source, const struct conf *given,
               struct conf_error *ret_error)
{
    char path[CONF_REWRITTEN_PATH_MAX];
    struct conf_error why;

    conf_rewritten_path(source->conf, path);
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return true;
    }
    if (conf_load_file(source->conf, path, NULL, &why) &&
        check_rewritten(source->conf, given, path, &why)) {
        return true;
    }
    conf_error_set(ret_error,
                   "%.512s (CONFIG REWRITE wrote this file: correct it, or "
                   "remove it to start without the options that it sets)",
                   why.text);
    return conf_error_note(ret_error, source->mistakes);
}

/* The command line is read twice: it may name the directory of rewritten.conf,
 * and it overrides that file. */
static bool
load_all(struct words *words, int from, struct conf *ret_given,
         struct conf_args *args, struct conf_error *ret_error)
{
    struct conf *conf = words->source.conf;

    if (args->file != NULL &&
        !conf_load_source(&words->source, args->file, ret_error)) {
        return false;
    }
    if (!load_words(words, from, ret_error) ||
        !conf_copy(conf, ret_given, ret_error)) {
        return false;
    }
    if (!load_rewritten(&words->source, ret_given, ret_error) ||
        !load_words_again(words, from, ret_error)) {
        goto fini_given;
    }
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        args->overridden[i] =
            !conf_table[i].alias && !conf_same(conf, ret_given, &conf_table[i]);
    }
    if (conf_secrets_load(conf, &args->notes, words->source.mistakes,
                          ret_error)) {
        return true;
    }

fini_given:
    conf_fini(ret_given);
    return false;
}

bool
conf_args_load(struct conf *conf, struct conf *ret_given, int argc, char **argv,
               struct conf_args *ret_args, struct conf_error *ret_error)
{
    struct conf_args args = { .action = CONF_ACTION_RUN };
    struct words words = { .argv = argv, .argc = argc };
    struct conf given;
    int from = 1;

    args.action = find_action(argc, argv, &args);
    if (args.action == CONF_ACTION_CHECK || args.action == CONF_ACTION_PING) {
        from = 2 + args.ping_words;
    } else if (args.action != CONF_ACTION_RUN) {
        *ret_args = args;
        return true;
    }
    if (argc > from && is_file(argv[from])) {
        args.file = argv[from++];
    }
    words.source = (struct conf_source){
        .conf = conf,
        .notes = &args.notes,
        .mistakes = args.action == CONF_ACTION_CHECK ? &args.mistakes : NULL,
        .where = "the command line",
    };
    if (!load_all(&words, from, &given, &args, ret_error)) {
        buf_free(&args.mistakes);
        return false;
    }
    *ret_given = given;
    *ret_args = args;
    return true;
}
