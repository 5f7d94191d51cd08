/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All secrets of the source are gathered in the keyring of this process first,
 * so a source that fails leaves the directory as it is.
 */
#include "load/load_secrets.h"

#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/random.h"
#include "core/keyed.h"
#include "load/load_link.h"
#include "load/load_report.h"
#include "snapshot/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RUN_HEX = 40,
    PAGE = 32, /* fingerprints of one reply */
    LISTED_MAX = 3 * PAGE,
};

struct copying {
    struct load *load;
    const char *dir;      /* to this directory */
    bool source_has_some; /* secrets */
    bool failed;
};

/* ---- a running server ---------------------------------------------------- */

/* Asks for `what`; the reply is valid until the next question. */
static bool
ask_secret(struct load_link *link, const char *what, struct slice *ret_text)
{
    struct slice reply;

    if (!load_link_ask(link, &reply, "REPLCONF", "hash-secret", what, NULL)) {
        return false;
    }
    *ret_text = resp_text(reply);
    if (resp_is_error(reply)) {
        load_link_fail(link, "%.*s", resp_shown(*ret_text), ret_text->data);
        return false;
    }
    return true;
}

/* Introduces the tool as a Bloomery, since only a Bloomery gets secrets. */
static bool
introduce(struct load_link *link)
{
    char run_id[RUN_HEX + 1] = "";
    struct slice reply;

    random_hex(run_id, RUN_HEX);
    if (!load_link_ask(link, &reply, "REPLCONF", "bloomery", "1", "run", run_id,
                       NULL)) {
        return false;
    }
    if (resp_is_error(reply)) {
        load_link_fail(link, "is no Bloomery that has secrets");
        return false;
    }
    return true;
}

/* Reads all fingerprints, in pages: 16 digits for each, and blanks between. */
static bool
list(struct load_link *link, uint64_t fingerprints[LISTED_MAX],
     size_t *ret_count)
{
    size_t count = 0;
    size_t page = PAGE;

    while (page == PAGE && count + PAGE <= LISTED_MAX) {
        char word[24];
        struct slice text;

        (void)snprintf(word, sizeof(word), "?%zu", count);
        if (!ask_secret(link, word, &text)) {
            return false;
        }
        page = 0;
        for (size_t at = 0; at + HEX_U64_CHARS <= text.len && page < PAGE;
             at += HEX_U64_CHARS + 1) {
            if (!hex_get_u64(text.data + at, &fingerprints[count + page])) {
                load_link_fail(link, "does not list its secrets");
                return false;
            }
            page++;
        }
        count += page;
    }
    *ret_count = count;
    return true;
}

static bool
fetch(struct copying *copying, struct load_link *link, uint64_t fingerprint)
{
    uint8_t secret[BLOOM_SECRET_BYTES];
    char word[HEX_U64_CHARS + 1] = "";
    struct slice text;
    bool fits;

    hex_put_u64(word, fingerprint);
    if (!ask_secret(link, word, &text)) {
        return false;
    }
    fits = hex_get_bytes(text, secret, sizeof(secret)) &&
           keyring_fingerprint(secret) == fingerprint;
    if (!fits) {
        load_link_fail(link, "gives a wrong secret for %s", word);
    } else if (bloom_add_secret(secret) != BLOOM_OK) {
        tool_complain(&copying->load->tool, LOAD_UNREADABLE,
                      "%s/" KEYRING_NAME ": no secret of %s was copied: %s",
                      copying->dir, link->address, KEYRING_FULL);
        fits = false;
    }
    explicit_bzero(secret, sizeof(secret));
    return fits;
}

static bool
gather_from_server(struct copying *copying)
{
    struct load *load = copying->load;
    uint64_t fingerprints[LISTED_MAX];
    struct load_link link;
    size_t count = 0;
    bool ok;

    if (!load_link_open(load, &load->from, &link)) {
        return false;
    }
    ok = introduce(&link) && list(&link, fingerprints, &count);
    for (size_t i = 0; ok && i < count; i++) {
        ok = keyring_has(fingerprints[i]) ||
             fetch(copying, &link, fingerprints[i]);
    }
    load_link_close(&link);
    copying->source_has_some = count > 0;
    return ok;
}

/* ---- directories --------------------------------------------------------- */

static void
ignore_wrong(void *ctx, const char *file, const char *reason)
{
    (void)ctx;
    (void)file;
    (void)reason;
}

static void
on_wrong(void *ctx, const char *file, const char *reason)
{
    struct copying *copying = ctx;

    if (!copying->failed) {
        tool_complain(&copying->load->tool, LOAD_UNREADABLE,
                      "%s/%s: %s; no secret was copied",
                      copying->load->from.address, file, reason);
    }
    copying->failed = true;
}

