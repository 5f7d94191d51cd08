/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the command line of bloomery-load.
 */
#include "load/load_copy.h"
#include "load/load_export.h"
#include "load/load_file.h"
#include "load/load_follow.h"
#include "load/load_items.h"
#include "load/load_secrets.h"

#include <signal.h>

static const char usage[] =
    "Usage: bloomery-load rdb [OPTION]... FILE\n"
    "       bloomery-load aof [OPTION]... PATH\n"
    "       bloomery-load server [OPTION]... ADDRESS\n"
    "       bloomery-load items [OPTION]... KEY [FILE]...\n"
    "       bloomery-load export --for PRODUCT [OPTION]... SOURCE FILE\n"
    "       bloomery-load secrets [OPTION]... SOURCE DIR\n"
    "\n"
    "Brings filters and items from elsewhere into a running server, and "
    "filters\n"
    "out of it.\n"
    "\n"
    "  rdb     the filters of RedisBloom and valkey-bloom in an RDB file\n"
    "  aof     the same of an AOF, and the changes that follow: a file, with\n"
    "          or without an RDB in front, or the directory of Redis 7\n"
    "  server  the same of a running server; with --follow also all that\n"
    "          changes there, until it is told to stop\n"
    "  items   adds the lines of the files, or of standard input, to the\n"
    "          filter KEY, and makes the filter if it is missing\n"
    "  export  writes the filters of a running server into a new file, as\n"
    "          commands for `redis-cli --pipe`. SOURCE is its ADDRESS; or a\n"
    "          snapshot, journal or data directory, which needs no server\n"
    "  secrets copies the secrets of keyed filters into the data directory\n"
    "          DIR, whose server reads them at SIGHUP\n"
    "\n"
    "The server:\n"
    "  --to ADDRESS          HOST:PORT or the path of a socket; the default\n"
    "                        is 127.0.0.1:7379\n"
    "  --user NAME, --password-file FILE   how to log in\n"
    "  --tls                 speak TLS; --from-tls: to the source. --cacert,\n"
    "                        --cert and --key FILE are for both; without\n"
    "                        --cacert, the authorities of the machine count\n"
    "  --timeout SECONDS     without a reply that is due; the default is 60\n"
    "  --max-value SIZE      longest item and reply; the default is 512mb\n"
    "  --existing stop|skip|replace   what happens to a filter whose key the\n"
    "                        server has already; the default is stop\n"
    "  --db N                this database only; the default is all. Not for\n"
    "                        items, which take no --existing either\n"
    "\n"
    "The source of bloomery-load server and export:\n"
    "  --from-user NAME, --from-password-file FILE   how to log in there\n"
    "  --scandump            never use DUMP\n"
    "  --source-version VERSION   of Redis or RedisBloom, where the source\n"
    "                        does not tell\n"
    "  --follow              becomes a replica, and applies the changes. A\n"
    "                        SIGTERM or SIGINT ends it as soon as it has all\n"
    "                        that the source did before the signal\n"
    "  --until-idle SECONDS  ends --follow when there is no lag, and for so\n"
    "                        long no change of a filter\n"
    "Without --follow each filter is copied as it is at one moment, and what\n"
    "clients add afterwards is missing. With --follow nothing is missing that\n"
    "the source did before the end, if the exit status is 0.\n"
    "\n"
    "Export:\n"
    "  --for redisbloom|valkeybloom|bloomery   who shall read the commands. "
    "The\n"
    "                        first two get the filters of their own layout\n"
    "                        only, a Bloomery gets all\n"
    "\n"
    "Items:\n"
    "  --error RATE          of a new filter; the default is 0.01\n"
    "  --capacity N|auto     of a new filter; auto, the default, counts the\n"
    "                        items first\n"
    "  --nul                 items end with NUL instead of LF\n"
    "  --csv COLUMN          items are a column of CSV: its number from 1, or\n"
    "                        its name in the first record\n"
    "  --delimiter C         of CSV; the default is a comma, \\t is a tab\n"
    "  --connections N       the default is 4\n"
    "\n"
    "--progress and --no-progress show and hide the progress, which is shown\n"
    "on a terminal; elsewhere a line appears every ten seconds.\n"
    "-h, --help; -v, --version; --print=words, for shells.\n"
    "`bloomery-load help COMMAND` is about one of them alone.\n"
    "\n"
    "Exit status, of several the highest: 0 done; 1 something is missing, and\n"
    "the report says what; 2 a mistake in what was asked for; 3 a file or a\n"
    "server failed.\n";

