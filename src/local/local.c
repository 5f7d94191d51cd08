/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions of <bloomery/local.h>: options and their defaults, and the two
 * references to a copy, the program's and the thread's.
 */
#include <bloomery/local.h>

#include "base/slice.h"
#include "core/versioned.h"
#include "local/local_member.h"
#include "local/local_server.h"
#include "local/local_url.h"
#include "tls/tls_context.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_STALE_MS = 1000,
    LEAST_STALE_MS = 100,
    TIMEOUT_MS = 30000,
    REFRESH_MS = 60000,
    KEY_MAX_BYTES = 64 * 1024,
    /* The sizes of the structs of version 1. */
    LEAST_OPTIONS = 112,
    LEAST_STATUS = 584
};

_Static_assert(sizeof(struct bloomery_local_options) >= LEAST_OPTIONS,
               "members are never removed");
_Static_assert(sizeof(struct bloomery_local_status) >= LEAST_STATUS,
               "members are never removed");

const char *
bloomery_local_text(enum bloomery_local_code code)
{
    switch (code) {
    case BLOOMERY_LOCAL_OK:
        return "ok";
    case BLOOMERY_LOCAL_INVALID:
        return "an option or the URL is wrong";
    case BLOOMERY_LOCAL_NOMEM:
        return "not enough memory";
    case BLOOMERY_LOCAL_THREAD:
        return "the system allows no further thread or descriptor";
    case BLOOMERY_LOCAL_CONNECT:
        return "there is no connection to the server";
    case BLOOMERY_LOCAL_TLS:
        return "TLS failed";
    case BLOOMERY_LOCAL_REFUSED:
        return "the server replied with an error";
    case BLOOMERY_LOCAL_FOREIGN:
        return "the server is no Bloomery server that has BF.SUBSCRIBE";
    case BLOOMERY_LOCAL_REPLICA:
        return "the server is a replica";
    case BLOOMERY_LOCAL_LIMIT:
        return "the filter has more than max_bytes";
    case BLOOMERY_LOCAL_LATE:
        return "the copy was not loaded in time";
    case BLOOMERY_LOCAL_CLOSED:
        return "the copy is closed";
    }
    return "unknown code";
}

/* ---- options ------------------------------------------------------------- */

static uint32_t
or_default(uint32_t value, uint32_t usual)
{
    return value != 0 ? value : usual;
}

/* Fills in defaults. Returns what is wrong, or NULL. */
static const char *
complete(struct bloomery_local_options *options)
{
    const uint32_t flags = BLOOMERY_LOCAL_NO_WAIT |
                           BLOOMERY_LOCAL_REPLICA_ALLOWED |
                           BLOOMERY_LOCAL_MISSING_IS_ABSENT;

    if (options->url == NULL || options->key == NULL) {
        return "an option is missing: url, key";
    }
    if (options->key_bytes == 0) {
        options->key_bytes = strlen(options->key);
    }
    if (options->key_bytes > KEY_MAX_BYTES) {
        return "the key is too long";
    }
    if ((options->flags & ~flags) != 0) {
        return "there is an unknown flag";
    }
    options->max_stale_ms = or_default(options->max_stale_ms, MAX_STALE_MS);
    options->timeout_ms = or_default(options->timeout_ms, TIMEOUT_MS);
    options->refresh_ms = or_default(options->refresh_ms, REFRESH_MS);
    if (options->max_stale_ms < LEAST_STALE_MS) {
        return "max_stale_ms is less than 100";
    }
    if (options->max_bytes == 0) {
        options->max_bytes = UINT64_MAX;
    }
    return NULL;
}

/* Replaces the login of the URL by the user and the password of the options, as
 * far as these are set. Returns what is wrong, or NULL. */
static const char *
override_login(const struct bloomery_local_options *options,
               struct local_url *url)
{
    if ((options->user != NULL && strlen(options->user) >= LOCAL_URL_BYTES) ||
        (options->password != NULL &&
         strlen(options->password) >= LOCAL_URL_BYTES)) {
        return "the user or the password is too long";
    }
    if (options->user != NULL) {
        (void)snprintf(url->user, sizeof(url->user), "%s", options->user);
    }
    if (options->password != NULL) {
        (void)snprintf(url->password, sizeof(url->password), "%s",
                       options->password);
        url->has_password = true;
    }
    return NULL;
}

/* Returns what is wrong, or NULL. */
static const char *
take_files(const struct bloomery_local_options *options,
           struct local_files *ret_files)
{
    struct local_files files = {
        options->ca_file != NULL ? options->ca_file : "",
        options->cert_file != NULL ? options->cert_file : "",
        options->key_file != NULL ? options->key_file : ""
    };

    if (strlen(files.ca) >= LOCAL_FILE_BYTES ||
        strlen(files.cert) >= LOCAL_FILE_BYTES ||
        strlen(files.key) >= LOCAL_FILE_BYTES) {
        return "the name of a file is too long";
    }
    *ret_files = files;
    return NULL;
}

/* ---- opening ------------------------------------------------------------- */

struct opening {
    struct bloomery_local_options options;
    struct local_url url;
    struct local_files files;
    struct bloomery_local_status status;
};

