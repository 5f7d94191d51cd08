/* SPDX-License-Identifier: BSD-3-Clause */
#include "access/peer_names.h"

#include <stdlib.h>

static const char *const names[] = {
#define PEER_NAME(name) name,
#include "tbl/peer_names.def"
#undef PEER_NAME
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* Compares as strcmp does, but folds the letters of the first. */
static int
compare(const void *wanted, const void *at)
{
    const struct slice *word = wanted;
    const char *name = *(const char *const *)at;

    for (size_t i = 0; i < word->len; i++) {
        int order =
            (unsigned char)slice_fold(word->data[i]) - (unsigned char)name[i];

        if (order != 0 || name[i] == '\0') {
            return order != 0 ? order : 1;
        }
    }
    return name[word->len] == '\0' ? 0 : -1;
}

static const char *const *
find_names(struct slice name)
{
    return bsearch(&name, names, NAMES, sizeof(names[0]), compare);
}

bool
peer_names_have(struct slice name)
{
    const char *bar = name.len > 0 ? memchr(name.data, '|', name.len) : NULL;
    const char *const *found = find_names(name);
    size_t len;

    if (found != NULL || bar == NULL || bar + 1 == name.data + name.len) {
        return found != NULL;
    }
    len = (size_t)(bar - name.data);
    for (size_t i = len + 1; i < name.len; i++) {
        /* In a file of users, each word is a rule. */
        if (name.data[i] == '|' || (unsigned char)name.data[i] <= ' ') {
            return false;
        }
    }
    found = find_names((struct slice){ name.data, len });
    return found != NULL &&
           (found + 1 == names + NAMES || strncmp(found[1], *found, len) != 0 ||
            found[1][len] != '|');
}
