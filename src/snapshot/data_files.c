/* SPDX-License-Identifier: BSD-3-Clause */
#include "snapshot/data_files.h"

#include <string.h>

const struct data_file data_files[FILE_ID_COUNT] = {
#define FILE(id, ...) [FILE_##id] = { __VA_ARGS__ },
#include "tbl/files.def"
#undef FILE
};

/* Returns whether the name fits the pattern, in which each * stands for one
 * byte or more. */
static bool
fits(const char *pattern, const char *name)
{
    const char *star = strchr(pattern, '*');
    size_t len;

    if (star == NULL) {
        return strcmp(pattern, name) == 0;
    }
    len = (size_t)(star - pattern);
    if (strncmp(pattern, name, len) != 0) {
        return false;
    }
    for (const char *rest = name + len; *rest != '\0'; rest++) {
        if (fits(star + 1, rest + 1)) {
            return true;
        }
    }
    return false;
}

enum file_id
data_files_find(const char *name)
{
    for (unsigned id = 0; id < FILE_ID_COUNT; id++) {
        if (data_files[id].place == IN_DIR && fits(data_files[id].name, name)) {
            return (enum file_id)id;
        }
    }
    return FILE_ID_COUNT;
}

/* ---- the page ------------------------------------------------------------ */

static const char *
again_text(enum file_again again)
{
    static const char *const texts[FILE_AGAINS] = {
        [AGAIN_NEVER] = "no",
        [AGAIN_AT_ONCE] = "at once",
        [AGAIN_JOURNAL] = "a new base, replies wait for it",
        [AGAIN_SNAPSHOT] = "with rules of `save`",
        [AGAIN_WITH_DATA] = "after the data",
    };

    return texts[again];
}

static const char *
deed_text(enum file_deed deed)
{
    static const char *const texts[FILE_DEEDS] = {
        [DEED_LEAVE] = "-",
        [DEED_COPY] = "copied",
        [DEED_DATA] = "what is intact",
        [DEED_SECRET] = "copied (s)",
        [DEED_OPTIONS] = "copied (p)",
        [DEED_ROLE] = "with `--keep-role`",
        [DEED_KNOWN] = "holds nothing",
        [DEED_OUTER] = "with `--config` (s)",
        [DEED_NAMED] = "named with `--config`",
    };

    return texts[deed];
}

void
data_files_print(FILE *to)
{
    static const char *const places[] = { [IN_DIR] = "",
                                          [IN_DIR_BY_OPTION] = "the name in ",
                                          [BY_OPTION] = "the path in " };

    (void)fputs("| file | written by | again when dir was lost | backup | "
                "restore | salvage | truncate-to |\n"
                "|---|---|---|---|---|---|---|\n",
                to);
    for (unsigned id = 0; id < FILE_ID_COUNT; id++) {
        const struct data_file *file = &data_files[id];

        (void)fprintf(to, "| %s`%s` | %s | %s | %s | %s | %s | %s |\n",
                      places[file->place], file->name, file->text,
                      again_text(file->again), deed_text(file->backup),
                      deed_text(file->restore), deed_text(file->salvage),
                      deed_text(file->cut));
    }
}
