/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A line of redis.conf is a name and words, like an option on the command line,
 * so both go through conf_apply.h. Where the defaults of Redis and of this
 * server differ, those of Redis are set first.
 */
#include "conf/conf_convert.h"

#include "base/mem.h"
#include "conf/conf_apply.h"
#include "conf/conf_load.h"
#include "conf/conf_rewrite.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>

enum { DEPTH_MAX = 16, WORDS_MAX = 256 };

struct converting {
    struct conf_source source;
    struct buf *users;
    struct buf store; /* of the words of a line */
    struct slice words[WORDS_MAX];
    struct conf_error *error;
    unsigned depth;
    bool has_port;
};

static bool convert_file(struct converting *to, const char *path);

/* As in Redis, a pattern may match no file, but a file that is named must
 * exist. */
static bool
convert_included(struct converting *to, struct slice pattern)
{
    char *text = mem_copy_text(pattern);
    glob_t found;
    int error = glob(text, 0, NULL, &found);
    bool done = true;

    if (error != 0) {
        bool is_pattern = strpbrk(text, "*?[") != NULL;

        done = (error == GLOB_NOMATCH && is_pattern) || convert_file(to, text);
        mem_free(text);
        return done;
    }
    for (size_t i = 0; done && i < found.gl_pathc; i++) {
        done = convert_file(to, found.gl_pathv[i]);
    }
    globfree(&found);
    mem_free(text);
    return done;
}

/* A comment may have quotes that are not closed. */
static bool
is_comment(struct slice line)
{
    struct slice word;

    return !slice_next_word(&line, &word) || word.data[0] == '#';
}

static bool
convert_line(struct converting *to, struct slice line, struct conf_error *why)
{
    size_t count;

    if (is_comment(line)) {
        return true;
    }
    to->words[0] = slice_lit("");
    if (!conf_apply_split(line, &to->store, to->words, WORDS_MAX, &count)) {
        conf_error_set(why, "unbalanced quotes, or too many words");
        return false;
    }
    if (slice_is_word(to->words[0], "user")) {
        for (size_t i = 0; i < count; i++) {
            buf_append_slice(to->users, slice_of(i > 0 ? " " : ""));
            buf_append_slice(to->users, to->words[i]);
        }
        buf_append(to->users, "\n", 1);
        return true;
    }
    to->has_port = to->has_port || slice_is_word(to->words[0], "port");
    return conf_apply_words(&to->source, to->words[0], to->words + 1, count - 1,
                            why);
}

/* Returns the pattern of an include line; empty: it is none. */
static struct slice
include_of(struct slice line)
{
    struct slice word;

    if (!slice_next_word(&line, &word) || !slice_is_word(word, "include") ||
        !slice_next_word(&line, &word)) {
        return slice_lit("");
    }
    if (word.len > 2 && word.data[0] == '"' && word.data[word.len - 1] == '"') {
        return (struct slice){ word.data + 1, word.len - 2 };
    }
    return word;
}

static bool
convert_lines(struct converting *to, FILE *file, const char *path)
{
    char *line = mem_alloc(CONF_LINE_MAX);
    struct conf_error where, why;
    bool done = true;

    for (int number = 1; done && fgets(line, CONF_LINE_MAX, file) != NULL;
         number++) {
        struct slice text = slice_of(line);
        struct slice included;

        if (text.len + 1 == CONF_LINE_MAX) {
            conf_error_set(to->error, "%.256s:%d: the line is too long", path,
                           number);
            done = false;
            break;
        }
        while (text.len > 0 && (unsigned char)line[text.len - 1] <= ' ') {
            text.len--; /* the end of the line */
        }
        included = include_of(text);
        if (included.len > 0) {
            done = convert_included(to, included);
            continue;
        }
        conf_error_set(&where, "%s:%d", path, number);
        to->source.where = where.text;
        done = convert_line(to, text, &why);
        if (!done) {
            conf_error_set(to->error, "%.256s: %.*s: %.300s", where.text,
                           slice_shown(to->words[0]),
                           to->words[0].data != NULL ? to->words[0].data : "",
                           why.text);
        }
    }
    mem_free(line);
    return done;
}

static bool
convert_file(struct converting *to, const char *path)
{
    FILE *file = to->depth < DEPTH_MAX ? fopen(path, "re") : NULL;
    bool done;

    if (file == NULL) {
        conf_error_set(to->error, "%.256s: %s", path,
                       to->depth < DEPTH_MAX ? strerror(errno)
                                             : "too many files include files");
        return false;
    }
    to->depth++;
    done = convert_lines(to, file, path);
    to->depth--;
    (void)fclose(file);
    return done;
}

/* Sets aclfile to the file that gets the users of the user lines. Fails if the
 * configuration names an aclfile already: Redis refuses both together, too. */
static bool
set_aclfile(struct conf *conf, const char *aclfile,
            struct conf_error *ret_error)
{
    if (conf->aclfile[0] != '\0') {
        conf_error_set(ret_error,
                       "there are user lines and an aclfile: move the lines "
                       "to %.256s",
                       conf->aclfile);
        return false;
    }
    return conf_set(conf, conf_find(slice_lit("aclfile")), slice_of(aclfile),
                    ret_error);
}

/* Sets port to 6379, the default of Redis; this server has another default. */
static bool
set_other_defaults(struct conf *conf, struct conf_error *ret_error)
{
    return conf_set(conf, conf_find(slice_lit("port")), slice_lit("6379"),
                    ret_error);
}

static void
put_notes(const struct conf_notes *notes, struct buf *ret_text)
{
    struct slice rest = slice_of(notes->text), line;

    while (conf_next_note(&rest, &line)) {
        buf_append_slice(ret_text, slice_lit("# "));
        buf_append_slice(ret_text, line);
        buf_append(ret_text, "\n", 1);
    }
}

bool
conf_convert(const char *path, const char *aclfile, struct buf *ret_text,
             struct buf *ret_users, struct conf_error *ret_error)
{
    struct conf_notes notes = { { 0 } };
    struct conf conf, defaults;
    struct converting *to = mem_zalloc(sizeof(*to));
    bool done;

    conf_init(&conf);
    conf_init(&defaults);
    to->source = (struct conf_source){ .conf = &conf, .notes = &notes };
    to->users = ret_users;
    to->error = ret_error;
    done = set_other_defaults(&conf, ret_error) && convert_file(to, path);
    if (done && ret_users->len > 0) {
        done = set_aclfile(&conf, aclfile, ret_error);
    }
    if (done) {
        buf_printf(ret_text, "# Made from %.512s.\n", path);
        if (!to->has_port) {
            buf_append_slice(ret_text,
                             slice_lit("# It names no port, and Redis then "
                                       "listens at 6379.\n"));
        }
        put_notes(&notes, ret_text);
        done = conf_rewrite_all(&conf, &defaults, ret_text, ret_error);
    }
    buf_wipe(&to->store);
    mem_free(to);
    conf_fini(&conf);
    conf_fini(&defaults);
    return done;
}
