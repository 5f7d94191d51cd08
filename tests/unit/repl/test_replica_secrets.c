/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a replica asks for hash secrets, and goes on without them.
 */
#include "repl/replica_secrets.h"

#include "replica_rig.h"

#define SECRET "00112233445566778899aabbccddeeff"
#define ASKED  "REPLCONF listening-port 7379"

/* Introduces the replica; it asks for the first fingerprints. */
static struct rig *
asking(void)
{
    struct rig *rig = rig_new_asking(true);

    rig->known = 0xff;
    rig->learns = REPLICA_LEARNED;
    follow(rig);
    replica_opened(rig->replica, rig->number, rig->now_ms);
    (void)said(rig);
    hear(rig, "+BLOOMERY 1 " PRIMARY_ID " -\r\n");
    assert_string_equal("REPLCONF hash-secret ?0", said(rig));
    return rig;
}

static void
assert_learnt(struct rig *rig, const char *text)
{
    buf_append(&rig->learnt, "", 1);
    assert_string_equal(rig->learnt.data, text);
    buf_reset(&rig->learnt, SIZE_MAX);
}

TEST(each_missing_secret_is_asked_for_once)
{
    struct rig *rig = asking();

    hear(rig, "+00000000000000ff 0000000000000001 0000000000000002\r\n");
    assert_string_equal("REPLCONF hash-secret 0000000000000001", said(rig));
    hear(rig, "+" SECRET "\r\n");
    assert_string_equal("REPLCONF hash-secret 0000000000000002", said(rig));
    hear(rig, "+" SECRET "\r\n");
    assert_string_equal(ASKED, said(rig));
    assert_learnt(rig, "1=" SECRET ";2=" SECRET ";");
    hear(rig, "+OK\r\n");
    expect_psync(rig);
    rig_free(rig);
}

TEST(nothing_is_asked_of_a_primary_without_other_secrets)
{
    struct rig *rig = asking();

    hear(rig, "+-\r\n");
    assert_string_equal(ASKED, said(rig));
    rig_free(rig);
    rig = asking();
    hear(rig, "+00000000000000ff\r\n");
    assert_string_equal(ASKED, said(rig));
    rig_free(rig);
}

TEST(a_full_page_is_followed_by_the_next)
{
    struct rig *rig = asking();
    struct buf page = { 0 };

    for (int i = 0; i < REPLICA_SECRETS_PAGE; i++) {
        buf_printf(&page, "%c00000000000000ff", i == 0 ? '+' : ' ');
    }
    buf_append(&page, "\r\n", 3);
    hear(rig, page.data);
    assert_string_equal("REPLCONF hash-secret ?32", said(rig));
    hear(rig, "+0000000000000003\r\n");
    assert_string_equal("REPLCONF hash-secret 0000000000000003", said(rig));
    buf_free(&page);
    rig_free(rig);
}

TEST(a_secret_is_kept_before_anything_else_happens)
{
    struct rig *rig = asking();

    rig->learns = REPLICA_LEARNING;
    hear(rig, "+0000000000000001\r\n");
    (void)said(rig);
    hear(rig, "+" SECRET "\r\n");
    assert_string_equal("", said(rig));
    tick(rig, 100);
    assert_string_equal("", said(rig));
    rig->learns = REPLICA_LEARNED;
    tick(rig, 100);
    assert_string_equal(ASKED, said(rig));
    assert_learnt(rig, "1=" SECRET ";1=" SECRET ";1=" SECRET ";");
    rig_free(rig);
}

TEST(a_primary_that_gives_none_is_followed_and_its_words_are_the_reason)
{
    static const char *const answers[] = { "-ERR Unrecognized REPLCONF option",
                                           "-ERR hash secrets are not given: x",
                                           "+rubbish rubbish r" };

    for (size_t i = 0; i < 3; i++) {
        struct rig *rig = asking();
        char line[64];

        (void)snprintf(line, sizeof(line), "%s\r\n", answers[i]);
        hear(rig, line);
        assert_string_equal(ASKED, said(rig));
        hear(rig, "+OK\r\n");
        expect_psync(rig);
        hear(rig,
             "+FULLRESYNC " HISTORY " 9000 77 " KEY_TEXT " 5000\r\n$0\r\n");
        replica_loaded(rig->replica, false, "no secret.", rig->now_ms);
        assert_non_null(strstr(reason_of(rig), "no secret. Asked for it"));
        assert_true(i == 2 || strstr(reason_of(rig), answers[i] + 1) != NULL);
        rig_free(rig);
    }
}

/* Returns the pause before the next attempt, in tenths of a second. */
static unsigned
pause_of(struct rig *rig)
{
    unsigned dials = rig->dials;
    unsigned tenths = 0;

    while (rig->dials == dials) {
        tick(rig, 100);
        tenths++;
        assert_true(tenths < 1000);
    }
    return tenths;
}

TEST(refused_snapshots_become_rare_until_a_secret_comes)
{
    struct rig *rig = asking();
    unsigned longest = 0;

    for (int i = 0; i < 14; i++) {
        hear(rig, "+-\r\n+OK\r\n");
        hear(rig,
             "+FULLRESYNC " HISTORY " 9000 77 " KEY_TEXT " 5000\r\n$0\r\n");
        replica_loaded(rig->replica, false, "no secret", rig->now_ms);
        longest = pause_of(rig);
        replica_opened(rig->replica, rig->number, rig->now_ms);
        hear(rig, "+BLOOMERY 1 " PRIMARY_ID " -\r\n");
        (void)said(rig);
    }
    assert_true(longest >= 600 && longest <= 760);
    hear(rig, "+0000000000000001\r\n+" SECRET "\r\n");
    assert_non_null(strstr(said(rig), " capa refused:the snapshot could"));
    hear(rig, "+OK\r\n");
    hear(rig, "+FULLRESYNC " HISTORY " 9000 77 " KEY_TEXT " 5000\r\n$0\r\n");
    replica_loaded(rig->replica, false, "no secret", rig->now_ms);
    assert_true(pause_of(rig) <= 3);
    rig_free(rig);
}
