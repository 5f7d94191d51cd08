/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The head of POSIX.1-2001 ("pax"):
 *
 *   offset bytes          offset bytes
 *        0   100 name        156     1 type: 0 file, 5 directory, x records
 *      100     8 mode        157   100 link (empty)
 *      108    16 owner       257     8 "ustar" 0 "00"
 *      124    12 size        265   235 names of owners, prefix (ignored)
 *      136    12 time
 *      148     8 sum of all bytes, with spaces in its own place
 *
 * Numbers are octal. A record is "LENGTH key=value\n"; LENGTH counts the whole
 * record.
 */
#include "tools/tar.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 100,
    MODE_AT = 100,
    OWNER_AT = 108,
    SIZE_AT = 124,
    SIZE_BYTES = 12,
    TIME_AT = 136,
    SUM_AT = 148,
    SUM_BYTES = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    MAGIC_BYTES = 8,
    PREFIX_AT = 345,
    FILE_MODE = 0600,
    DIR_MODE = 0700
};
static const char magic[MAGIC_BYTES] = { 'u', 's', 't', 'a', 'r', 0, '0', '0' };
static const uint64_t size_limit = UINT64_C(1) << 33; /* 11 octal digits */

/* ---- writing ------------------------------------------------------------- */

static void
put_octal(char *to, size_t bytes, uint64_t value)
{
    to[--bytes] = '\0';
    while (bytes > 0) {
        to[--bytes] = (char)('0' + value % 8);
        value /= 8;
    }
}

static unsigned
sum_of(const char *block)
{
    unsigned sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++) {
        sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? (unsigned char)' '
                                                     : (unsigned char)block[i];
    }
    return sum;
}

static void
put_block(char *block, const char *name, char type, uint64_t bytes,
          uint64_t seconds)
{
    memset(block, 0, TAR_BLOCK);
    memcpy(block, name, strnlen(name, NAME_BYTES));
    put_octal(block + MODE_AT, 8, type == '5' ? DIR_MODE : FILE_MODE);
    put_octal(block + OWNER_AT, 8, 0);
    put_octal(block + OWNER_AT + 8, 8, 0);
    put_octal(block + SIZE_AT, SIZE_BYTES, bytes < size_limit ? bytes : 0);
    put_octal(block + TIME_AT, SIZE_BYTES, seconds);
    block[TYPE_AT] = type;
    memcpy(block + MAGIC_AT, magic, MAGIC_BYTES);
    put_octal(block + SUM_AT, SUM_BYTES - 1, sum_of(block));
    block[SUM_AT + SUM_BYTES - 1] = ' ';
}

/* The length of a record counts its own digits. */
static size_t
put_record(char *to, size_t room, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3; /* " ", "=", "\n" */
    size_t len = rest + 1;

    while (true) {
        int digits = snprintf(NULL, 0, "%zu", len);

        if (rest + (size_t)digits == len) {
            break;
        }
        len = rest + (size_t)digits;
    }
    (void)snprintf(to, room, "%zu %s=%s\n", len, key, value);
    return len;
}

size_t
tar_padding(uint64_t bytes)
{
    return (size_t)((TAR_BLOCK - bytes % TAR_BLOCK) % TAR_BLOCK);
}

size_t
tar_put(const struct tar_entry *entry, uint64_t seconds,
        char ret_head[TAR_HEAD_MAX])
{
    char records[TAR_RECORDS_MAX + 1] = "";
    char value[TAR_NAME_MAX + 2];
    size_t len = 0;
    size_t at = 0;

    (void)snprintf(value, sizeof(value), "%s%s", entry->name,
                   entry->dir ? "/" : "");
    if (strlen(value) > NAME_BYTES) {
        len += put_record(records, sizeof(records), "path", value);
    }
    if (entry->bytes >= size_limit) {
        char size[24];

        (void)snprintf(size, sizeof(size), "%llu",
                       (unsigned long long)entry->bytes);
        len += put_record(records + len, sizeof(records) - len, "size", size);
    }
    if (len > 0) {
        put_block(ret_head, "records", 'x', len, seconds);
        at = TAR_BLOCK;
        memset(ret_head + at, 0, len + tar_padding(len));
        memcpy(ret_head + at, records, len);
        at += len + tar_padding(len);
    }
    put_block(ret_head + at, value, entry->dir ? '5' : '0', entry->bytes,
              seconds);
    return at + TAR_BLOCK;
}

