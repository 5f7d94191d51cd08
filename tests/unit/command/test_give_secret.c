/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who is told of hash secrets; tests/scenario/test_keyring.py has the rights of
 * users and the links.
 */
#include "command/give_secret.h"

#include "../engine/rig.h"
#include "core/keyed.h"

TEST(a_secret_is_given_to_a_server_that_has_introduced_itself)
{
    static const uint8_t secret[BLOOM_SECRET_BYTES] = { 1, 2, 3 };
    struct rig *rig = rig_new();

    bloom_use_secret(secret);
    run_and_expect(rig, "REPLCONF hash-secret ?",
                   "-ERR hash secrets are not given: only servers that "
                   "replicate get one\r\n");
    rig->session.introduction = mem_zalloc(sizeof(struct introduction));
    rig->session.introduction->is_bloomery = true;
    rig->session.user = NULL;
    run_and_expect(rig, "REPLCONF hash-secret 0000000000000001",
                   "-ERR hash secrets are not given: log in (masterauth) or "
                   "show a client certificate\r\n");
    rig_free(rig);
}
