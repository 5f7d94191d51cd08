/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The line is checked by writing it again, so there is one place that knows
 * its form.
 */
#define XXH_INLINE_ALL
#include "base/checksum.h"

#include "base/hex.h"

#include <xxhash.h>

static const char word[] = "checksum ";

_Static_assert(CHECKSUM_LINE_BYTES == sizeof(word) - 1 + HEX_U64_CHARS + 1,
               "the word, the digits and LF");

static void
put_line(char *to, const char *text, size_t len)
{
    memcpy(to, word, sizeof(word) - 1);
    hex_put_u64(to + sizeof(word) - 1, XXH3_64bits(text, len));
    to[CHECKSUM_LINE_BYTES - 1] = '\n';
}

size_t
checksum_append(char *text, size_t len)
{
    put_line(text + len, text, len);
    return len + CHECKSUM_LINE_BYTES;
}

bool
checksum_holds(struct slice text)
{
    char line[CHECKSUM_LINE_BYTES];
    size_t covered = text.len - CHECKSUM_LINE_BYTES;

    if (text.len < CHECKSUM_LINE_BYTES) {
        return false;
    }
    put_line(line, text.data, covered);
    return memcmp(text.data + covered, line, sizeof(line)) == 0;
}

bool
checksum_take(struct slice *text)
{
    if (!checksum_holds(*text)) {
        return false;
    }
    text->len -= CHECKSUM_LINE_BYTES;
    return true;
}