/* ---- reading ------------------------------------------------------------- */

static bool
get_octal(const char *from, size_t bytes, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;

    while (i < bytes && from[i] >= '0' && from[i] <= '7') {
        value = value * 8 + (uint64_t)(from[i++] - '0');
    }
    if (i == 0 || i == bytes || from[i] != '\0') {
        return false;
    }
    *ret_value = value;
    return true;
}

/* Copies a name without the last slash, which only a directory may have. */
static bool
get_name(struct tar_entry *entry, struct slice name)
{
    if (entry->dir && name.len > 0 && name.data[name.len - 1] == '/') {
        name.len--;
    }
    if (name.len == 0 || name.len > TAR_NAME_MAX ||
        memchr(name.data, '\0', name.len) != NULL) {
        return false;
    }
    memcpy(entry->name, name.data, name.len);
    entry->name[name.len] = '\0';
    return true;
}

enum tar_status
tar_get(const char block[TAR_BLOCK], struct tar_entry *ret_entry)
{
    char type = block[TYPE_AT];
    uint64_t sum = 0;

    if (slice_is_zero((struct slice){ block, TAR_BLOCK })) {
        return TAR_ZEROS;
    }
    ret_entry->dir = type == '5';
    if (memcmp(block + MAGIC_AT, magic, MAGIC_BYTES) != 0 ||
        !get_octal(block + SUM_AT, SUM_BYTES - 1, &sum) ||
        block[SUM_AT + SUM_BYTES - 1] != ' ' || sum != sum_of(block) ||
        !get_octal(block + SIZE_AT, SIZE_BYTES, &ret_entry->bytes) ||
        block[PREFIX_AT] != '\0' ||
        !get_name(ret_entry,
                  (struct slice){ block, strnlen(block, NAME_BYTES) })) {
        return TAR_FOREIGN;
    }
    if (type == 'x' && ret_entry->bytes <= TAR_RECORDS_MAX) {
        return TAR_RECORDS;
    }
    return type == '0' || (type == '5' && ret_entry->bytes == 0) ? TAR_ENTRY
                                                                 : TAR_FOREIGN;
}

static bool
get_decimal(struct slice text, uint64_t *ret_value)
{
    int64_t value = 0;

    if (!num_parse_i64(text, &value) || value < 0) {
        return false;
    }
    *ret_value = (uint64_t)value;
    return true;
}

/* Cuts the next record off `rest`. False: it is malformed. */
static bool
next_record(struct slice *rest, struct slice *ret_key, struct slice *ret_value)
{
    const char *space = memchr(rest->data, ' ', rest->len);
    const char *sign;
    uint64_t len = 0;

    if (space == NULL ||
        !get_decimal((struct slice){ rest->data, (size_t)(space - rest->data) },
                     &len) ||
        len > rest->len || len < (uint64_t)(space - rest->data) + 4 ||
        rest->data[len - 1] != '\n') {
        return false;
    }
    space++;
    sign = memchr(space, '=', (size_t)(rest->data + len - space));
    if (sign == NULL) {
        return false;
    }
    *ret_key = (struct slice){ space, (size_t)(sign - space) };
    *ret_value =
        (struct slice){ sign + 1, (size_t)(rest->data + len - 1 - (sign + 1)) };
    *rest = (struct slice){ rest->data + len, rest->len - (size_t)len };
    return true;
}

bool
tar_get_records(struct slice records, struct tar_entry *entry)
{
    struct slice key;
    struct slice value;

    while (records.len > 0) {
        if (!next_record(&records, &key, &value)) {
            return false;
        }
        if (slice_equal(key, slice_of("path"))) {
            if (!get_name(entry, value)) {
                return false;
            }
        } else if (!slice_equal(key, slice_of("size")) || entry->dir ||
                   !get_decimal(value, &entry->bytes)) {
            return false;
        }
    }
    return true;
}