static bool
gather_from_dir(struct copying *copying)
{
    const char *from = copying->load->from.address;
    int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        tool_complain(&copying->load->tool, LOAD_UNREADABLE,
                      "%s: cannot be opened: %s", from, strerror(errno));
        return false;
    }
    (void)keyring_read(fd, on_wrong, copying);
    copying->source_has_some = faccessat(fd, KEYRING_OWN_NAME, F_OK, 0) == 0 ||
                               faccessat(fd, KEYRING_NAME, F_OK, 0) == 0;
    file_close(fd);
    return !copying->failed;
}

/* Makes the owner of the directory the owner of the new files: the server runs
 * as that user, and may not read secrets of root. */
static int
give_away(int dir_fd, const uint64_t *fingerprints, size_t count)
{
    char name[sizeof(KEYRING_NAME) + 1 + KEYRING_DIGITS];
    struct stat dir;
    int error = 0;

    if (fstat(dir_fd, &dir) != 0) {
        return errno;
    }
    if (geteuid() != 0) {
        return 0;
    }
    if (fchownat(dir_fd, KEYRING_NAME, dir.st_uid, dir.st_gid,
                 AT_SYMLINK_NOFOLLOW) != 0) {
        error = errno;
    }
    for (size_t i = 0; i < count && error == 0; i++) {
        (void)snprintf(name, sizeof(name), KEYRING_NAME "/%0*llx",
                       KEYRING_DIGITS, (unsigned long long)fingerprints[i]);
        if (fchownat(dir_fd, name, dir.st_uid, dir.st_gid,
                     AT_SYMLINK_NOFOLLOW) != 0) {
            error = errno;
        }
    }
    return error;
}

/* Writes the secrets with these fingerprints, which the directory does not have
 * yet. */
static int
write_from(int dir_fd, const uint64_t *fingerprints, size_t count)
{
    uint8_t secret[BLOOM_SECRET_BYTES];
    int error = 0;

    for (size_t i = 0; i < count && error == 0; i++) {
        CHECK(keyed_reveal(fingerprints[i], secret));
        error = keyring_write(dir_fd, secret);
    }
    explicit_bzero(secret, sizeof(secret));
    return error != 0 || count == 0 ? error
                                    : give_away(dir_fd, fingerprints, count);
}

/* The keyring of the process has the secrets of the directory first, so its
 * limit is the one of the directory's server. */
static void
copy_secrets(struct copying *copying, int dir_fd)
{
    struct load *load = copying->load;
    uint64_t fingerprints[KEYED_MAX];
    struct stat found;
    size_t before;
    size_t count;
    int error;

    keyring_read_own(dir_fd);
    (void)keyring_read(dir_fd, ignore_wrong, NULL);
    before = keyed_list(fingerprints);
    if (!(stat(load->from.address, &found) == 0 && !S_ISSOCK(found.st_mode)
              ? gather_from_dir
              : gather_from_server)(copying)) {
        return;
    }
    if (!copying->source_has_some) {
        tool_complain(&load->tool, LOAD_UNREADABLE, "%s: has no secrets",
                      load->from.address);
        return;
    }
    count = keyed_list(fingerprints);
    error = write_from(dir_fd, fingerprints + before, count - before);
    if (error != 0) {
        tool_complain(&load->tool, LOAD_UNREADABLE,
                      "%s/" KEYRING_NAME ": cannot be written: %s",
                      copying->dir, strerror(error));
        return;
    }
    load_report_begin(load, slice_of(copying->dir));
    load_report_number("secrets written", count - before);
    (void)printf("A server that runs in it reads them at SIGHUP.\n");
}

void
load_secrets(struct load *load, const char *dir)
{
    struct copying copying = { .load = load, .dir = dir };
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0) {
        tool_complain(&load->tool, LOAD_UNREADABLE, "%s: cannot be opened: %s",
                      dir, strerror(errno));
        return;
    }
    copy_secrets(&copying, dir_fd);
    file_close(dir_fd);
}

void
load_secrets_hint(struct load *load, struct slice error)
{
    static const char lacks[] = "the secret of fingerprint";

    if (load->told_of_secrets || load->from.address == NULL || error.len == 0 ||
        memmem(error.data, error.len, lacks, sizeof(lacks) - 1) == NULL) {
        return;
    }
    load->told_of_secrets = true;
    tool_complain(
        &load->tool, LOAD_INCOMPLETE,
        "`bloomery-load secrets %s DIR` copies the secrets, DIR being "
        "dir of the server, which reads them at SIGHUP; then copy "
        "the filters again",
        load->from.address);
}
