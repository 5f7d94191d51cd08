/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/program_option.h"

#include "base/num.h"

const struct program_option *
program_option_find(const struct program_option *list, const char *word,
                    const char **ret_value)
{
    *ret_value = NULL;
    for (; list->name != NULL; list++) {
        size_t len = strlen(list->name);

        if (strncmp(word, list->name, len) != 0 ||
            (word[len] != '\0' && word[len] != '=')) {
            continue;
        }
        *ret_value = word[len] == '=' ? word + len + 1 : NULL;
        break;
    }
    return list;
}

bool
program_option_set(const struct program_option *option, const char *value)
{
    uint64_t number = 0;
    bool ok = true;

    switch (option->kind) {
    case PROGRAM_OPTION_ON:
        *(bool *)option->to = true;
        return true;
    case PROGRAM_OPTION_TEXT:
        *(const char **)option->to = value;
        return true;
    case PROGRAM_OPTION_NUMBER:
        ok = slice_to_u64(slice_of(value), &number);
        break;
    case PROGRAM_OPTION_BYTES:
        ok = num_parse_bytes(slice_of(value), &number);
        break;
    }
    if (!ok || number < option->min || number > option->max) {
        return false;
    }
    *(uint64_t *)option->to = number;
    return true;
}
