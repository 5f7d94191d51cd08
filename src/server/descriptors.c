/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures below were counted in /proc/self/fd of a server that does
 * everything at once; tests/scenario/test_descriptors.py starts one with few
 * descriptors.
 */
#include "server/descriptors.h"

#include "base/log.h"

#include <dirent.h>
#include <sys/resource.h>

enum {
    OF_A_LOOP = 4,  /* epoll, an eventfd, a pipe for signals */
    OF_LOOP_0 = 5,  /* two more pipes, and the watchdog's socket */
    OF_ACCEPT = 2,  /* the listener's reserve, and a client being refused */
    OF_JOURNAL = 8, /* directory, two increments, a base and a manifest, each
                       also while its successor is written */
    OF_SAVE = 5,    /* data directory, its lock, a snapshot, the spool */
    OF_REPLICATION = 12, /* the primary, name look-ups, the pipe of a
                            synchronization, a transfer, the role file */
    OF_OTHERS = 3        /* CONFIG REWRITE, /proc */
};

/* Counts the descriptors that are open now. */
static uint64_t
count_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (dir == NULL) {
        return 3;
    }
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count > 3 ? count - 3 : 0; /* ".", "..", and dir's own */
}

static uint64_t
count_words(const char *text)
{
    uint64_t count = 0;

    for (const char *at = text; *at != '\0'; at++) {
        count += *at != ' ' && (at == text || at[-1] == ' ');
    }
    return count;
}

uint64_t
descriptors_own(const struct conf *conf, unsigned threads)
{
    uint64_t listeners = count_words(conf->bind) + 1; /* the unix socket */

    if (conf->tls_port > 0) {
        listeners += count_words(conf->bind);
    }
    if (conf->admin_port > 0) {
        listeners += count_words(conf->admin_bind);
    }
    if (conf->metrics_port > 0) {
        listeners += count_words(conf->metrics_bind) +
                     (uint64_t)conf->metrics_max_clients;
    }
    return count_open() + listeners + (uint64_t)threads * OF_A_LOOP +
           OF_LOOP_0 + OF_ACCEPT + OF_JOURNAL + OF_SAVE + OF_REPLICATION +
           OF_OTHERS;
}

static void
lower(int64_t *value, uint64_t most)
{
    if (*value > 0 && (uint64_t)*value > most) {
        *value = (int64_t)most;
    }
}

bool
descriptors_share(struct conf *conf, uint64_t own, uint64_t limit)
{
    bool enough = limit >= own + DESCRIPTORS_CLIENTS_MIN;
    uint64_t left = enough ? limit - own : DESCRIPTORS_CLIENTS_MIN;
    uint64_t beside =
        (uint64_t)conf->reserved_clients + (uint64_t)conf->max_replicas;

    /* With few descriptors the operator and replicas get a quarter each. */
    if ((uint64_t)conf->maxclients + beside > left && beside > left / 2) {
        lower(&conf->reserved_clients, left / 4);
        lower(&conf->max_replicas, left / 4);
        beside =
            (uint64_t)conf->reserved_clients + (uint64_t)conf->max_replicas;
    }
    lower(&conf->maxclients, left - beside);
    return enough;
}

/* Raises the limit to `need` if possible. Returns the limit in force. */
static uint64_t
raise_limit(uint64_t need)
{
    struct rlimit limit;
    rlim_t before;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return need;
    }
    before = limit.rlim_cur;
    if (before >= need) {
        return before;
    }
    limit.rlim_cur = limit.rlim_max != RLIM_INFINITY && limit.rlim_max < need
                         ? limit.rlim_max
                         : need;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

bool
descriptors_fit(struct conf *conf, uint64_t own)
{
    const int64_t clients = conf->maxclients;
    const int64_t replicas = conf->max_replicas;
    uint64_t limit =
        raise_limit(own + (uint64_t)conf->reserved_clients +
                    (uint64_t)conf->max_replicas + (uint64_t)conf->maxclients);
    bool enough = descriptors_share(conf, own, limit);

    if (!enough) {
        log_error("server", "too few descriptors",
                  "descriptors=%llu needed=%llu help=\"raise LimitNOFILE or "
                  "ulimit -n, or lower threads\"",
                  (unsigned long long)limit,
                  (unsigned long long)own + DESCRIPTORS_CLIENTS_MIN);
    } else if (conf->maxclients < clients || conf->max_replicas < replicas) {
        log_warn("server", "lowered maxclients to the descriptor limit",
                 "maxclients=%lld reserved_clients=%lld max_replicas=%lld "
                 "descriptors=%llu",
                 (long long)conf->maxclients, (long long)conf->reserved_clients,
                 (long long)conf->max_replicas, (unsigned long long)limit);
    }
    return enough;
}
