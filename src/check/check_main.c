/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the command line of bloomery-check.
 */
#include "check/check.h"

#include "base/file.h"
#include "base/mem.h"
#include "check/check_backup.h"
#include "check/check_card.h"
#include "check/check_cat.h"
#include "check/check_cut.h"
#include "check/check_file.h"
#include "check/check_outer.h"
#include "check/check_salvage.h"
#include "check/check_stream.h"
#include "check/check_verify.h"
#include "conf/conf.h"
#include "snapshot/data_files.h"
#include "snapshot/secret_file.h"
#include "tools/secrets.h"

#include <bloomery/bloom.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "Usage: bloomery-check verify [--json|--verbose] PATH...\n"
    "       bloomery-check info [--json] PATH...\n"
    "       bloomery-check cat [--resp] [--verbose] PATH\n"
    "       bloomery-check salvage [--json] PATH OUT\n"
    "       bloomery-check truncate-to [--json] TIME|POSITION PATH OUT\n"
    "       bloomery-check backup [--config FILE] [--without-secrets] PATH "
    "OUT\n"
    "       bloomery-check backup --tar [--config FILE] PATH -\n"
    "       bloomery-check restore [--json] [--keep-role] BACKUP|- DIR\n"
    "\n"
    "Looks at the snapshots and journals of bloomery-server, and makes new\n"
    "ones of what is intact. Nothing that exists is ever changed.\n"
    "\n"
    "  verify       reads everything and says what is intact, and what is not\n"
    "  info         what the files say about themselves\n"
    "  cat          the contents as commands; with --resp for redis-cli "
    "--pipe\n"
    "  salvage      writes all that is intact to OUT, a new file or directory\n"
    "  truncate-to  writes a journal that ends at a TIME (1790000000s,\n"
    "               1790000000000ms, 2026-11-20T12:00:00Z) or POSITION\n"
    "  backup       a copy of a directory that a server may be using, by\n"
    "               hard links where possible\n"
    "  restore      fills a data directory from a backup\n"
    "\n"
    "PATH is a snapshot, a base, an increment, a manifest, a journal's\n"
    "directory, or a data directory. --hash-secret-file FILE is the secret of\n"
    "keyed filters, if it is not hash-secret in the directory. --progress and\n"
    "--no-progress show and hide the progress, which is shown on a terminal.\n"
    "-h, --help; -v, --version; --print=words, for shells.\n"
    "`bloomery-check help COMMAND` says more about one of them.\n"
    "\n"
    "Exit status, of several the highest: 0 intact; 1 damaged, or something\n"
    "was lost; 2 a mistake in what was asked for, also an OUT that exists;\n"
    "3 cannot be read or written; 4 written by a newer version.\n";

/* The commands as bits, in the order of the list below. */
enum {
    VERIFY = 1U << 0,
    INFO = 1U << 1,
    CAT = 1U << 2,
    SALVAGE = 1U << 3,
    TRUNCATE_TO = 1U << 4,
    BACKUP = 1U << 5,
    RESTORE = 1U << 6,

    MAKERS = SALVAGE | TRUNCATE_TO | BACKUP | RESTORE, /* commands that write */
    CARDS = VERIFY | INFO | MAKERS /* commands that report */
};

