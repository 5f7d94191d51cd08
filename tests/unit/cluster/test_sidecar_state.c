/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all files of the sidecar use.
 */
#include "cluster/sidecar_state.h"

#include "../test.h"
#include "sidecar_rig.h"

TEST(questions_have_numbers_of_their_own_and_our_epoch)
{
    struct rig rig;
    uint64_t first;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(sidecar_epoch(rig.sidecar), 2);
    first = sidecar_ask(rig.sidecar,
                        (struct sidecar_ask){ .question = SIDECAR_ASK_HOLDINGS,
                                              .node = RIG_B });
    assert_int_equal(rig.ask[rig.asks - 1].number, first);
    assert_int_equal(rig.ask[rig.asks - 1].epoch, 1);
    assert_true(sidecar_ask(rig.sidecar, (struct sidecar_ask){
                                             .question = SIDECAR_ASK_HOLDINGS,
                                             .node = RIG_B }) > first);
    rig_fini(&rig);
}
