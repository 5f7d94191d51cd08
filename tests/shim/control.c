/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The servers' side of the shared file: the lock, the rules and the log.
 */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(offsetof(struct layout, rules) == RULES_AT, "control.h");
_Static_assert(offsetof(struct layout, counts) == COUNTS_AT, "control.h");
_Static_assert(offsetof(struct layout, lock) == LOCK_AT, "control.h");
_Static_assert(offsetof(struct layout, log) == LOG_AT, "control.h");
_Static_assert(sizeof(struct rule) == 64, "control.h");
_Static_assert(sizeof(struct record) == 48, "control.h");

struct layout *control_shared;

bool
control_open(const char *path)
{
    struct stat st;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);

    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < LOG_AT) {
        return false;
    }
    struct layout *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_NORESERVE, fd, 0);
    syscall(SYS_close, fd);
    if (map == MAP_FAILED || map->control.magic != CONTROL_MAGIC) {
        return false;
    }
    if (map->control.ready == 0) {
        pthread_mutexattr_t attr;

        pthread_mutexattr_init(&attr);
        pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&map->lock, &attr);
        map->control.log_capacity = (uint64_t)st.st_size - LOG_AT;
        map->control.ready = 1;
    }
    control_shared = map;
    return true;
}

void
control_lock(void)
{
    /* A process that was killed while it had the lock left at most a wrong
     * counter. */
    if (pthread_mutex_lock(&control_shared->lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&control_shared->lock);
    }
}

void
control_unlock(void)
{
    pthread_mutex_unlock(&control_shared->lock);
}

/* ---- the log ------------------------------------------------------------- */

static uint64_t
mono_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void
control_append(struct record record, const struct bytes *pieces, size_t count)
{
    struct control *control = &control_shared->control;

    if (control->record == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        record.data_size += (uint32_t)pieces[i].len;
    }
    record.size = (uint32_t)((sizeof(record) + record.data_size + 7) & ~7U);
    if (control->log_used + record.size > control->log_capacity) {
        control->overflow = 1;
        return;
    }
    record.mono_ns = mono_ns();
    char *to = control_shared->log + control->log_used;
    memcpy(to, &record, sizeof(record));
    to += sizeof(record);
    for (size_t i = 0; i < count; i++) {
        memcpy(to, pieces[i].data, pieces[i].len);
        to += pieces[i].len;
    }
    control->log_used += record.size;
}

void
control_append_names(struct record record, const char *name, const char *other)
{
    const struct bytes pieces[] = { { name, strlen(name) },
                                    { "\0", 1 },
                                    { other == NULL ? "" : other,
                                      other == NULL ? 0 : strlen(other) } };

    control_append(record, pieces, other == NULL ? 1 : 3);
}

/* ---- rules --------------------------------------------------------------- */

static void
end_it(void)
{
    kill(getpid(), SIGKILL);
    for (;;) {
        pause();
    }
}

/* Waits as long as the rule says, or until it is disarmed. */
static void
wait_for_rule(const struct rule *rule)
{
    const volatile uint32_t *armed = &rule->armed; /* the test changes it */
    uint64_t end_ns = mono_ns() + (uint64_t)rule->delay_ms * 1000000;

    while (*armed != 0 && mono_ns() < end_ns) {
        struct timespec pause = { 0, 500000 };

        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
}

static void
apply_rule(struct rule *rule, struct step *step, bool *ret_kill,
           const struct rule **ret_delay)
{
    if (rule->armed == 0 || (rule->calls >> step->call & 1) == 0 ||
        (rule->kinds >> step->kind & 1) == 0) {
        return;
    }
    rule->seen++;
    if (rule->seen != rule->nth &&
        !(rule->seen > rule->nth && (rule->flags & RULE_FOR_GOOD) != 0) &&
        !((rule->flags & RULE_EVERY) != 0 && rule->seen % rule->nth == 0)) {
        return;
    }
    rule->fired++;
    rule->fired_call = step->call;
    rule->fired_kind = step->kind;
    switch ((enum action)rule->action) {
    case ACTION_KILL_BEFORE:
        *ret_kill = true;
        break;
    case ACTION_KILL_AFTER:
        step->kill_after = true;
        break;
    case ACTION_FAIL:
        step->error = (int)rule->error;
        step->shorten = (rule->flags & RULE_SHORT) != 0;
        break;
    case ACTION_DELAY:
        *ret_delay = rule;
        break;
    case ACTION_LIE:
        step->lie = true;
        break;
    }
}

struct step
control_begin(enum call call, enum kind kind)
{
    struct step step = { .call = call, .kind = kind };
    bool die = false;
    const struct rule *delay = NULL;

    control_lock();
    if (kind != KIND_SOCKET) {
        step.number = ++control_shared->control.number;
    }
    control_shared->counts[call][kind]++;
    for (int i = 0; i < RULES; i++) {
        apply_rule(&control_shared->rules[i], &step, &die, &delay);
    }
    control_unlock();
    if (delay != NULL) {
        wait_for_rule(delay);
    }
    if (die) {
        end_it();
    }
    return step;
}

void
control_finish(const struct step *step)
{
    if (step->kill_after) {
        end_it();
    }
}

struct record
control_record(const struct step *step, enum record_type type)
{
    return (struct record){ .type = (uint8_t)type,
                            .call = (uint8_t)step->call,
                            .kind = (uint8_t)step->kind,
                            .number = step->number };
}
