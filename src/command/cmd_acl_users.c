/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands that change users, under the raised gate: ACL SETUSER DELUSER
 * LOAD, and ACL SAVE, which only reads them. A thread does the disk's work; a
 * transaction cannot pause, so its loop waits for the disk.
 */
#include "access/handlers.h"
#include "access/users.h"
#include "access/users_file.h"
#include "base/mem.h"
#include "conf/conf_file.h"
#include "engine/request.h"

/* Makes all loops close connections that have lost their user or a right. This
 * connection closes after its reply. */
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
refuse_rule(struct request *req, struct user_refusal *refusal)
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

/* Applies rules until the time of one piece is over; after the last rule, puts
 * them in force. If the user has changed meanwhile, begins again. */
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
        if (user_rules_apply_next(&edit->rules, words, count, &edit->at,
                                  &refusal) == USER_REFUSED) {
            return refuse_rule(req, &refusal);
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

/* What the thread writes to a file, or has read from one. */
struct acl_text {
    struct users_draft draft;
    struct buf error;
    bool done;
};

static void
free_text(void *ctx)
{
    struct acl_text *text = ctx;

    users_draft_free(&text->draft);
    buf_free(&text->error);
    mem_free(text);
}

static bool
write_text(void *ctx, const char *path, struct buf *to)
{
    struct acl_text *text = ctx;

    (void)path;
    text->done = users_file_write(&text->draft, to, &text->error);
    return text->done;
}

static bool
read_text(void *ctx, const char *path, struct buf *from)
{
    struct acl_text *text = ctx;

    text->done =
        users_file_parse(path, buf_slice(from), &text->draft, &text->error);
    return true;
}

/* SAVE and LOAD while they work or wait. */
struct acl_transfer {
    bool reads;
    struct users_copy copy;    /* the copy for SAVE, before the job begins */
    struct conf_file_job *job; /* NULL: it has not begun */
};

static void
free_transfer(void *state)
{
    struct acl_transfer *transfer = state;

    users_copy_fini(&transfer->copy);
    if (transfer->job != NULL) {
        conf_file_forget(transfer->job);
    }
    mem_free(transfer);
}

/* Copies users until the time of one piece is over. OK: all are copied. */
static enum err
copy_users(struct request *req, struct users_copy *copy)
{
    enum users_copied copied;

    while ((copied = users_copy_next(req->service->users, copy)) ==
           USERS_COPY_ONE) {
        if (request_is_late(req)) {
            return ERR_AGAIN;
        }
    }
    return copied == USERS_COPY_ALL ? OK : ERR_NOMEM;
}

/* Begins the job. ERR_AGAIN: another one runs. */
static enum err
begin_job(struct request *req, struct acl_transfer *transfer)
{
    bool waits = !request_may_pause(req);
    struct acl_text *text = mem_try_zalloc(sizeof(*text));
    const struct conf_file_work work = { .run = transfer->reads ? read_text
                                                                : write_text,
                                         .free = free_text,
                                         .ctx = text };
    enum err err = ERR_NOMEM;

    if (text != NULL) {
        text->draft = transfer->copy.draft;
        err = conf_file_begin_text(req->service->conf_file,
                                   req->service->conf->aclfile, transfer->reads,
                                   &work, waits, &transfer->job);
    }
    if (err == OK) {
        transfer->copy.draft = (struct users_draft){ 0 };
        users_copy_fini(&transfer->copy);
    } else {
        mem_free(text); /* the copy keeps the draft */
    }
    if (err == OK && waits) {
        conf_file_wait(req->service->conf_file, transfer->job);
    }
    return err;
}

/* Continues the transfer. ERR_AGAIN: it is not done yet; call this again. */
static enum err
go_on(struct request *req, struct acl_transfer *transfer)
{
    enum err err = OK;

    if (transfer->job == NULL && !transfer->reads) {
        err = copy_users(req, &transfer->copy);
        if (err != OK) {
            return err;
        }
    }
    if (transfer->job == NULL) {
        err = begin_job(req, transfer);
    }
    if (err == OK && !conf_file_is_done(transfer->job)) {
        err = ERR_AGAIN;
    }
    if (err == ERR_AGAIN) {
        req->session->wait = CONN_FOR_EVENT;
    }
    return err;
}

static enum err
saved(struct request *req, const struct conf_file_job *job)
{
    const struct acl_text *text = conf_file_ctx(job);
    const char *error = conf_file_error(job);

    if (!text->done) {
        return text->error.failed
                   ? ERR_NOMEM
                   : request_fail(req, ERR_CUSTOM,
                                  "Error saving ACLs, the old file stays: "
                                  "%.*s",
                                  (int)text->error.len, text->error.data);
    }
    if (error != NULL) {
        return request_fail(req, ERR_CUSTOM, "Error saving ACLs: %s", error);
    }
    reply_ok(req->reply);
    return OK;
}

static enum err
loaded(struct request *req, const struct conf_file_job *job)
{
    struct users *users = req->service->users;
    struct acl_text *text = conf_file_ctx(job);
    const char *error = conf_file_error(job);

    if (error != NULL) {
        return request_fail(req, ERR_CUSTOM, "Error loading ACLs: %s", error);
    }
    if (!text->done) {
        return text->error.failed
                   ? ERR_NOMEM
                   : request_fail(req, ERR_CUSTOM, "%.*s", (int)text->error.len,
                                  text->error.data);
    }
    if (!users_draft_complete(&text->draft, users)) {
        return ERR_NOMEM;
    }
    users_take(users, &text->draft);
    users_changed(req);
    reply_ok(req->reply);
    return OK;
}

static enum err
transfer_users(struct request *req, bool reads)
{
    struct acl_transfer *transfer = request_resumed(req);
    enum err err;

    if (req->service->conf->aclfile[0] == '\0') {
        return request_fail(req, ERR_CUSTOM,
                            "This server has no ACL file: set the option "
                            "aclfile in its configuration and restart it");
    }
    if (transfer == NULL) {
        transfer = mem_try_zalloc(sizeof(*transfer));
        if (transfer == NULL) {
            return ERR_NOMEM;
        }
        transfer->reads = reads;
    }
    err = go_on(req, transfer);
    if (err == OK) {
        err = reads ? loaded(req, transfer->job) : saved(req, transfer->job);
    }
    return request_end_piece(req, err, transfer, free_transfer, 0);
}

enum err
cmd_acl_save(struct request *req)
{
    return transfer_users(req, false);
}

enum err
cmd_acl_load(struct request *req)
{
    return transfer_users(req, true);
}
