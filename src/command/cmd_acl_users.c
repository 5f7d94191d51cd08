/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands that change users, under the raised gate: ACL SETUSER DELUSER
 * LOAD, and ACL SAVE, which only reads them. A thread does the disk's work; a
 * transaction cannot pause, so its loop waits for the disk.
 */
#include "access/users.h"
#include "access/users_file.h"
#include "admin/conf_file.h"
#include "base/mem.h"
#include "engine/handlers.h"
#include "engine/request.h"

/* Has all loops close the connections that may no longer be. This one closes
 * behind its reply. */
static void
users_changed(struct request *req)
{
    struct service *service = req->service;

    if (req->session->user != NULL && req->session->user->gone) {
        req->session->closing = true;
    }
    if (service->users_changed != NULL) {
        service->users_changed(service->ctx);
    }
}

/* ---- SETUSER, DELUSER ---------------------------------------------------- */

static void
forget_edit(void *state)
{
    struct users_edit *edit = state;

    user_rules_fini(&edit->rules);
    mem_free(edit);
}

static enum err
refuse(struct request *req, struct user_refusal *refusal)
{
    struct slice words = buf_slice(&refusal->words);
    enum err err;

    if (refusal->reason == SELECTOR_NO_MEMORY) {
        err = ERR_NOMEM;
    } else if (refusal->reason == NULL) {
        err = request_fail(req, ERR_CUSTOM,
                           "Unmatched parenthesis in acl selector starting at "
                           "'%.*s'.",
                           slice_shown(words), words.data);
    } else {
        err = request_fail(req, ERR_CUSTOM,
                           "Error in ACL SETUSER modifier '%.*s': %s",
                           slice_shown(words), words.data, refusal->reason);
    }
    buf_wipe(&refusal->words);
    return err;
}

/* Applies rules, as many as a piece has time for, and puts them in force behind
 * the last one. If the user was changed between two pieces, begins anew. */
static enum err
edit_user(struct request *req, struct users_edit *edit)
{
    struct users *users = req->service->users;
    struct slice name = req->argv[2];
    const struct slice *words = req->argv + 3;
    size_t count = req->argc - 3;
    struct user_refusal refusal = { 0 };
    enum users_edited edited;

    while (edit->at < count) {
        if (!user_rules_apply_next(&edit->rules, words, count, &edit->at,
                                   &refusal)) {
            return refuse(req, &refusal);
        }
        if (request_is_late(req)) {
            return ERR_AGAIN;
        }
    }
    edited = users_edit_end(users, name, edit);
    if (edited == USERS_CHANGED_MEANWHILE) {
        user_rules_fini(&edit->rules);
        return users_edit_begin(users, name, edit) ? ERR_AGAIN : ERR_NOMEM;
    }
    if (edited == USERS_NO_MEMORY) {
        return ERR_NOMEM;
    }
    users_changed(req);
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_acl_setuser(struct request *req)
{
    struct users_edit *edit = request_resumed(req);

    if (req->argv[2].len == 0) {
        return request_fail(req, ERR_CUSTOM, "Usernames can't be empty");
    }
    if (!user_name_is_valid(req->argv[2])) {
        return request_fail(req, ERR_CUSTOM,
                            "Usernames can't contain spaces or null "
                            "characters");
    }
    if (edit == NULL) {
        edit = mem_try_zalloc(sizeof(*edit));
        if (edit == NULL ||
            !users_edit_begin(req->service->users, req->argv[2], edit)) {
            mem_free(edit);
            return ERR_NOMEM;
        }
    }
    return request_end_piece(req, edit_user(req, edit), edit, forget_edit,
                             edit->rules.root.keys.capacity +
                                 edit->rules.passwords.capacity);
}

enum err
cmd_acl_deluser(struct request *req)
{
    int64_t deleted = 0;

    for (size_t i = 2; i < req->argc; i++) {
        if (slice_equal(req->argv[i], slice_lit("default"))) {
            return request_fail(req, ERR_CUSTOM,
                                "The 'default' user cannot be removed");
        }
    }
    for (size_t i = 2; i < req->argc; i++) {
        deleted += users_delete(req->service->users, req->argv[i]);
    }
    users_changed(req);
    reply_int(req->reply, deleted);
    return OK;
}

/* ---- the aclfile --------------------------------------------------------- */

static void
forget(void *job)
{
    conf_file_forget(job);
}

/* Begins a job, waits until it has ended, and then calls `ended`. */
static enum err
with_job(struct request *req, struct buf *text,
         enum err (*ended)(struct request *req,
                           const struct conf_file_job *job))
{
    struct conf_file *file = req->service->conf_file;
    struct conf_file_job *job = request_resumed(req);
    bool waits = !request_may_pause(req);
    enum err err = OK;

    if (job == NULL) {
        err = conf_file_begin_text(file, req->service->conf->aclfile, text,
                                   waits, &job);
        if (err == ERR_AGAIN) { /* another job runs */
            req->session->wait = CONN_FOR_EVENT;
        }
        if (err != OK) {
            return err;
        }
        if (!waits) {
            request_wait(req, job, forget);
            return ERR_AGAIN;
        }
        conf_file_wait(file, job);
        err = ended(req, job);
        conf_file_forget(job);
        return err;
    }
    if (!conf_file_is_done(job)) {
        req->session->wait = CONN_FOR_EVENT;
        return ERR_AGAIN;
    }
    return ended(req, job);
}

static enum err
check_aclfile(struct request *req)
{
    return req->service->conf->aclfile[0] != '\0'
               ? OK
               : request_fail(req, ERR_CUSTOM,
                              "This server has no ACL file: set the option "
                              "aclfile in its configuration and restart it");
}

static enum err
save_ended(struct request *req, const struct conf_file_job *job)
{
    const char *error = conf_file_error(job);

    if (error != NULL) {
        return request_fail(req, ERR_CUSTOM, "Error saving ACLs: %s", error);
    }
    reply_ok(req->reply);
    return OK;
}

enum err
cmd_acl_save(struct request *req)
{
    struct buf text = { 0 }, error = { 0 };
    enum err err = check_aclfile(req);

    if (err == OK && request_resumed(req) == NULL &&
        !users_file_write(req->service->users, &text, &error)) {
        err = error.failed ? ERR_NOMEM
                           : request_fail(req, ERR_CUSTOM,
                                          "Error saving ACLs, the old file "
                                          "stays: %.*s",
                                          (int)error.len, error.data);
    }
    if (err == OK) {
        err = with_job(req, &text, save_ended);
    }
    buf_free(&error);
    buf_wipe(&text);
    return err;
}

static enum err
load_ended(struct request *req, const struct conf_file_job *job)
{
    struct users *users = req->service->users;
    const char *error = conf_file_error(job);
    struct users_draft draft = { 0 };
    struct buf errors = { 0 };
    enum err err = OK;

    if (error != NULL) {
        return request_fail(req, ERR_CUSTOM, "Error loading ACLs: %s", error);
    }
    if (users_file_read(users, req->service->conf->aclfile, conf_file_text(job),
                        &draft, &errors)) {
        users_take(users, &draft);
        users_changed(req);
        reply_ok(req->reply);
    } else {
        err = errors.failed ? ERR_NOMEM
                            : request_fail(req, ERR_CUSTOM, "%.*s",
                                           (int)errors.len, errors.data);
    }
    buf_free(&errors);
    return err;
}

enum err
cmd_acl_load(struct request *req)
{
    enum err err = check_aclfile(req);

    return err == OK ? with_job(req, NULL, load_ended) : err;
}
