/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay/inject.h"

#include "base/mem.h"
#include "engine/effect.h"
#include "engine/observe.h"
#include "replay/obey.h"

#include <stdio.h>

struct inject {
    struct obey obey;
};

struct inject *
inject_new(struct worker *worker)
{
    struct inject *inject = mem_zalloc(sizeof(*inject));

    obey_init(&inject->obey, worker->service, worker->index);
    inject->obey.worker->loop = worker->loop;
    inject->obey.worker->stats = worker->stats;
    inject->obey.worker->holds_gate = true;
    inject->obey.worker->insists = true;
    return inject;
}

void
inject_free(struct inject *inject)
{
    if (inject != NULL) {
        obey_fini(&inject->obey);
        mem_free(inject);
    }
}

bool
inject_run(struct inject *inject, struct slice commands, char *ret_reason,
           size_t reason_size)
{
    if (obey_needs_world(&inject->obey, commands)) {
        (void)snprintf(ret_reason, reason_size,
                       "a command acts on more than its keys");
        return false;
    }
    return obey_group(&inject->obey, commands, 0, ret_reason, reason_size);
}

void
inject_select(struct inject *inject, uint32_t db)
{
    atomic_store(&inject->obey.session.db, db);
}

void
inject_wake(struct inject *inject)
{
    struct worker *worker = inject->obey.worker;

    effect_kick(worker);
    if (worker->notices.to_wake != 0) {
        observe_wake_slow(worker);
    }
}