static enum bloomery_local_code
fail(struct opening *opening, enum bloomery_local_code code, const char *text)
{
    struct bloomery_local_status *status = &opening->status;

    status->error = code;
    (void)snprintf(status->error_text, sizeof(status->error_text), "%s",
                   text != NULL ? text : bloomery_local_text(code));
    return code;
}

static enum bloomery_local_code
check(struct opening *opening, const struct bloomery_local_options *options)
{
    const char *wrong = NULL;

    if (!versioned_read(options, &opening->options, sizeof(opening->options),
                        LEAST_OPTIONS)) {
        return fail(opening, BLOOMERY_LOCAL_INVALID,
                    "struct_size is wrong, or an option is unknown");
    }
    wrong = complete(&opening->options);
    if (wrong == NULL) {
        (void)local_url_parse(opening->options.url, &opening->url, &wrong);
    }
    if (wrong == NULL) {
        wrong = override_login(&opening->options, &opening->url);
    }
    if (wrong == NULL) {
        wrong = take_files(&opening->options, &opening->files);
    }
    return wrong != NULL ? fail(opening, BLOOMERY_LOCAL_INVALID, wrong)
                         : BLOOMERY_LOCAL_OK;
}

/* Waits, unless the caller does not want to. On failure the copy is freed. */
static enum bloomery_local_code
await(struct opening *opening, struct bloomery_local *local)
{
    enum bloomery_local_code code = BLOOMERY_LOCAL_OK;

    if ((opening->options.flags & BLOOMERY_LOCAL_NO_WAIT) == 0) {
        code = local_member_wait(local, opening->options.timeout_ms);
    }
    local_member_status(local, &opening->status);
    if (code != BLOOMERY_LOCAL_OK && opening->status.error_text[0] == '\0') {
        (void)fail(opening, code, NULL);
    }
    return code;
}

static enum bloomery_local_code
open_copy(struct opening *opening, struct bloomery_local **ret_local)
{
    char server[BLOOMERY_LOCAL_TEXT_BYTES], reason[TLS_REASON_MAX] = "";
    struct bloomery_local *local;
    enum bloomery_local_code code;

    if (opening->url.host[0] == '/' || opening->url.sentinels[0] != '\0') {
        (void)snprintf(server, sizeof(server), "%.255s", opening->url.host);
    } else {
        (void)snprintf(server, sizeof(server), "%.200s:%s", opening->url.host,
                       opening->url.port);
    }
    local = local_member_new(&opening->options, server);
    if (local == NULL) {
        return fail(opening, BLOOMERY_LOCAL_NOMEM, NULL);
    }
    code = local_server_join(&opening->url, &opening->files, local, reason);
    if (code != BLOOMERY_LOCAL_OK) {
        local_member_abandon(local);
        return fail(opening, code, reason[0] != '\0' ? reason : NULL);
    }
    code = await(opening, local);
    if (code != BLOOMERY_LOCAL_OK) {
        bloomery_local_free(local);
        return code;
    }
    *ret_local = local;
    return BLOOMERY_LOCAL_OK;
}

enum bloomery_local_code
bloomery_local_open(const struct bloomery_local_options *options,
                    struct bloomery_local **ret_local,
                    struct bloomery_local_status *ret_status)
{
    struct opening opening = { .status = { 0 } };
    enum bloomery_local_code code;

    if (ret_status != NULL && !versioned_fits(ret_status, LEAST_STATUS)) {
        return BLOOMERY_LOCAL_INVALID;
    }
    code = check(&opening, options);
    if (code == BLOOMERY_LOCAL_OK) {
        code = open_copy(&opening, ret_local);
    }
    if (ret_status != NULL) {
        versioned_write(ret_status, &opening.status, sizeof(opening.status),
                        LEAST_STATUS);
    }
    explicit_bzero(&opening.url, sizeof(opening.url));
    return code;
}

enum bloomery_local_code
bloomery_local_wait(struct bloomery_local *local, uint32_t timeout_ms)
{
    return local_member_wait(local, timeout_ms);
}

/* ---- the rest ------------------------------------------------------------ */

enum bloomery_local_answer
bloomery_local_contains(struct bloomery_local *local, const void *item,
                        size_t bytes)
{
    return local_place_contains(&local->place, item, bytes);
}

size_t
bloomery_local_contains_many(struct bloomery_local *local,
                             const struct bloomery_local_item *items,
                             size_t count, int8_t *ret_answers)
{
    return local_place_contains_many(&local->place, items, count, ret_answers);
}

void
bloomery_local_status(struct bloomery_local *local,
                      struct bloomery_local_status *ret_status)
{
    struct bloomery_local_status status;

    if (!versioned_fits(ret_status, LEAST_STATUS)) {
        return;
    }
    local_member_status(local, &status);
    versioned_write(ret_status, &status, sizeof(status), LEAST_STATUS);
}

void
bloomery_local_close(struct bloomery_local *local)
{
    local_member_close(local);
    local_server_wake(local);
}

void
bloomery_local_free(struct bloomery_local *local)
{
    if (local != NULL) {
        bloomery_local_close(local);
        local_member_release(local);
    }
}
