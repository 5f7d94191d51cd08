/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints the versions of the libraries that were loaded at the start. hiredis
 * has no function for that, so its version is that of the headers.
 */
#include "server/version.h"

#include "base/allocator.h"
#include "base/buf.h"

#include <bloomery/bloom.h>
#include <bloomery_version.h>
#include <hiredis/hiredis.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <uv.h>
#include <xxhash.h>

#ifndef BLOOMERY_MODE
#define BLOOMERY_MODE "unknown"
#endif

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

void
version_print(void)
{
    unsigned xxhash = XXH_versionNumber();
    struct buf allocator = { 0 };

    allocator_append_name(&allocator);
    (void)printf("bloomery-server %s\n", BLOOMERY_VERSION);
    (void)printf("build: mode %s, %s\n", BLOOMERY_MODE, COMPILER);
    (void)printf("cpu: %s\n", bloom_select_cpu(false));
    (void)printf("allocator: %.*s\n", (int)allocator.len, allocator.data);
    (void)printf("libuv: %s\n", uv_version_string());
    (void)printf("hiredis: %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR,
                 HIREDIS_PATCH);
    (void)printf("xxHash: %u.%u.%u\n", xxhash / 10000, xxhash / 100 % 100,
                 xxhash % 100);
    (void)printf("OpenSSL: %s\n", OpenSSL_version(OPENSSL_VERSION));
    buf_free(&allocator);
}
