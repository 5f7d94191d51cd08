/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules of the user itself are applied here; all others go to its root
 * selector.
 */
#include "access/user.h"

#include "base/hex.h"
#include "base/mem.h"

static const char NO_SUCH_PASSWORD[] =
    "The password you are trying to remove from the user does not exist";
static const char BAD_HASH[] =
    "The password hash must be exactly 64 characters and contain only "
    "lowercase hexadecimal characters";

struct user *
user_try_new(struct slice name)
{
    struct user *user = mem_try_zalloc(sizeof(*user) + name.len + 1);

    if (user != NULL) {
        atomic_init(&user->refs, 1);
        user->len = name.len;
        if (name.len > 0) {
            memcpy(user->name, name.data, name.len);
        }
    }
    return user;
}

struct user *
user_ref(struct user *user)
{
    (void)atomic_fetch_add_explicit(&user->refs, 1, memory_order_relaxed);
    return user;
}

void
user_unref(struct user *user)
{
    if (user != NULL && atomic_fetch_sub(&user->refs, 1) == 1) {
        user_rules_fini(&user->rules);
        mem_free(user);
    }
}

bool
user_name_is_valid(struct slice name)
{
    return name.len > 0 && !slice_has_space(name);
}

static void end_part(struct user_rules *rules);

void
user_rules_fini(struct user_rules *rules)
{
    end_part(rules);
    buf_wipe(&rules->passwords);
    item_index_fini(&rules->known);
    selector_free_list(rules->root.next);
    selector_fini(&rules->root);
    *rules = (struct user_rules){ 0 };
}

bool
user_rules_copy(const struct user_rules *from, struct user_rules *ret_rules)
{
    struct user_rules copy = *from;
    struct selector **end = &copy.root.next;
    bool done;

    copy.passwords = (struct buf){ 0 };
    copy.known = (struct item_index){ 0 };
    copy.part = NULL;
    buf_append_slice(&copy.passwords, buf_slice(&from->passwords));
    done = !copy.passwords.failed;
    if (!selector_copy(&from->root, &copy.root)) {
        copy.root = (struct selector){ 0 };
        done = false;
    }
    for (const struct selector *s = from->root.next; done && s != NULL;
         s = s->next) {
        *end = mem_try_zalloc(sizeof(**end));
        done = *end != NULL && selector_copy(s, *end);
        end = done ? &(*end)->next : end;
    }
    if (!done) {
        user_rules_fini(&copy);
        return false;
    }
    *ret_rules = copy;
    return true;
}

/* ---- passwords ----------------------------------------------------------- */

static const unsigned char *
digest_at(const struct user_rules *rules, size_t at)
{
    return (const unsigned char *)rules->passwords.data + at;
}

static bool
next_digest(const struct buf *passwords, size_t *at, struct slice *ret_digest)
{
    if (*at == passwords->len) {
        return false;
    }
    *ret_digest = (struct slice){ passwords->data + *at, AUTH_DIGEST };
    *at += AUTH_DIGEST;
    return true;
}

/* Returns the place of a password, or SIZE_MAX. For changes of rules only: its
 * time depends on the passwords, so a login calls user_rules_fit(). */
static size_t
find_password(struct user_rules *rules, const unsigned char digest[AUTH_DIGEST])
{
    struct slice wanted = { (const char *)digest, AUTH_DIGEST };

    return item_index_find(&rules->known, &rules->passwords, next_digest,
                           wanted);
}

bool
user_rules_fit(const struct user_rules *rules,
               const unsigned char digest[AUTH_DIGEST])
{
    bool fits = false;

    for (size_t at = 0; at < rules->passwords.len; at += AUTH_DIGEST) {
        fits = auth_same(digest_at(rules, at), digest) || fits;
    }
    return fits;
}

static const char *
add_password(struct user_rules *rules, const unsigned char digest[AUTH_DIGEST])
{
    struct buf *passwords = &rules->passwords;

    if (find_password(rules, digest) == SIZE_MAX) {
        buf_append(passwords, digest, AUTH_DIGEST);
    }
    if (passwords->failed) {
        passwords->failed = false;
        return SELECTOR_NO_MEMORY;
    }
    rules->nopass = false;
    return NULL;
}