static const struct tool_command commands[] = {
    { "verify", "PATH...",
      "Usage: bloomery-check verify [--json|--verbose] PATH...\n"
      "\n"
      "Reads everything in snapshots, journals and data directories, and says "
      "what is\n"
      "intact and what is not: for damage the offset, the key or group "
      "expected there,\n"
      "how much behind it is intact, and the command that helps. The groups of "
      "a\n"
      "journal are executed, which needs as much memory as the data. The first "
      "line is\n"
      "the verdict; what is not intact is described behind it.\n"
      "\n"
      "  --verbose                describes what is intact, too\n"
      "  --json                   one JSON object a line, for each file and "
      "directory\n"
      "  --hash-secret-file FILE  the secret of keyed filters\n"
      "\n"
      "Exit status: 0 intact, 1 damaged, 2 a mistake, 3 cannot be read, 4 "
      "written by a\n"
      "newer version.\n" },
    { "info", "PATH...",
      "Usage: bloomery-check info [--json] PATH...\n"
      "\n"
      "Prints what the files say about themselves, as verify does, but reads "
      "only the\n"
      "header of a snapshot and executes nothing.\n"
      "\n"
      "  --json  one JSON object a line, for each file and directory\n" },
    { "cat", "PATH",
      "Usage: bloomery-check cat [--resp] [--verbose] PATH\n"
      "\n"
      "Prints the contents as commands, one a line: the filters of a "
      "snapshot as\n"
      "RESTORE, the groups of a journal as their commands. Nothing is "
      "printed that\n"
      "follows damage, or that a start would cut off. The verdict goes "
      "to standard\n"
      "error first, so all is read twice.\n"
      "\n"
      "  --resp                   for `redis-cli --pipe`\n"
      "  --verbose                describes the files on standard "
      "error, too\n"
      "  --hash-secret-file FILE  the secret of keyed filters\n" },
    { "salvage", "PATH OUT",
      "Usage: bloomery-check salvage [--json|--verbose] PATH OUT\n"
      "\n"
      "Writes all that is intact to OUT, which must not exist: of a "
      "file a file, of a\n"
      "directory a directory, on which a server starts. Data behind "
      "damage is included.\n"
      "Commands that depend on lost data are left out and counted. The first "
      "line is\n"
      "the verdict.\n"
      "\n"
      "  --json                   the report as JSON, one object a line\n"
      "  --verbose                the report even if nothing was lost\n"
      "  --without-secrets        leaves out hash-secret, users and passwords\n"
      "  --hash-secret-file FILE  the secret of keyed filters\n"
      "\n"
      "Exit status: 0 nothing was lost, 1 something was, 2 a "
      "mistake, also an OUT that\n"
      "exists, 3 cannot be read or written.\n" },
    { "truncate-to", "TIME|POSITION PATH OUT",
      "Usage: bloomery-check truncate-to [--json] TIME|POSITION PATH OUT\n"
      "\n"
      "Writes a journal to OUT, which must not exist, that ends at a time or "
      "at a\n"
      "position of the log: the state of the server at that moment. It reaches "
      "back to\n"
      "the base of the journal.\n"
      "\n"
      "  --json             the report as JSON, one object a line\n"
      "  --without-secrets  leaves out hash-secret, users and passwords\n"
      "  TIME               1790000000s, 1790000000ms, 2026-11-20T12:00:00Z or "
      "with\n"
      "                     milliseconds 2026-11-20T12:00:00.250Z\n"
      "  POSITION           bytes of the log, as verify and INFO show it\n" },
    { "backup", "PATH OUT",
      "Usage: bloomery-check backup [--json] [--config FILE] PATH OUT\n"
      "       bloomery-check backup --tar [--json] [--config FILE] PATH -\n"
      "\n"
      "Makes OUT, which must not exist, a copy of a snapshot, journal or data "
      "directory\n"
      "that a server may be using. It holds every write that was acknowledged "
      "before,\n"
      "and never changes afterwards. Complete files become hard links where "
      "that is\n"
      "possible. Then OUT is verified. Settings, users and the secret are "
      "copied too;\n"
      "OUT has the mode 0700.\n"
      "\n"
      "  --config FILE            the server's configuration: copies the users "
      "and the\n"
      "                           secret that it names elsewhere, too\n"
      "  --json                   one JSON object a line, for each file and "
      "directory\n"
      "  --verbose                describes what is intact, too\n"
      "  --tar                    writes a tar archive to standard output; the "
      "report\n"
      "                           goes to standard error\n"
      "  --without-secrets        leaves out hash-secret, users and passwords\n"
      "  --hash-secret-file FILE  the secret of keyed filters\n" },
    { "restore", "BACKUP DIR",
      "Usage: bloomery-check restore [--json] [--keep-role] BACKUP|- DIR\n"
      "\n"
      "Fills DIR, which must be empty or must not exist, with copies of what "
      "the backup\n"
      "of a data directory has, and verifies it. The files belong to the owner "
      "of DIR,\n"
      "or, if it is new, to that of the backup. A server that starts there is "
      "a primary\n"
      "and holds no slots. - is an archive that backup wrote to standard "
      "output.\n"
      "\n"
      "  --json                   one JSON object a line, for each file and "
      "directory\n"
      "  --keep-role              the server has the role that was\n"
      "  --verbose                describes what is intact, too\n"
      "  --without-secrets        leaves out hash-secret, users and passwords\n"
      "  --hash-secret-file FILE  the secret of keyed filters\n" },
    { NULL, NULL, NULL },
};

static bool
is(const char *word, const char *option)
{
    return strcmp(word, option) == 0;
}

static void
cut_log(struct check *check, const char *const *words)
{
    struct check_target target;

    if (check_cut_parse(words[1], &target)) {
        check_cut(check, &target, words[2], words[3]);
        return;
    }
    tool_complain(&check->tool, CHECK_USAGE,
                  "%s: is neither a position (bytes of the log) nor a time "
                  "like 1790000000s, 1790000000000ms or "
                  "2026-11-20T12:00:00Z",
                  words[1]);
}

/* The verdict comes before the commands, so everything is read twice. */
static void
cat(struct check *check, const char *path)
{
    check->reads_only = true;
    check_verify(check, path, true);
    if (check_card_verdict(check)) {
        check_cat(check, path);
    }
}

