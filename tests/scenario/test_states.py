# SPDX-License-Identifier: BSD-3-Clause
#
# A sample of the campaign of states and events (lib/states.py): each state and each
# event at least once. `make states` runs all cells, SEED=n repeats a run.

import os
import random

from lib import crash, states, states_ring, states_rows  # noqa: F401

# Cells at a time: they mostly wait.
WORKERS = 4


def sample(seed):
    """Returns cells that have each state and each event."""
    rng = random.Random(seed)
    names = states.cells()
    rng.shuffle(names)
    chosen, seen = [], set()
    for name in names:
        if not {("state", name[0]), ("event", name[1])} <= seen:
            seen |= {("state", name[0]), ("event", name[1])}
            chosen.append(states.Cell(*name, seed))
    return chosen


def test_a_sample_of_states_and_events():
    seed = crash.seeds(1)[0] if not os.environ.get("SEED") else \
        int(os.environ["SEED"])
    chosen = sample(seed)[:crash.amount("CELLS", 1000)]
    outcomes = states.run(chosen, WORKERS)
    print(states.show(outcomes))
    failed = [o for o in outcomes if o.problem]
    # On a loaded machine a deadline may pass: a second run, alone, decides.
    if len(failed) <= 2:
        failed = [o for o in failed if states.run_cell(o.cell).problem]
    assert not failed, "\n".join("%s\n%s" % (states.again(o.cell), o.problem)
                                 for o in failed)
