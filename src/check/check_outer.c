/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/check_outer.h"

#include "check/check_beside.h"
#include "check/check_card.h"
#include "conf/conf_args.h"
#include "conf/conf_load.h"
#include "snapshot/data_files.h"
#include "snapshot/keyring.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USERS_NAME "aclfile.acl"

struct outer {
    struct check_made *made;
    const char *path, *out;
};

bool
check_outer_read(struct check *check, const char *config, const char *path,
                 struct conf *ret_conf)
{
    char rewritten[CHECK_PATH_MAX];
    struct conf_error error;
    bool ok;

    conf_init(ret_conf);
    ok = conf_load_file(ret_conf, config, NULL, &error);
    if (ok && check_file_join(check, path, CONF_REWRITTEN_NAME, rewritten) &&
        access(rewritten, F_OK) == 0) {
        ok = conf_load_file(ret_conf, rewritten, NULL, &error);
    }
    if (!ok) {
        tool_complain(&check->tool, CHECK_UNREADABLE, "%s", error.text);
    }
    return ok;
}

/* Prints where the backup has a file. name: NULL if the backup lacks it. */
static void
report_place(struct check *check, const char *option, const char *file,
             const char *name)
{
    check_card_begin(check, file, "outside", CHECK_STATE_INTACT);
    check_card_text(check, "option", option);
    check_card_text(check, name != NULL ? "copied_to" : "note",
                    name != NULL ? name : "not included");
    check_card_end(check);
    if (name == NULL) {
        check_card_omit(check, option, file);
    }
}

/* Returns whether the file is copied anyway, as one of the data directory. */
static bool
is_beside(const struct outer *outer, const char *file)
{
    const char *name = check_file_name(file);
    enum file_id id = data_files_find(name);
    char folder[CHECK_PATH_MAX];
    struct stat there;
    struct stat dir;

    (void)snprintf(folder, sizeof(folder), "%.*s.", (int)(name - file), file);
    return id != FILE_ID_COUNT && data_files[id].backup != DEED_LEAVE &&
           stat(folder, &there) == 0 && stat(outer->path, &dir) == 0 &&
           there.st_dev == dir.st_dev && there.st_ino == dir.st_ino;
}

static bool
copy_users(const struct outer *outer, const char *file)
{
    char to[CHECK_PATH_MAX];

    return check_file_join(outer->made->check, outer->out, USERS_NAME, to) &&
           check_beside_copy_text(outer->made, DEED_SECRET, file, to);
}

/* Copies the secret into a folder where a restored server finds it, even if
 * that server uses another secret for new filters. */
static bool
copy_secret(const struct outer *outer, const char *file, char *ret_name,
            size_t name_size)
{
    struct check *check = outer->made->check;
    uint8_t secret[BLOOM_SECRET_BYTES];
    char reason[128];
    char there[CHECK_PATH_MAX];
    char to[CHECK_PATH_MAX];
    bool ok;

    if (secret_file_read(AT_FDCWD, file, secret, reason, sizeof(reason)) !=
        SECRET_FILE_READ) {
        tool_complain(&check->tool, CHECK_UNREADABLE, "%s: %s", file, reason);
        return false;
    }
    (void)snprintf(ret_name, name_size, KEYRING_NAME "/%0*llx", KEYRING_DIGITS,
                   (unsigned long long)keyring_fingerprint(secret));
    explicit_bzero(secret, sizeof(secret));
    if (!check_file_join(check, outer->path, ret_name, there) ||
        !check_file_join(check, outer->path, KEYRING_NAME, to)) {
        return false;
    }
    if (access(there, F_OK) == 0) {
        return true; /* it was copied with its folder */
    }
    ok = access(to, F_OK) == 0 ||
         (check_file_join(check, outer->out, KEYRING_NAME, to) &&
          check_make_dir(outer->made, to));
    return ok && check_file_join(check, outer->out, ret_name, to) &&
           check_beside_copy_text(outer->made, DEED_SECRET, file, to);
}

static bool
copy(const struct outer *outer, const struct data_file *row, const char *file)
{
    struct check *check = outer->made->check;
    char name[64] = USERS_NAME;

    if (is_beside(outer, file)) {
        return true;
    }
    if (row->backup == DEED_NAMED || check->without_secrets) {
        report_place(check, row->name, file, NULL);
        return true;
    }
    if (!(row == &data_files[FILE_OUTER_USERS]
              ? copy_users(outer, file)
              : copy_secret(outer, file, name, sizeof(name)))) {
        return false;
    }
    report_place(check, row->name, file, name);
    return true;
}

bool
check_outer_copy(struct check_made *made, const char *path, const char *out)
{
    const struct conf *conf = made->check->conf;
    struct outer outer = { made, path, out };
    bool ok = true;

    if (conf == NULL) {
        check_card_omit(made->check, "what options name outside of", path);
        return true;
    }
    report_place(made->check, "configuration", made->check->config, NULL);
    for (unsigned id = 0; ok && id < FILE_ID_COUNT; id++) {
        const struct data_file *row = &data_files[id];
        struct buf file = { 0 };

        if (row->place == BY_OPTION && row->backup != DEED_LEAVE) {
            conf_show(conf, conf_find(slice_of(row->name)), &file);
            buf_append(&file, "", 1);
            ok =
                !file.failed && (file.len == 1 || copy(&outer, row, file.data));
        }
        buf_free(&file);
    }
    return ok;
}