/* The options of all commands that write to a server. */
#define SERVER_OPTIONS                                                         \
    "The server:\n"                                                            \
    "  --to ADDRESS                        HOST:PORT or the path of a "        \
    "socket; the\n"                                                            \
    "                                      default is 127.0.0.1:7379\n"        \
    "  --user NAME, --password-file FILE   how to log in\n"                    \
    "  --tls, --cacert FILE, --cert FILE, --key FILE   TLS\n"                  \
    "  --timeout SECONDS                   without a reply that is due (60)\n" \
    "  --max-value SIZE                    longest item and reply (512mb)\n"

/* The options of commands that bring whole filters, and of commands that make
 * filters as a source does. */
#define FILTER_OPTIONS                                                         \
    "  --existing stop|skip|replace        what happens to a filter whose "    \
    "key the\n"                                                                \
    "                                      server has already (stop)\n"        \
    "  --db N                              this database only (all)\n"
#define SOURCE_OPTIONS                                                         \
    "  --source-version VERSION            of Redis or RedisBloom, where the " \
    "source\n"                                                                 \
    "                                      does not tell: 8 stores rates "     \
    "above 0.25\n"                                                             \
    "                                      as 0.25\n"

/* The commands as bits, in the order of the list below, and the sets of them
 * that take an option. */
enum {
    RDB = 1U << 0,
    AOF = 1U << 1,
    SERVER = 1U << 2,
    ITEMS = 1U << 3,
    EXPORT = 1U << 4,
    SECRETS = 1U << 5,

    FILTERS_IN = RDB | AOF | SERVER,  /* commands that bring whole filters */
    FROM = SERVER | EXPORT | SECRETS, /* commands with a source */
    TO = FILTERS_IN | ITEMS           /* commands with a server */
};

static const struct tool_command commands[] = {
    { "rdb", "FILE",
      "Usage: bloomery-load rdb [OPTION]... FILE\n"
      "\n"
      "Restores the filters of RedisBloom and valkey-bloom that an RDB file "
      "has, with\n"
      "their times to live. Everything else is skipped and counted.\n"
      "\n" SERVER_OPTIONS FILTER_OPTIONS "\n"
      "Exit status: 0 done, 1 something is missing, 2 a mistake, 3 a file or a "
      "server\n"
      "failed.\n" },
    { "aof", "PATH",
      "Usage: bloomery-load aof [OPTION]... PATH\n"
      "\n"
      "Restores the filters of an AOF and applies the changes that follow: a "
      "file, with\n"
      "or without an RDB in front, the directory of Redis 7, or its manifest.\n"
      "\n" SERVER_OPTIONS FILTER_OPTIONS SOURCE_OPTIONS
      "  --error RATE, --capacity N          of filters that the source made "
      "by its\n"
      "                                      defaults (0.01, 100)\n"
      "\n"
      "Exit status: 0 done, 1 something is missing, 2 a mistake, 3 a file or a "
      "server\n"
      "failed.\n" },
    { "server", "ADDRESS",
      "Usage: bloomery-load server [OPTION]... ADDRESS\n"
      "\n"
      "Copies the filters of a running server, HOST:PORT or the path of a "
      "socket. With\n"
      "--follow it becomes a replica of that server and applies its changes, "
      "until a\n"
      "SIGTERM or SIGINT; then it ends as soon as it has everything up to the "
      "signal.\n"
      "\n"
      "The source:\n"
      "  --follow                            copy, then apply the changes\n"
      "  --until-idle SECONDS                end --follow when there is no "
      "lag, and for\n"
      "                                      so long no change of a filter\n"
      "  --scandump                          never use DUMP; not with "
      "--follow\n"
      "  --from-user NAME, --from-password-file FILE   how to log in\n"
      "  --from-tls                          speak TLS\n"
      "\n" SERVER_OPTIONS FILTER_OPTIONS SOURCE_OPTIONS
      "  --error RATE, --capacity N          of filters that the source made "
      "by its\n"
      "                                      defaults (what it tells)\n"
      "\n"
      "Exit status: 0 done, and nothing is missing; 1 something is, 2 a "
      "mistake, 3 a\n"
      "server failed.\n" },
    { "items", "KEY [FILE]...",
      "Usage: bloomery-load items [OPTION]... KEY [FILE]...\n"
      "\n"
      "Adds the lines of the files, or of standard input, to the filter KEY, "
      "and makes\n"
      "the filter if it is missing. To repeat it is safe.\n"
      "\n"
      "  --error RATE                        of a new filter (0.01)\n"
      "  --capacity N|auto                   of a new filter; auto, the "
      "default, counts\n"
      "                                      the items first\n"
      "  --nul                               items end with NUL instead of LF\n"
      "  --csv COLUMN                        items are a column of CSV: its "
      "number from\n"
      "                                      1, or its name in the first "
      "record\n"
      "  --delimiter C                       of CSV (a comma; \\t is a tab)\n"
      "  --connections N                     4, at most 64\n"
      "\n" SERVER_OPTIONS "\n"
      "Exit status: 0 done, 1 something is missing, 2 a mistake, 3 a file or a "
      "server\n"
      "failed.\n" },
    { "export", "SOURCE FILE",
      "Usage: bloomery-load export --for PRODUCT [OPTION]... SOURCE FILE\n"
      "\n"
      "Writes filters into a new file, as commands for `redis-cli --pipe`. "
      "SOURCE is\n"
      "the address of a running server; or a snapshot, a journal or a data "
      "directory,\n"
      "which needs no server.\n"
      "\n"
      "  --for redisbloom|valkeybloom|bloomery   who shall read the commands. "
      "The first\n"
      "                                      two get the filters of their own "
      "layout\n"
      "  --db N                              this database only (all)\n"
      "  --scandump                          never use DUMP\n"
      "  --from-user NAME, --from-password-file FILE   how to log in\n"
      "  --from-tls, --cacert FILE, --cert FILE, --key FILE   TLS\n"
      "  --timeout SECONDS                   without a reply that is due (60)\n"
      "  --max-value SIZE                    longest reply (512mb)\n"
      "\n"
      "Exit status: 0 done, 1 filters were left out, and the report says "
      "which; 2 a\n"
      "mistake, 3 a file or a server failed.\n" },
    { "secrets", "SOURCE DIR",
      "Usage: bloomery-load secrets [OPTION]... SOURCE DIR\n"
      "\n"
      "Copies the secrets of keyed filters from SOURCE, the address of a "
      "running server\n"
      "or a data directory, into the folder hash-secrets of the data directory "
      "DIR.\n"
      "The server of DIR reads them at SIGHUP, and then takes the filters. A "
      "server\n"
      "gives its secrets as it gives them to a replica: to a user with PSYNC "
      "and all\n"
      "keys, if it has logged in, has shown a certificate or is on the same "
      "machine.\n"
      "\n"
      "  --from-user NAME, --from-password-file FILE   how to log in\n"
      "  --from-tls, --cacert FILE, --cert FILE, --key FILE   TLS\n"
      "  --timeout SECONDS                   without a reply that is due (60)\n"
      "\n"
      "Exit status: 0 done, 2 a mistake, 3 a file or a server failed.\n" },
    { NULL, NULL, NULL },
};

