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
    IN_DIR,           /* it is a name in dir */
    IN_DIR_BY_OPTION, /* the option of this name has a name in dir */
    BY_OPTION         /* the option of this name has a path, anywhere */
};

/* What happens to the file when dir was lost while the server runs. */
enum file_again {
    AGAIN_NEVER,
    AGAIN_AT_ONCE,   /* it is written again once dir is there */
    AGAIN_JOURNAL,   /* a new base is written; replies wait for it */
    AGAIN_SNAPSHOT,  /* if there are rules of save */
    AGAIN_WITH_DATA, /* it is written again once the data is on the disk */
    FILE_AGAINS
};

/* What a command of bloomery-check does with the file. */
enum file_deed {
    DEED_LEAVE,
    DEED_COPY,
    DEED_DATA,    /* what is intact of it, up to where it was asked to */
    DEED_SECRET,  /* a copy; none with --without-secrets */
    DEED_OPTIONS, /* a copy; without passwords with --without-secrets */
    DEED_ROLE,    /* prints what it says; --keep-role copies it */
    DEED_KNOWN,   /* a copy that holds no slots */
    DEED_OUTER,   /* with --config a copy, as of DEED_SECRET */
    DEED_NAMED,   /* with --config said not to be included */
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
    const char *text; /* who writes it */
};

extern const struct data_file data_files[FILE_ID_COUNT];

/* Returns the row of a name in dir, or FILE_ID_COUNT. Names that come from
 * options are no names here. */
enum file_id data_files_find(const char *name);

/* Prints the list as a Markdown table. */
void data_files_print(FILE *to);