static void
back_up(struct check *check, const char *path, const char *out)
{
    if (check->tar != is(out, CHECK_STREAM_NAME)) {
        tool_complain(&check->tool, CHECK_USAGE,
                      "backup: %s: OUT is " CHECK_STREAM_NAME
                      " with --tar, and only with it",
                      out);
    } else if (check->tar) {
        check_backup_stream(check, path);
    } else {
        check_backup(check, path, out);
    }
}

static void
run_subcommand(struct check *check, const struct tool_words *arguments)
{
    const char *const *words = arguments->words;
    const char *what = words[0];
    bool whole = is(what, "verify");
    bool judges = !is(what, "info") && !is(what, "truncate-to");

    if (judges && !check->json && !check_card_gather(check)) {
        tool_complain(&check->tool, CHECK_UNREADABLE, "not enough memory");
        return;
    }
    if (is(what, "cat")) {
        cat(check, words[1]);
    } else if (is(what, "salvage")) {
        check_salvage(check, words[1], words[2]);
    } else if (is(what, "truncate-to")) {
        cut_log(check, words);
    } else if (is(what, "backup")) {
        back_up(check, words[1], words[2]);
    } else if (is(what, "restore")) {
        check_restore(check, words[1], words[2]);
    } else {
        for (int i = 1; i < arguments->count; i++) {
            check_verify(check, words[i], whole);
        }
    }
}

/* Reads the file of --config. *secret becomes the path of the secret that the
 * file names, unless the command line names one. */
static bool
use_config(struct check *check, const struct tool_words *words,
           const char **secret)
{
    if (check->config == NULL) {
        return true;
    }
    check->conf = mem_alloc(sizeof(*check->conf));
    if (!check_outer_read(check, check->config, words->words[1], check->conf)) {
        return false;
    }
    if (*secret == NULL && check->conf->hash_secret_file[0] != '\0') {
        *secret = check->conf->hash_secret_file;
    }
    return true;
}

/* Without the secret, keyed filters are read but not hashed. */
static bool
use_secret(struct check *check, const char *path,
           const struct tool_words *words)
{
    uint8_t secret[BLOOM_SECRET_BYTES];
    char reason[128];

    if (path == NULL) {
        secrets_accept_all();
    } else if (secret_file_read(AT_FDCWD, path, secret, reason,
                                sizeof(reason)) == SECRET_FILE_READ) {
        bloom_use_secret(secret);
        explicit_bzero(secret, sizeof(secret));
    } else {
        tool_complain(&check->tool, CHECK_UNREADABLE, "%s: %s", path, reason);
        return false;
    }
    for (int i = 1; i < words->count; i++) {
        secrets_find(words->words[i]);
    }
    return true;
}

int
main(int argc, char **argv)
{
    const char *secret = NULL;
    struct check check = { .tool = { .name = "bloomery-check" } };
    const struct program_option options[] = {
        { "--json", PROGRAM_OPTION_ON, CARDS, &check.json, 0, 0 },
        { "--resp", PROGRAM_OPTION_ON, CAT, &check.resp, 0, 0 },
        { "--verbose", PROGRAM_OPTION_ON,
          VERIFY | CAT | SALVAGE | BACKUP | RESTORE, &check.verbose, 0, 0 },
        { "--tar", PROGRAM_OPTION_ON, BACKUP, &check.tar, 0, 0 },
        { "--without-secrets", PROGRAM_OPTION_ON, MAKERS,
          &check.without_secrets, 0, 0 },
        { "--config", PROGRAM_OPTION_TEXT, BACKUP, &check.config, 0, 0 },
        { "--keep-role", PROGRAM_OPTION_ON, RESTORE, &check.keep_role, 0, 0 },
        { "--hash-secret-file", PROGRAM_OPTION_TEXT,
          VERIFY | SALVAGE | BACKUP | RESTORE | CAT, &secret, 0, 0 },
        { NULL, PROGRAM_OPTION_ON, 0, NULL, 0, 0 },
    };
    const struct tool_interface interface = { commands, options, usage };
    static struct tool_words words;

    if (tool_parse(&check.tool, argc, argv, &interface, &words) &&
        use_config(&check, &words, &secret) &&
        use_secret(&check, secret, &words)) {
        (void)bloom_select_cpu(false);
        run_subcommand(&check, &words);
    }
    if (check_file_failed()) {
        tool_raise(&check.tool, CHECK_UNREADABLE);
    }
    (void)check_card_verdict(&check);
    buf_free(&check.omitted);
    if (check.conf != NULL) {
        conf_fini(check.conf);
        mem_free(check.conf);
    }
    return tool_end(&check.tool);
}
