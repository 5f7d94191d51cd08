/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hides the word after AUTH, the two after HELLO's AUTH, and the values of
 * secret options. If an option is mistyped or a word is missing, hides every
 * word that could be a password. If a command has another command as its
 * arguments, the rules of the other command apply to them.
 */
#include "access/redact.h"

#include "conf/conf.h"

enum { HELLO_WORDS_MAX = 32, CARRIED_MAX = 4 };

bool
redact_wants(const struct command *command)
{
    return command->carries > 0 || command->id == CMD_ID_AUTH ||
           command->id == CMD_ID_HELLO || command->id == CMD_ID_CONFIG_SET;
}

/* Returns whether a word of HELLO version [AUTH user password] [SETNAME name]
 * is secret. From the first unknown word on, every word counts as a secret.
 * Every word beyond HELLO_WORDS_MAX counts as a secret, too, which bounds the
 * work for each word. */
static bool
is_secret_of_hello(const struct slice *argv, size_t index)
{
    uint64_t version;
    size_t words;

    if (index < 2) {
        return false;
    }
    if (index >= HELLO_WORDS_MAX || !slice_to_u64(argv[1], &version)) {
        return true;
    }
    for (size_t i = 2;; i += 1 + words) {
        bool names = slice_is_word(argv[i], "SETNAME");

        if (!names && !slice_is_word(argv[i], "AUTH")) {
            return true;
        }
        words = names ? 1 : 2;
        if (index <= i + words) {
            return !names && index > i;
        }
    }
}

/* Returns whether a word of CONFIG SET name value [name value ...] is secret.
 * If a value is missing, names and values cannot be distinguished, and all are
 * secret. */
static bool
is_secret_of_config(const struct slice *argv, size_t argc, size_t index)
{
    const struct conf_row *row;

    if (index < 3 || (argc % 2 == 0 && index % 2 == 0)) {
        return false;
    }
    row = conf_find(argv[index - 1]);
    return argc % 2 != 0 || row == NULL || row->type == CONF_SECRET;
}

/* Steps to the innermost command that carries word *index. False: that command
 * is unknown, since a name is mistyped, or is too far inside. */
static bool
find_carried(const struct command **command, const struct slice **argv,
             size_t *argc, size_t *index)
{
    unsigned words = 1;

    for (unsigned depth = 0; (*command)->carries > 0; depth++) {
        size_t from = (*command)->carries;

        if (*index < from) {
            return true;
        }
        if (depth == CARRIED_MAX) {
            return false;
        }
        *argv += from;
        *argc -= from;
        *index -= from;
        *command = command_resolve(*argv, *argc, &words);
        if (*index < words) {
            return *command != NULL || *index == 0;
        }
        if (*command == NULL) {
            return false;
        }
    }
    return true;
}

struct slice
redact_word(const struct command *command, const struct slice *argv,
            size_t argc, size_t index)
{
    struct slice word = argv[index];
    bool secret = false;

    if (command->carries > 0 && !find_carried(&command, &argv, &argc, &index)) {
        secret = true;
    } else if (command == NULL) {
        secret = false; /* an unknown command's name */
    } else if (command->id == CMD_ID_AUTH) {
        secret = index > 0;
    } else if (command->id == CMD_ID_HELLO) {
        secret = is_secret_of_hello(argv, index);
    } else if (command->id == CMD_ID_CONFIG_SET) {
        secret = is_secret_of_config(argv, argc, index);
    } else if (command->id == CMD_ID_ACL_SETUSER) {
        secret = index > 1;
    }
    return secret ? slice_lit("(redacted)") : word;
}