static const char *
remove_password(struct user_rules *rules,
                const unsigned char digest[AUTH_DIGEST])
{
    size_t at = find_password(rules, digest);
    struct buf *passwords = &rules->passwords;

    if (at == SIZE_MAX) {
        return NO_SUCH_PASSWORD;
    }
    memmove(passwords->data + at, passwords->data + at + AUTH_DIGEST,
            passwords->len - at - AUTH_DIGEST);
    passwords->len -= AUTH_DIGEST;
    item_index_fini(&rules->known);
    return NULL;
}

static void
forget_passwords(struct user_rules *rules)
{
    buf_wipe(&rules->passwords);
    rules->passwords = (struct buf){ 0 };
    item_index_fini(&rules->known);
    rules->nopass = false;
}

bool
user_rules_set_password(struct user_rules *rules, struct slice password)
{
    unsigned char digest[AUTH_DIGEST];

    forget_passwords(rules);
    if (password.len == 0) {
        rules->nopass = true;
        return true;
    }
    auth_hash(password, digest);
    return add_password(rules, digest) == NULL;
}

/* Applies >password, <password, #digest and !digest. */
static const char *
apply_password(struct user_rules *rules, char how, struct slice text)
{
    unsigned char digest[AUTH_DIGEST];

    if (how == '>' || how == '<') {
        auth_hash(text, digest);
    } else if (!hex_get_bytes(text, digest, sizeof(digest))) {
        return BAD_HASH;
    }
    return how == '>' || how == '#' ? add_password(rules, digest)
                                    : remove_password(rules, digest);
}

/* ---- selectors ----------------------------------------------------------- */

static void
add_selector(struct user_rules *rules, struct selector *selector)
{
    struct selector **end = &rules->root.next;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = selector;
}

static void
clear_selectors(struct user_rules *rules)
{
    selector_free_list(rules->root.next);
    rules->root.next = NULL;
}

/* ---- rules --------------------------------------------------------------- */

static void
reset(struct user_rules *rules)
{
    user_rules_fini(rules);
    rules->sanitize = true;
}

/* Applies the rule if it is one of these words, else returns false. */
static bool
apply_word(struct user_rules *rules, struct slice rule)
{
    bool on = slice_is_word(rule, "on");
    bool sanitize = slice_is_word(rule, "sanitize-payload");

    if (on || slice_is_word(rule, "off")) {
        rules->on = on;
    } else if (slice_is_word(rule, "nopass")) {
        forget_passwords(rules);
        rules->nopass = true;
    } else if (slice_is_word(rule, "resetpass")) {
        forget_passwords(rules);
    } else if (sanitize || slice_is_word(rule, "skip-sanitize-payload")) {
        rules->sanitize = sanitize;
        rules->skip_sanitize = !sanitize;
    } else if (slice_is_word(rule, "clearselectors")) {
        clear_selectors(rules);
    } else if (slice_is_word(rule, "reset")) {
        reset(rules);
    } else {
        return false;
    }
    return true;
}

static const char *
apply(struct user_rules *rules, struct slice rule)
{
    if (rule.len == 0 || apply_word(rules, rule)) {
        return NULL;
    }
    CHECK(rule.data != NULL);
    switch (rule.data[0]) {
    case '>':
    case '<':
    case '#':
    case '!':
        return apply_password(rules, rule.data[0],
                              (struct slice){ rule.data + 1, rule.len - 1 });
    default:
        return selector_apply(&rules->root, rule);
    }
}

/* ---- rules in pieces ----------------------------------------------------- */

enum {
    PIECE_RULES = 256,           /* of a selector, in one call */
    PIECE_PASSWORD = 128 * 1024, /* bytes in one call */
    SHOWN_BYTES = 1024           /* of a refused rule */
};

struct user_part {
    struct slice text; /* the rule */
    struct buf joined; /* words of a selector, if it has several */
    size_t end;        /* index of the word behind the rule */
    struct selector *selector;
    struct slice left; /* the selector's rules that are not applied yet */
    struct auth_sum sum;
};

static void
end_part(struct user_rules *rules)
{
    struct user_part *part = rules->part;

    if (part != NULL) {
        auth_sum_cleanse(&part->sum);
        selector_free_list(part->selector);
        buf_wipe(&part->joined);
        mem_free(part);
        rules->part = NULL;
    }
}

