/* SPDX-License-Identifier: BSD-3-Clause
 *
 * restore from standard input: unpacks what check_stream.h writes.
 */
#pragma once

#include "check/check_make.h"

/* Fills the directory `out`, which exists, from standard input. Accepts only
 * names of the list of files (snapshot/data_files.h), of snapshots, and of one
 * journal. False: the reason was printed, and the caller removes what was made.
 */
bool check_unpack(struct check_made *made, const char *out);