/* Sets *ret_at to the place of a word in a list. */
static bool
find_word(struct load *load, const char *option, const char *word,
          const char *const *words, int count, int *ret_at)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret_at = i;
            return true;
        }
    }
    tool_complain(&load->tool, LOAD_USAGE, "%s: is %s, %s or %s", option,
                  words[0], words[1], words[2]);
    return false;
}

static bool
set_existing(struct load *load, const char *word)
{
    static const char *const words[] = { "stop", "skip", "replace" };
    int at = 0;
    bool ok = find_word(load, "--existing", word, words, 3, &at);

    load->existing = (enum load_existing)at;
    return ok;
}

static bool
set_product(struct load *load, const char *word)
{
    static const char *const words[] = { "bloomery", "redisbloom",
                                         "valkeybloom" };
    int at = 0;
    bool ok = find_word(load, "--for", word, words, 3, &at);

    load->product = (enum load_product)at;
    return ok;
}

static void export(struct load *load, const char *product, const char *address,
                   const char *path)
{
    load->from.address = address;
    if (set_product(load, product)) {
        load_export(load, path);
    }
}

static void
serve(struct load *load, const char *address)
{
    load->from.address = address;
    if ((load->follow && load->scandump) ||
        (!load->follow && load->until_idle_s > 0)) {
        tool_complain(&load->tool, LOAD_USAGE,
                      "--scandump does not go with --follow, and --until-idle "
                      "needs it");
    } else if (load->follow) {
        load_follow(load);
    } else {
        load_copy(load);
    }
}

static void
run_subcommand(struct load *load, const struct tool_words *words,
               const char *product)
{
    const char *what = words->words[0];

    if (load->to.address == NULL) {
        load->to.address = LOAD_DEFAULT_ADDRESS;
    }
    if (strcmp(what, "items") == 0) {
        load_items(load, words->words[1], words->words + 2,
                   (size_t)words->count - 2);
    } else if (strcmp(what, "rdb") == 0) {
        load_rdb(load, words->words[1]);
    } else if (strcmp(what, "server") == 0) {
        serve(load, words->words[1]);
    } else if (strcmp(what, "aof") == 0) {
        load_aof(load, words->words[1]);
    } else if (strcmp(what, "export") == 0) {
        export(load, product, words->words[1], words->words[2]);
    } else {
        load->from.address = words->words[1];
        load_secrets(load, words->words[2]);
    }
}

