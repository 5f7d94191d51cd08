/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A change is prepared on a copy of the rules and exchanged in one step.
 */
#include "access/users.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <openssl/crypto.h>
#include <stdlib.h>

static const struct slice STANDARD = { "default", sizeof("default") - 1 };

/* ---- changes ------------------------------------------------------------- */

static void
note_change(struct users *users, struct user *user)
{
    uint64_t now = atomic_fetch_add(&users->changes, 1) + 1;

    user->changed = now;
    user->unrestricted = false;
    for (const struct selector *s = &user->rules.root; s != NULL; s = s->next) {
        user->unrestricted = user->unrestricted || selector_is_free(s);
    }
}

/* Exchanges the rules of a user with *rules. */
static void
exchange(struct users *users, struct user *user, struct user_rules *rules)
{
    struct user_rules before = user->rules;

    user->rules = *rules;
    *rules = before;
    note_change(users, user);
}

/* Takes away a user's rights, and drops the table's reference. */
static void
retire(struct users *users, struct user *user)
{
    user->gone = true;
    user_rules_fini(&user->rules);
    note_change(users, user);
    user_unref(user);
}

/* ---- the table ----------------------------------------------------------- */

/* Makes the rules of the default user at the start, with requirepass. */
static bool
make_standard(struct user_rules *rules, const struct users *users)
{
    static const struct slice words[] = {
        { "on", 2 }, { "allkeys", 7 }, { "allchannels", 11 }, { "+@all", 5 }
    };
    struct user_refusal refusal = { 0 };
    bool done = user_rules_apply(rules, words, sizeof(words) / sizeof(words[0]),
                                 &refusal);

    rules->nopass = !users->is_required;
    if (done && users->is_required) {
        buf_append(&rules->passwords, users->required, AUTH_DIGEST);
        done = !rules->passwords.failed;
    }
    buf_free(&refusal.words);
    return done;
}

struct users *
users_new(void)
{
    struct users *users = mem_zalloc(sizeof(*users));

    users->standard = user_try_new(STANDARD);
    CHECK(users->standard != NULL &&
          make_standard(&users->standard->rules, users) &&
          map_put(&users->by_name, STANDARD, users->standard));
    note_change(users, users->standard);
    return users;
}

static bool
unref_one(void *ctx, struct slice name, void *value)
{
    (void)ctx;
    (void)name;
    user_unref(value);
    return true;
}

void
users_free(struct users *users)
{
    if (users != NULL) {
        (void)map_each(&users->by_name, unref_one, NULL);
        map_free(&users->by_name);
        mem_free(users);
    }
}

struct user *
users_find(const struct users *users, struct slice name)
{
    return map_find(&users->by_name, name);
}

bool
users_ask_password(const struct users *users)
{
    return !users->standard->rules.nopass || !users->standard->rules.on;
}

/* Compares the password of an unknown user too, so that the time does not show
 * whether the user exists. */
struct user *
users_login(const struct users *users, struct slice name,
            const unsigned char digest[AUTH_DIGEST])
{
    static const struct user_rules nobody;
    struct user *user = users_find(users, name);
    const struct user_rules *rules = user != NULL ? &user->rules : &nobody;
    bool fits = user_rules_fit(rules, digest) || rules->nopass;

    if (user == NULL || !rules->on || !fits) {
        metric_add(METRIC_AUTH_FAILURES, 1);
        return NULL;
    }
    return user;
}

bool
users_edit_begin(const struct users *users, struct slice name,
                 struct users_edit *edit)
{
    static const struct user_rules fresh;
    const struct user *user = users_find(users, name);

    *edit = (struct users_edit){ .changed = user != NULL ? user->changed : 0 };
    return user_rules_copy(user != NULL ? &user->rules : &fresh, &edit->rules);
}

enum users_edited
users_edit_end(struct users *users, struct slice name, struct users_edit *edit)
{
    struct user *user = users_find(users, name);
    struct user *made;

    if ((user != NULL ? user->changed : 0) != edit->changed) {
        return USERS_CHANGED_MEANWHILE;
    }
    user_rules_settle(&edit->rules);
    if (user == NULL) {
        made = user_try_new(name);
        if (made == NULL || !map_put(&users->by_name, name, made)) {
            user_unref(made);
            return USERS_NO_MEMORY;
        }
        user = made;
    }
    exchange(users, user, &edit->rules);
    return USERS_EDITED;
}

bool
users_delete(struct users *users, struct slice name)
{
    struct user *user;

    CHECK(!slice_equal(name, STANDARD));
    user = map_remove(&users->by_name, name);
    if (user == NULL) {
        return false;
    }
    retire(users, user);
    return true;
}

void
users_follow_password(struct users *users, struct slice requirepass)
{
    unsigned char digest[AUTH_DIGEST];

    auth_hash(requirepass, digest);
    if (users->is_required != (requirepass.len > 0) ||
        (users->is_required && !auth_same(users->required, digest))) {
        memcpy(users->required, digest, sizeof(digest));
        users->is_required = requirepass.len > 0;
        /* This takes 32 bytes, which the reserve of memory provides. */
        CHECK(user_rules_set_password(&users->standard->rules, requirepass));
        note_change(users, users->standard);
    }
    OPENSSL_cleanse(digest, sizeof(digest));
}

