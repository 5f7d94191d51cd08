/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A user: which passwords log in as it, and what it may do. Its name never
 * changes, and it lives as long as sessions refer to it, even after it was
 * deleted; any thread may read the name while it has a reference. Everything
 * else belongs to the table of users (users.h): it changes only under the
 * raised gate, so commands read it inside their section of the gate without a
 * lock.
 */
#pragma once

#include "access/auth.h"
#include "access/permission.h"

#include <stdatomic.h>

struct user_part; /* user.c */

struct user_rules {
    bool on, nopass;
    bool sanitize, skip_sanitize; /* rules of Redis; here DUMP payloads are
                                     always checked */
    struct buf passwords;         /* digests, one after the other */
    struct item_index known;      /* index of passwords, made while many rules
                                     are applied */
    struct selector root;         /* root.next: the other selectors */
    struct user_part *part;       /* a rule applied in pieces; or NULL */
};

struct user {
    atomic_uint refs;
    bool gone;         /* it was deleted: the rules are empty */
    bool unrestricted; /* it may do everything, so nothing needs a check */
    uint64_t changed;  /* users.changes at the last change of the rules */
    struct user_rules rules;
    size_t len;
    char name[]; /* with a NUL */
};

/* Makes a user that is off and may do nothing. NULL without memory. */
struct user *user_try_new(struct slice name);
struct user *user_ref(struct user *user);

/* Frees the user with its last reference. NULL is fine. */
void user_unref(struct user *user);

static inline struct slice
user_name(const struct user *user)
{
    return (struct slice){ user->name, user->len };
}

/* Returns whether a name may be a user's: not empty, without blanks and NUL. */
bool user_name_is_valid(struct slice name);

void user_rules_fini(struct user_rules *rules);
MUST_CHECK bool user_rules_copy(const struct user_rules *from,
                                struct user_rules *ret_rules);

/* A refused rule: the reason (selector_apply), and its words joined by blanks,
 * which the caller frees. user_rules_apply() applies rules; a selector in
 * parentheses may be several words. If it returns false, some rules may be
 * applied already. */
struct user_refusal {
    const char *reason; /* NULL: a selector does not end */
    struct buf words;
};
MUST_CHECK bool user_rules_apply(struct user_rules *rules,
                                 const struct slice *words, size_t count,
                                 struct user_refusal *ret_refusal);

/* Applies the rule that begins at the word *at, and moves *at behind it. A long
 * selector or password takes several calls with the same words: all but the
 * last one return USER_IN_PART. After the last rule, user_rules_settle() frees
 * the indexes that speed up many rules. */
enum user_applied { USER_APPLIED, USER_IN_PART, USER_REFUSED };
MUST_CHECK enum user_applied
user_rules_apply_next(struct user_rules *rules, const struct slice *words,
                      size_t count, size_t *at,
                      struct user_refusal *ret_refusal);
void user_rules_settle(struct user_rules *rules);

/* Makes the password the only one; an empty one means that none is needed. */
MUST_CHECK bool user_rules_set_password(struct user_rules *rules,
                                        struct slice password);

/* Appends the line of ACL LIST. */
void user_put(const struct user *user, struct buf *text);

/* Returns whether the user has a password with this digest. The time depends
 * only on how many passwords there are. */
bool user_rules_fit(const struct user_rules *rules,
                    const unsigned char digest[AUTH_DIGEST]);

/* How far a check is; all zero at its beginning. */
struct user_progress {
    size_t selector, next;
    enum denial worst; /* the worst denial of the selectors before */
    size_t worst_at;
};

/* Returns DENIED_NOTHING if one selector permits the command, else the highest
 * denial and the argv position of its word. UNDECIDED: the work was used up
 * (permission.h), and the next call continues, if the rules are the same. */
enum denial user_check_some(const struct user *user,
                            const struct permission_query *query,
                            struct user_progress *progress, int64_t *work,
                            size_t *ret_at);

/* Does the same, with any amount of work. */
enum denial user_check(const struct user *user,
                       const struct permission_query *query, size_t *ret_at);
bool user_has_channel(const struct user *user, struct slice channel,
                      bool is_pattern);