/* Reads the certificates. Without --cacert, the authorities are those of the
 * machine. */
static bool
set_tls(struct load *load, const struct tls_settings *settings)
{
    char reason[TLS_REASON_MAX];

    if (!load->to.uses_tls && !load->from.uses_tls) {
        return true;
    }
    if (!tls_contexts_load(&load->tls, settings, reason)) {
        tool_complain(&load->tool, LOAD_UNREADABLE, "%s", reason);
        return false;
    }
    return true;
}

static const struct load defaults = {
    .tool = { .name = "bloomery-load", .lines = true },
    .timeout_s = 60,
    .value_bytes = UINT64_C(512) << 20,
    .db = LOAD_DB_ALL,
    .connections = 4,
};

int
main(int argc, char **argv)
{
    struct load load = defaults;
    struct tls_settings tls = tls_settings_of_client;
    const char *existing = "stop";
    const char *product = "";
    const struct program_option options[] = {
        { "--tls", PROGRAM_OPTION_ON, TO, &load.to.uses_tls, 0, 0 },
        { "--from-tls", PROGRAM_OPTION_ON, FROM, &load.from.uses_tls, 0, 0 },
        { "--cacert", PROGRAM_OPTION_TEXT, 0, &tls.ca_cert_file, 0, 0 },
        { "--cert", PROGRAM_OPTION_TEXT, 0, &tls.client_cert_file, 0, 0 },
        { "--key", PROGRAM_OPTION_TEXT, 0, &tls.client_key_file, 0, 0 },
        { "--from-user", PROGRAM_OPTION_TEXT, FROM, &load.from.user, 0, 0 },
        { "--from-password-file", PROGRAM_OPTION_TEXT, FROM,
          &load.from.password_file, 0, 0 },
        { "--db", PROGRAM_OPTION_NUMBER, FILTERS_IN | EXPORT, &load.db, 0,
          1023 },
        { "--scandump", PROGRAM_OPTION_ON, SERVER | EXPORT, &load.scandump, 0,
          0 },
        { "--follow", PROGRAM_OPTION_ON, SERVER, &load.follow, 0, 0 },
        { "--until-idle", PROGRAM_OPTION_NUMBER, SERVER, &load.until_idle_s, 1,
          86400 },
        { "--for", PROGRAM_OPTION_TEXT, EXPORT, &product, 0, 0 },
        { "--existing", PROGRAM_OPTION_TEXT, FILTERS_IN, &existing, 0, 0 },
        { "--to", PROGRAM_OPTION_TEXT, TO, &load.to.address, 0, 0 },
        { "--user", PROGRAM_OPTION_TEXT, TO, &load.to.user, 0, 0 },
        { "--password-file", PROGRAM_OPTION_TEXT, TO, &load.to.password_file, 0,
          0 },
        { "--timeout", PROGRAM_OPTION_NUMBER, 0, &load.timeout_s, 1, 86400 },
        { "--max-value", PROGRAM_OPTION_BYTES, TO | EXPORT, &load.value_bytes,
          1024, UINT64_C(1) << 40 },
        { "--source-version", PROGRAM_OPTION_TEXT, AOF | SERVER,
          &load.source_version, 0, 0 },
        { "--error", PROGRAM_OPTION_TEXT, AOF | SERVER | ITEMS,
          &load.error_rate, 0, 0 },
        { "--capacity", PROGRAM_OPTION_TEXT, AOF | SERVER | ITEMS,
          &load.capacity, 0, 0 },
        { "--csv", PROGRAM_OPTION_TEXT, ITEMS, &load.csv, 0, 0 },
        { "--delimiter", PROGRAM_OPTION_TEXT, ITEMS, &load.delimiter, 0, 0 },
        { "--nul", PROGRAM_OPTION_ON, ITEMS, &load.nul, 0, 0 },
        { "--connections", PROGRAM_OPTION_NUMBER, ITEMS, &load.connections, 1,
          64 },
        { NULL, PROGRAM_OPTION_ON, 0, NULL, 0, 0 },
    };
    const struct tool_interface interface = { commands, options, usage };
    static struct tool_words words;

    tls_contexts_init(&load.tls);
    (void)signal(SIGPIPE, SIG_IGN);
    if (tool_parse(&load.tool, argc, argv, &interface, &words) &&
        set_existing(&load, existing) && set_tls(&load, &tls)) {
        run_subcommand(&load, &words, product);
    }
    tls_contexts_fini(&load.tls);
    return tool_end(&load.tool);
}