static bool
is_password(struct slice rule)
{
    return rule.len > 0 && (rule.data[0] == '>' || rule.data[0] == '<');
}

static bool
takes_pieces(struct slice word)
{
    return (word.len > 0 && word.data[0] == '(') ||
           (is_password(word) && word.len > PIECE_PASSWORD);
}

/* Joins the words of a selector. False: it does not end. */
static bool
join_words(const struct slice *words, size_t count, struct user_part *part)
{
    bool ends = false;

    while (!ends && part->end < count) {
        struct slice word = words[part->end++];

        buf_append_slice(&part->joined,
                         slice_of(part->joined.len > 0 ? " " : ""));
        buf_append_slice(&part->joined, word);
        ends = word.len > 0 && word.data[word.len - 1] == ')';
    }
    part->text = buf_slice(&part->joined);
    return ends;
}

/* Begins the rule at words[at]. If it returns false, *ret_reason says why; NULL
 * means a selector without its closing bracket. */
static bool
begin_part(struct user_rules *rules, const struct slice *words, size_t count,
           size_t at, const char **ret_reason)
{
    struct user_part *part = mem_try_zalloc(sizeof(*part));
    struct slice word = words[at];

    rules->part = part;
    *ret_reason = SELECTOR_NO_MEMORY;
    if (part == NULL) {
        return false;
    }
    part->end = at + 1;
    part->text = word;
    if (is_password(word)) {
        return true;
    }
    if (word.data[word.len - 1] != ')') {
        part->end = at;
        if (!join_words(words, count, part)) {
            part->text = word; /* only the first word is shown */
            *ret_reason = part->joined.failed ? SELECTOR_NO_MEMORY : NULL;
            return false;
        }
        if (part->joined.failed) {
            part->text = word;
            return false;
        }
    }
    part->selector = mem_try_zalloc(sizeof(*part->selector));
    part->left = (struct slice){ part->text.data + 1, part->text.len - 2 };
    return part->selector != NULL;
}

static enum user_applied
judge_reason(const char *reason)
{
    return reason == NULL ? USER_APPLIED : USER_REFUSED;
}

/* Refuses a rule inside a selector that ends in a parenthesis: in a file it
 * would seem to end the selector. */
static enum user_applied
continue_selector(struct user_rules *rules, const char **ret_reason)
{
    struct user_part *part = rules->part;
    struct slice rule;

    for (unsigned i = 0; i < PIECE_RULES; i++) {
        if (!slice_next_word(&part->left, &rule)) {
            selector_settle(part->selector);
            add_selector(rules, part->selector);
            part->selector = NULL;
            return USER_APPLIED;
        }
        *ret_reason = rule.data[rule.len - 1] == ')'
                          ? SELECTOR_SYNTAX
                          : selector_apply(part->selector, rule);
        if (*ret_reason != NULL) {
            return USER_REFUSED;
        }
    }
    return USER_IN_PART;
}

static enum user_applied
continue_password(struct user_rules *rules, const char **ret_reason)
{
    struct user_part *part = rules->part;
    struct slice password = { part->text.data + 1, part->text.len - 1 };
    unsigned char digest[AUTH_DIGEST];

    if (!auth_sum_add(&part->sum, password, PIECE_PASSWORD, digest)) {
        return USER_IN_PART;
    }
    *ret_reason = part->text.data[0] == '>' ? add_password(rules, digest)
                                            : remove_password(rules, digest);
    return judge_reason(*ret_reason);
}

/* Ends a rule. For a refused rule, enough is kept to show it. */
static enum user_applied
end_rule(enum user_applied applied, const char *reason, struct slice text,
         struct user_refusal *ret_refusal)
{
    if (applied == USER_REFUSED) {
        *ret_refusal = (struct user_refusal){ .reason = reason };
        text.len = text.len < SHOWN_BYTES ? text.len : SHOWN_BYTES;
        buf_append_slice(&ret_refusal->words, text);
    }
    return applied;
}

enum user_applied
user_rules_apply_next(struct user_rules *rules, const struct slice *words,
                      size_t count, size_t *at,
                      struct user_refusal *ret_refusal)
{
    struct slice word = words[*at];
    const char *reason = NULL;
    enum user_applied applied;

