/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets the fields of a session from its first to its last command. The caller
 * ends a transaction with txn_end (txn.c) before session_fini.
 */
#include "engine/session.h"

#include "access/user.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/service.h"
#include "net/conn.h"
#include "tls/tls.h"

static void
clear_text(char **field)
{
    mem_free(*field);
    *field = NULL;
}

static void
forget_introduction(struct session *session)
{
    mem_free(session->introduction);
    session->introduction = NULL;
}

static void
set_defaults(struct session *session, bool authenticated)
{
    session->resp = 2;
    session->authenticated = authenticated;
    session->reply_mode = REPLY_ON;
    session->no_evict = false;
    session->no_touch = false;
    session->asking = false;
    session->reads_replica = false;
    session->held_until_ms = 0;
    atomic_store_explicit(&session->db, 0, memory_order_relaxed);
}

void
session_init(struct session *session, bool authenticated)
{
    uint64_t now_ms = clock_wall_ms();

    memset(session, 0, sizeof(*session));
    session->receiver.resp = &session->resp;
    set_defaults(session, authenticated);
    atomic_store_explicit(&session->created_ms, now_ms, memory_order_relaxed);
    atomic_store_explicit(&session->active_ms, now_ms, memory_order_relaxed);
    atomic_store_explicit(&session->multi_count, -1, memory_order_relaxed);
}

void
session_reset(struct session *session, bool authenticated)
{
    set_defaults(session, authenticated);
    clear_text(&session->name);
    forget_introduction(session);
}

void
session_set_user(struct session *session, struct user *user)
{
    struct user *before = session->user;

    session->user = user != NULL ? user_ref(user) : NULL;
    user_unref(before);
}

void
session_hears(struct session *session)
{
    const struct receiver *receiver = &session->receiver;
    bool subscribes = receiver_subscribes(receiver);

    session->subscribed = subscribes && session->resp == 2;
    session->was_subscribed = session->was_subscribed || session->subscribed;
    if (session->conn != NULL) {
        session->conn->output_class =
            subscribes || receiver->monitors ? OUTPUT_PUBSUB : OUTPUT_NORMAL;
    }
}

void
session_free_handover(struct handover *handover)
{
    if (handover != NULL) {
        user_unref(handover->user);
        tls_free(handover->tls);
        mem_free(handover);
    }
}

void
session_fini(struct session *session)
{
    if (session->again != NULL && session->again_free != NULL) {
        session->again_free(session->again);
    }
    session->again = NULL;
    mem_free(session->rights);
    session->rights = NULL;
    forget_introduction(session);
    session_free_handover(session->handover);
    session->handover = NULL;
    session_set_user(session, NULL);
    clear_text(&session->name);
    clear_text(&session->lib_name);
    clear_text(&session->lib_ver);
}

bool
session_set_text(char **field, struct slice text)
{
    char *copy = text.len > 0 ? mem_try_copy_text(text) : NULL;

    if (text.len > 0 && copy == NULL) {
        return false;
    }
    mem_free(*field);
    *field = copy;
    return true;
}

size_t
session_text_bytes(const struct session *session)
{
    const char *const texts[] = { session->name, session->lib_name,
                                  session->lib_ver };
    size_t bytes = 0;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bytes += texts[i] != NULL ? strlen(texts[i]) + 1 : 0;
    }
    return bytes +
           (session->introduction != NULL ? sizeof(struct introduction) : 0);
}

bool
session_text_is_valid(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '!' || text.data[i] > '~') {
            return false;
        }
    }
    return text.len <= SESSION_TEXT_MAX;
}