bool
users_ignore_password(const struct users *users)
{
    return users->is_required &&
           !user_rules_fit(&users->standard->rules, users->required);
}

/* ---- in order ------------------------------------------------------------ */

struct gathering {
    struct user **list;
    size_t count;
};

static bool
gather(void *ctx, struct slice name, void *value)
{
    struct gathering *to = ctx;

    (void)name;
    to->list[to->count++] = value;
    return true;
}

static int
compare_names(const void *a, const void *b)
{
    const struct user *x = *(struct user *const *)a;
    const struct user *y = *(struct user *const *)b;
    int order = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);

    return order != 0 ? order : x->len < y->len ? -1 : x->len > y->len;
}

/* Returns all users in any order; NULL without memory. */
static struct user **
list_all(const struct users *users, size_t *ret_count)
{
    struct gathering to = { .list = mem_try_alloc(users->by_name.count *
                                                  sizeof(void *)) };

    if (to.list != NULL) {
        (void)map_each(&users->by_name, gather, &to);
        *ret_count = to.count;
    }
    return to.list;
}

struct user **
users_sorted(const struct users *users, size_t *ret_count)
{
    struct user **list = list_all(users, ret_count);

    if (list != NULL) {
        qsort(list, *ret_count, sizeof(void *), compare_names);
    }
    return list;
}

/* ---- drafts -------------------------------------------------------------- */

void
users_draft_free(struct users_draft *draft)
{
    for (size_t i = 0; i < draft->count; i++) {
        user_unref(draft->list[i]);
    }
    mem_free(draft->list);
    map_free(&draft->by_name);
    *draft = (struct users_draft){ 0 };
}

static bool
grow_draft(struct users_draft *draft)
{
    size_t capacity = draft->capacity > 0 ? 2 * draft->capacity : 8;
    struct user **list;

    if (draft->count < draft->capacity) {
        return true;
    }
    list = mem_try_realloc(draft->list, capacity * sizeof(struct user *));
    if (list != NULL) {
        draft->list = list;
        draft->capacity = capacity;
    }
    return list != NULL;
}

struct user *
users_draft_add(struct users_draft *draft, struct slice name,
                bool *ret_no_memory)
{
    struct user *user;

    *ret_no_memory = false;
    if (map_find(&draft->by_name, name) != NULL) {
        return NULL;
    }
    user = user_try_new(name);
    if (user == NULL || !grow_draft(draft) ||
        !map_put(&draft->by_name, name, user)) {
        user_unref(user);
        *ret_no_memory = true;
        return NULL;
    }
    draft->list[draft->count++] = user;
    return user;
}

bool
users_draft_complete(struct users_draft *draft, const struct users *users)
{
    struct user *user;
    bool no_memory;

    if (map_find(&draft->by_name, STANDARD) != NULL) {
        return true;
    }
    user = users_draft_add(draft, STANDARD, &no_memory);
    return user != NULL && make_standard(&user->rules, users);
}

void
users_draft_sort(struct users_draft *draft)
{
    if (draft->count > 0) {
        qsort(draft->list, draft->count, sizeof(void *), compare_names);
    }
}

void
users_copy_fini(struct users_copy *copy)
{
    users_draft_free(&copy->draft);
    mem_free(copy->users);
    *copy = (struct users_copy){ 0 };
}

static bool
copy_user(struct users_draft *draft, const struct user *from)
{
    bool no_memory;
    struct user *user = users_draft_add(draft, user_name(from), &no_memory);

    return user != NULL && user_rules_copy(&from->rules, &user->rules);
}

enum users_copied
users_copy_next(const struct users *users, struct users_copy *copy)
{
    uint64_t changes = atomic_load(&users->changes);

    if (copy->users == NULL || copy->changes != changes) {
        users_copy_fini(copy);
        copy->changes = changes;
        copy->users = list_all(users, &copy->count);
        if (copy->users == NULL) {
            return USERS_COPY_NO_MEMORY;
        }
    }
    if (copy->draft.count == copy->count) {
        return USERS_COPY_ALL;
    }
    return copy_user(&copy->draft, copy->users[copy->draft.count])
               ? USERS_COPY_ONE
               : USERS_COPY_NO_MEMORY;
}

/* A user that stays keeps its struct, to which sessions point. */
void
users_take(struct users *users, struct users_draft *draft)
{
    struct map before;

    for (size_t i = 0; i < draft->count; i++) {
        struct user *fresh = draft->list[i];
        struct user *user = map_remove(&users->by_name, user_name(fresh));

        if (user == NULL) {
            note_change(users, fresh);
            continue;
        }
        exchange(users, user, &fresh->rules);
        /* Replacing a value needs no memory. */
        CHECK(map_put(&draft->by_name, user_name(user), user));
        user_unref(fresh);
    }
    before = users->by_name; /* those that the draft does not have */
    users->by_name = draft->by_name;
    for (struct slice name; before.count > 0;) {
        struct user *user = map_random(&before, 0, &name);

        CHECK(user != NULL);
        (void)map_remove(&before, user_name(user));
        retire(users, user);
    }
    map_free(&before);
    mem_free(draft->list);
    *draft = (struct users_draft){ 0 };
    CHECK(users_find(users, STANDARD) == users->standard);
}