    if (!takes_pieces(word)) {
        ++*at;
        reason = apply(rules, word);
        return end_rule(judge_reason(reason), reason, word, ret_refusal);
    }
    if (rules->part == NULL && !begin_part(rules, words, count, *at, &reason)) {
        applied = USER_REFUSED;
    } else {
        applied = is_password(word) ? continue_password(rules, &reason)
                                    : continue_selector(rules, &reason);
    }
    if (applied == USER_IN_PART) {
        return applied;
    }
    if (rules->part != NULL) {
        *at = rules->part->end;
        word = rules->part->text;
    }
    applied = end_rule(applied, reason, word, ret_refusal);
    end_part(rules);
    return applied;
}

void
user_rules_settle(struct user_rules *rules)
{
    item_index_fini(&rules->known);
    for (struct selector *s = &rules->root; s != NULL; s = s->next) {
        selector_settle(s);
    }
}

bool
user_rules_apply(struct user_rules *rules, const struct slice *words,
                 size_t count, struct user_refusal *ret_refusal)
{
    enum user_applied applied = USER_APPLIED;

    for (size_t at = 0; applied != USER_REFUSED && at < count;) {
        applied = user_rules_apply_next(rules, words, count, &at, ret_refusal);
    }
    user_rules_settle(rules);
    return applied != USER_REFUSED;
}

/* ---- as text ------------------------------------------------------------- */

static void
put_passwords(const struct user_rules *rules, struct buf *text)
{
    char hex[2 * AUTH_DIGEST + 1];

    for (size_t at = 0; at < rules->passwords.len; at += AUTH_DIGEST) {
        hex_put_bytes(hex, digest_at(rules, at), AUTH_DIGEST);
        buf_append_slice(text, slice_lit("#"));
        buf_append(text, hex, (size_t)2 * AUTH_DIGEST);
        buf_append_slice(text, slice_lit(" "));
    }
}

void
user_put(const struct user *user, struct buf *text)
{
    const struct user_rules *rules = &user->rules;

    buf_append_slice(text, slice_lit("user "));
    buf_append_slice(text, user_name(user));
    buf_printf(text, " %s %s%s%s", rules->on ? "on" : "off",
               rules->nopass ? "nopass " : "",
               rules->skip_sanitize ? "skip-sanitize-payload " : "",
               rules->sanitize ? "sanitize-payload " : "");
    put_passwords(rules, text);
    selector_put(&rules->root, text);
    for (const struct selector *s = rules->root.next; s != NULL; s = s->next) {
        buf_append_slice(text, slice_lit(" ("));
        selector_put(s, text);
        buf_append_slice(text, slice_lit(")"));
    }
}

/* ---- permissions --------------------------------------------------------- */

/* Returns the selector with this number, which exists. */
static const struct selector *
selector_at(const struct user *user, size_t number)
{
    const struct selector *selector = &user->rules.root;

    for (; number > 0; number--) {
        selector = selector->next;
    }
    return selector;
}

enum denial
user_check_some(const struct user *user, const struct permission_query *query,
                struct user_progress *progress, int64_t *work, size_t *ret_at)
{
    const struct selector *s = selector_at(user, progress->selector);

    for (; s != NULL; s = s->next) {
        size_t at;
        enum denial denial =
            permission_check(s, query, &progress->next, work, &at);

        if (denial == DENIED_NOTHING || denial == UNDECIDED) {
            return denial;
        }
        if (denial > progress->worst ||
            (denial == progress->worst && at > progress->worst_at)) {
            progress->worst = denial;
            progress->worst_at = at;
        }
        progress->selector++;
        progress->next = 0;
    }
    *ret_at = progress->worst_at;
    return progress->worst;
}

enum denial
user_check(const struct user *user, const struct permission_query *query,
           size_t *ret_at)
{
    struct user_progress progress = { 0 };
    int64_t work = PERMISSION_ANY_WORK;

    *ret_at = 0;
    return user_check_some(user, query, &progress, &work, ret_at);
}

bool
user_has_channel(const struct user *user, struct slice channel, bool is_pattern)
{
    for (const struct selector *s = &user->rules.root; s != NULL; s = s->next) {
        if (permission_has_channel(s, channel, is_pattern)) {
            return true;
        }
    }
    return false;
}
