/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of the server's files (tbl/files.def): those in dir, and those
 * elsewhere that options name. Pure.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdio.h>

/* Where the name comes from. */
enum file_place {
    IN_DIR,           /* `name` is the file's name in dir */
    IN_DIR_BY_OPTION, /* the option `name` has a name in dir */
    BY_OPTION         /* the option `name` has a path, anywhere */
};

/* What happens to the file when dir was lost while the server runs. */
enum file_again {
    AGAIN_NEVER,
    AGAIN_AT_ONCE,   /* it is written again once dir is there */
    AGAIN_JOURNAL,   /* a new base is written; replies wait for it */
    AGAIN_SNAPSHOT,  /* a snapshot is written, if there are rules of save */
    AGAIN_WITH_DATA, /* it is written again once the data is on the disk */
    FILE_AGAINS
};

/* What a command of bloomery-check does with the file. */
enum file_deed {
    DEED_LEAVE,
    DEED_COPY,
    DEED_DATA,   /* copies what is intact, up to the place that was asked for */
    DEED_SECRET, /* copies it, but not with --without-secrets */
    DEED_OPTIONS, /* copies it; with --without-secrets, without passwords */
    DEED_ROLE,    /* prints the role in it; --keep-role copies it */
    DEED_KNOWN,   /* copies it, with no slot marked as held */
    DEED_OUTER,   /* with --config, as DEED_SECRET */
    DEED_NAMED,   /* with --config, says that it is not included */
    FILE_DEEDS
};

enum file_id {
#define FILE(id, ...) FILE_##id,
#include "tbl/files.def"
#undef FILE
    FILE_ID_COUNT
};

struct data_file {
    const char *name;
    enum file_place place;
    enum file_again again;
    enum file_deed backup, restore, salvage, cut;
    const char *text; /* what writes it */
};

extern const struct data_file data_files[FILE_ID_COUNT];

/* Returns the row of a name in dir, or FILE_ID_COUNT. Names that options give
 * are not found. */
enum file_id data_files_find(const char *name);

/* Prints the list as a Markdown table. */
void data_files_print(FILE *to);
