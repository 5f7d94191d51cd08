/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread has its own descriptor of the data directory, since the server may
 * open another one meanwhile.
 */
#include "persist/learn.h"

#include "base/log.h"
#include "persist/persist_state.h"
#include "snapshot/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { IDLE, WRITES, WRITTEN };

static void *
write_secret(void *arg)
{
    struct persist_learning *learning = arg;

    learning->error = keyring_write(learning->dir_fd, learning->secret);
    atomic_store(&learning->state, WRITTEN);
    return NULL;
}

/* Returns whether the secret may be used although it was not stored: a server
 * that saves nothing may have a directory that it cannot write to. */
static bool
may_forget(const struct persist *persist, int error)
{
    const struct conf *conf = persist->options.conf;

    return (error == EACCES || error == EROFS || error == EPERM) &&
           conf->save.count == 0 && !conf->appendonly;
}

/* Waits for the thread. Puts a secret that was stored into the keyring. */
static void
finish(struct persist *persist)
{
    struct persist_learning *learning = &persist->learning;
    bool kept = learning->error == 0 || may_forget(persist, learning->error);

    (void)pthread_join(learning->thread, NULL);
    file_close(learning->dir_fd);
    atomic_store(&learning->state, IDLE);
    if (kept && bloom_add_secret(learning->secret) == BLOOM_OK) {
        log_notice("persist", "took a hash secret of another server",
                   "fingerprint=%016llx file=\"%s/" KEYRING_NAME
                   "/%016llx\" error=\"%s\"",
                   (unsigned long long)learning->fingerprint, persist->dir,
                   (unsigned long long)learning->fingerprint,
                   learning->error == 0 ? "" : strerror(learning->error));
    } else {
        log_warn("persist", "cannot keep a hash secret of another server",
                 "fingerprint=%016llx dir=\"%s/" KEYRING_NAME "\" error=\"%s\"",
                 (unsigned long long)learning->fingerprint, persist->dir,
                 learning->error == 0 ? KEYRING_FULL
                                      : strerror(learning->error));
    }
    explicit_bzero(learning->secret, sizeof(learning->secret));
}

static enum learn
begin_learning(struct persist *persist,
               const uint8_t secret[BLOOM_SECRET_BYTES], uint64_t fingerprint)
{
    struct persist_learning *learning = &persist->learning;

    if (keyring_is_full()) {
        log_warn("persist", "cannot keep a hash secret of another server",
                 "fingerprint=%016llx dir=\"%s/" KEYRING_NAME
                 "\" error=\"" KEYRING_FULL "\"",
                 (unsigned long long)fingerprint, persist->dir);
        return LEARN_FAILED;
    }
    learning->dir_fd = fcntl(persist->dir_fd, F_DUPFD_CLOEXEC, 0);
    if (learning->dir_fd < 0) {
        return LEARN_FAILED;
    }
    memcpy(learning->secret, secret, BLOOM_SECRET_BYTES);
    learning->fingerprint = fingerprint;
    atomic_store(&learning->state, WRITES);
    if (!thread_start(&learning->thread, "secret", write_secret, learning,
                      THREAD_PASSES)) {
        atomic_store(&learning->state, IDLE);
        file_close(learning->dir_fd);
        return LEARN_FAILED;
    }
    return LEARN_RUNS;
}

enum learn
learn_secret(struct persist *persist, const uint8_t secret[BLOOM_SECRET_BYTES])
{
    struct persist_learning *learning = &persist->learning;
    uint64_t fingerprint = keyring_fingerprint(secret);

    if (atomic_load(&learning->state) == WRITTEN) {
        finish(persist);
        if (learning->fingerprint == fingerprint) {
            return keyring_has(fingerprint) ? LEARN_DONE : LEARN_FAILED;
        }
    }
    if (keyring_has(fingerprint)) {
        return LEARN_DONE;
    }
    return atomic_load(&learning->state) == IDLE
               ? begin_learning(persist, secret, fingerprint)
               : LEARN_RUNS;
}

void
learn_end(struct persist *persist)
{
    if (atomic_load(&persist->learning.state) != IDLE) {
        finish(persist);
    }
}
