/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pieces that RDB files and DUMP payloads of Redis and Valkey consist of:
 * lengths, strings (raw, LZF or a number), and the fields of a module's value.
 * Reads hostile bytes: nothing is assumed about them, and nothing is allocated.
 * Pure, any thread.
 *
 *   length  00xxxxxx               6 bits
 *           01xxxxxx x             14 bits
 *           10000000 xxxx          32 bits, big-endian like all of these
 *           10000001 xxxxxxxx      64 bits
 *           11xxxxxx               no length: a special string
 *   string  length, bytes
 *           C0 x, C1 xx, C2 xxxx   a decimal number, signed, little-endian
 *           C3 length length data  LZF: length of the data, and of the string
 *   field   opcode (a length), value: 1 signed, 2 unsigned (lengths), 3 float,
 *           4 double (little-endian), 5 string; 0 ends the value
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rdb_opcode {
    RDB_EOF = 0,
    RDB_SINT = 1,
    RDB_UINT = 2,
    RDB_FLOAT = 3,
    RDB_DOUBLE = 4,
    RDB_STRING = 5
};

/* Bytes that are yet to be read. After a mistake `failed` stays set, `left` is
 * 0, and every result is 0. */
struct rdb_in {
    const uint8_t *at;
    size_t left;
    bool failed;
};

/* A string, as it lies in the input. */
struct rdb_string {
    uint64_t len;        /* after expanding */
    const uint8_t *data; /* bytes, or LZF data */
    size_t data_len;
    char number[24]; /* if it is a number: its text; data is NULL then */
    bool is_number;
    bool is_lzf;
};

/* Returns the next byte. */
uint8_t rdb_byte(struct rdb_in *in);

/* Returns a length. */
uint64_t rdb_length(struct rdb_in *in);

/* Returns how many bytes follow the first one of a length, at most
 * RDB_LENGTH_MORE_MAX, for callers that read from a stream. SIZE_MAX if this
 * byte begins no length. */
enum { RDB_LENGTH_MORE_MAX = 8 };
size_t rdb_length_more(uint8_t first);

/* First bytes of special strings: numbers of 1, 2 and 4 bytes, and LZF. */
enum {
    RDB_SPECIAL_8 = 0xc0,
    RDB_SPECIAL_16 = 0xc1,
    RDB_SPECIAL_32 = 0xc2,
    RDB_SPECIAL_LZF = 0xc3
};

/* Reads a string. */
void rdb_string(struct rdb_in *in, struct rdb_string *ret_string);

/* Writes the first LEN bytes of a string. False if it is shorter, or its LZF
 * data is damaged. */
bool rdb_expand(const struct rdb_string *string, void *ret_bytes, size_t len);

/* Read a field of the opcode in the name. Any other opcode is a mistake. */
uint64_t rdb_field_uint(struct rdb_in *in);
double rdb_field_double(struct rdb_in *in);
void rdb_field_string(struct rdb_in *in, struct rdb_string *ret_string);

/* Where the functions below append bytes. Without `to` they only count them. */
struct rdb_out {
    uint8_t *to;
    uint64_t len;
};

void rdb_put(struct rdb_out *out, const void *data, size_t len);
void rdb_put_length(struct rdb_out *out, uint64_t length);
void rdb_put_uint(struct rdb_out *out, uint64_t value);
void rdb_put_double(struct rdb_out *out, double value);

/* Begins a string field whose LEN bytes the caller appends. */
void rdb_put_string_head(struct rdb_out *out, uint64_t len);

/* Appends a length in its longest form, as module ids have it. */
void rdb_put_id(struct rdb_out *out, uint64_t id);
