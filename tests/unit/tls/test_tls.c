/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two sides without sockets: a test carries the bytes from one to the other,
 * whole, cut anywhere, or damaged. OpenSSL allocates through base/mem.h, so
 * that allocations can fail and are counted.
 */
#include "tls/tls.h"

#include "../test.h"
#include "base/mem.h"
#include "certs.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void
use_mem(void)
{
    tls_use_mem();
}

struct side {
    struct tls *tls;
    struct buf plain, sealed; /* what it heard, and what it wants to send */
    enum tls_result result;
};

struct pair {
    struct tls_contexts contexts[2]; /* of the server, of the client */
    struct side server, client;
    size_t piece; /* carried at a time; 0: all */
};

static struct pair
pair_of(const struct tls_settings *server, const struct tls_settings *client)
{
    struct pair pair = { .piece = 0 };

    tls_contexts_init(&pair.contexts[0]);
    tls_contexts_init(&pair.contexts[1]);
    certs_load(&pair.contexts[0], server);
    certs_load(&pair.contexts[1], client);
    pair.server.tls = tls_new_server(&pair.contexts[0]);
    pair.client.tls = tls_new_dial(&pair.contexts[1], "localhost");
    assert_non_null(pair.server.tls);
    assert_non_null(pair.client.tls);
    return pair;
}

static struct pair
pair_new(void)
{
    struct tls_settings settings = certs_settings();

    return pair_of(&settings, &settings);
}

static void
side_free(struct side *side)
{
    tls_free(side->tls);
    buf_free(&side->plain);
    buf_free(&side->sealed);
}

static void
pair_free(struct pair *pair)
{
    side_free(&pair->server);
    side_free(&pair->client);
    tls_contexts_fini(&pair->contexts[0]);
    tls_contexts_fini(&pair->contexts[1]);
    assert_int_equal(0, ERR_peek_error());
}

static void
give(struct side *to, struct slice bytes)
{
    to->result = tls_open(to->tls, bytes, &to->plain, &to->sealed);
}

/* Carries what one side wants to send to the other. */
static void
carry(struct pair *pair, struct side *from, struct side *to)
{
    struct slice rest = buf_slice(&from->sealed);

    while (rest.len > 0 && to->result == TLS_MORE) {
        size_t n =
            pair->piece > 0 && pair->piece < rest.len ? pair->piece : rest.len;

        give(to, (struct slice){ rest.data, n });
        rest.data += n;
        rest.len -= n;
    }
    from->sealed.len = 0;
}

/* Until nothing is on its way. */
static void
settle(struct pair *pair)
{
    for (int i = 0; i < 20; i++) {
        carry(pair, &pair->client, &pair->server);
        carry(pair, &pair->server, &pair->client);
    }
    assert_int_equal(0, pair->client.sealed.len + pair->server.sealed.len);
}

static void
shake_hands(struct pair *pair)
{
    give(&pair->client, slice_lit(""));
    settle(pair);
}

static void
expect_established(struct pair *pair)
{
    shake_hands(pair);
    assert_true(tls_is_established(pair->server.tls));
    assert_true(tls_is_established(pair->client.tls));
}

static void
say(struct pair *pair, struct side *from, struct side *to, struct slice text)
{
    to->plain.len = 0;
    assert_true(tls_seal(from->tls, text, &from->sealed));
    carry(pair, from, to);
    assert_int_equal(TLS_MORE, to->result);
    assert_true(slice_equal(text, buf_slice(&to->plain)));
}

/* The handshake fails for both, and the server says why. */
static void
expect_no_handshake(const struct tls_settings *server,
                    const struct tls_settings *client, const char *reason)
{
    struct pair pair = pair_of(server, client);

    shake_hands(&pair);
    assert_int_equal(TLS_FAILED, pair.server.result);
    assert_int_equal(TLS_FAILED, pair.client.result);
    if (strstr(tls_reason(pair.server.tls), reason) == NULL) {
        fail_msg("\"%s\"", tls_reason(pair.server.tls));
    }
    assert_false(
        tls_seal(pair.server.tls, slice_lit("x"), &pair.server.sealed));
    pair_free(&pair);
}

TEST(bytes_arrive_in_both_directions)
{
    struct pair pair = pair_new();

    expect_established(&pair);
    say(&pair, &pair.client, &pair.server, slice_lit("PING\r\n"));
    say(&pair, &pair.server, &pair.client, slice_lit("+PONG\r\n"));
    pair_free(&pair);
}

TEST(bytes_may_be_cut_anywhere)
{
    static char text[40000];

    memset(text, 'x', sizeof(text));
    for (size_t piece = 1; piece < 6; piece++) {
        struct pair pair = pair_new();

        pair.piece = piece;
        expect_established(&pair);
        say(&pair, &pair.client, &pair.server,
            (struct slice){ text, sizeof(text) });
        say(&pair, &pair.server, &pair.client,
            (struct slice){ text, sizeof(text) });
        pair_free(&pair);
    }
}

/* The server keeps what came, waits, and is freed without a trace. */
TEST(a_handshake_may_end_at_every_byte)
{
    struct tls_settings settings = certs_settings();
    size_t len = 1;

    for (size_t cut = 0; cut < len; cut += 1 + cut / 64) {
        struct pair pair = pair_of(&settings, &settings);

        give(&pair.client, slice_lit(""));
        len = pair.client.sealed.len;
        give(&pair.server, (struct slice){ pair.client.sealed.data, cut });
        assert_int_equal(TLS_MORE, pair.server.result);
        assert_false(tls_is_established(pair.server.tls));
        assert_int_equal(cut > 0, tls_is_inside_record(pair.server.tls));
        pair_free(&pair);
    }
}

TEST(a_part_of_a_record_is_noticed)
{
    struct pair pair = pair_new();
    size_t len;

    expect_established(&pair);
    assert_false(tls_is_inside_record(pair.server.tls));
    assert_true(
        tls_seal(pair.client.tls, slice_lit("PING\r\n"), &pair.client.sealed));
    len = pair.client.sealed.len;
    for (size_t i = 0; i < len; i++) {
        give(&pair.server, (struct slice){ pair.client.sealed.data + i, 1 });
        assert_int_equal(i + 1 < len, tls_is_inside_record(pair.server.tls));
    }
    assert_true(
        slice_equal(slice_lit("PING\r\n"), buf_slice(&pair.server.plain)));
    pair.client.sealed.len = 0;
    pair_free(&pair);
}

/* Whatever byte is damaged, no byte of the plain text changes. */
TEST(a_damaged_byte_is_found)
{
    uint64_t seed = test_seed();

    for (unsigned i = 0; i < 40; i++) {
        struct pair pair = pair_new();
        size_t at;

        expect_established(&pair);
        assert_true(tls_seal(pair.client.tls, slice_lit("BF.ADD key item\r\n"),
                             &pair.client.sealed));
        at = test_random_below(&seed, pair.client.sealed.len);
        pair.client.sealed.data[at] ^= (char)(1U << (i % 8));
        pair.server.plain.len = 0;
        carry(&pair, &pair.client, &pair.server);
        assert_int_equal(0, pair.server.plain.len);
        assert_true(pair.server.result == TLS_FAILED || at < 5);
        pair_free(&pair);
    }
}

TEST(garbage_is_no_handshake)
{
    static const struct slice garbage[] = {
        { "PING\r\n", 6 },
        { "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27 },
        { "*1\r\n$4\r\nPING\r\n", 14 },
        { "\x16\x03\x01\xff\xff\x01\x00\x00\x00\x00\x00", 11 },
    };

    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        struct pair pair = pair_new();

        give(&pair.server, garbage[i]);
        assert_int_equal(TLS_FAILED, pair.server.result);
        assert_non_null(tls_reason(pair.server.tls));
        assert_int_equal(0, pair.server.plain.len);
        give(&pair.server, garbage[i]); /* still failed */
        assert_int_equal(TLS_FAILED, pair.server.result);
        pair_free(&pair);
    }
}

TEST(clients_need_a_certificate_of_the_authority)
{
    struct tls_settings server = certs_settings();
    struct tls_settings client = server;

    client.client_cert_file = certs_get()->stranger;
    client.client_key_file = certs_get()->stranger;
    expect_no_handshake(&server, &client, "unable to get local issuer");
    client.client_cert_file = certs_get()->stale;
    client.client_key_file = certs_get()->stale;
    expect_no_handshake(&server, &client, "expired");
}

TEST(clients_without_a_certificate_are_refused_if_one_is_needed)
{
    static const enum tls_auth asks[] = { TLS_AUTH_YES, TLS_AUTH_OPTIONAL,
                                          TLS_AUTH_NO };

    for (size_t i = 0; i < 3; i++) {
        struct tls_settings server = certs_settings();
        struct tls_settings client = server;
        struct pair pair;

        server.auth_clients = asks[i];
        pair = pair_of(&server, &client);
        tls_free(pair.client.tls);
        SSL_CTX_free(pair.contexts[1].dial);
        pair.contexts[1].dial = SSL_CTX_new(TLS_client_method());
        (void)SSL_CTX_load_verify_file(pair.contexts[1].dial, certs_get()->ca);
        pair.client.tls = tls_new_dial(&pair.contexts[1], "localhost");
        shake_hands(&pair);
        assert_int_equal(asks[i] != TLS_AUTH_YES,
                         tls_is_established(pair.server.tls));
        if (asks[i] == TLS_AUTH_YES) {
            assert_string_equal("peer did not return a certificate",
                                tls_reason(pair.server.tls));
        }
        pair_free(&pair);
    }
}

TEST(an_optional_certificate_must_still_be_good)
{
    struct tls_settings server = certs_settings();
    struct tls_settings client = server;

    server.auth_clients = TLS_AUTH_OPTIONAL;
    client.client_cert_file = certs_get()->stranger;
    client.client_key_file = certs_get()->stranger;
    expect_no_handshake(&server, &client, "unable to get local issuer");
}

static void
expect_dial(const struct tls_settings *server,
            const struct tls_settings *client, const char *host,
            const char *reason)
{
    struct pair pair = pair_of(server, client);

    tls_free(pair.client.tls);
    pair.client.tls = tls_new_dial(&pair.contexts[1], host);
    shake_hands(&pair);
    if (reason == NULL) {
        assert_int_equal(TLS_MORE, pair.client.result);
        say(&pair, &pair.client, &pair.server, slice_lit("PING\r\n"));
    } else {
        assert_int_equal(TLS_FAILED, pair.client.result);
        if (strstr(tls_reason(pair.client.tls), reason) == NULL) {
            fail_msg("\"%s\"", tls_reason(pair.client.tls));
        }
        assert_false(tls_is_established(pair.server.tls));
    }
    pair_free(&pair);
}

TEST(a_dialled_server_must_be_the_one_that_was_meant)
{
    struct tls_settings settings = certs_settings();
    struct tls_settings other = settings;

    expect_dial(&settings, &settings, "localhost", NULL);
    expect_dial(&settings, &settings, "127.0.0.1", NULL);
    expect_dial(&settings, &settings, "example.org", "hostname mismatch");
    expect_dial(&settings, &settings, "127.0.0.2", "IP address mismatch");
    other.check_names = false;
    expect_dial(&settings, &other, "example.org", NULL);
    other.ca_cert_file = certs_get()->other_ca;
    expect_dial(&settings, &other, "localhost", "self-signed certificate");
    other = settings; /* trusts the certificate itself, not its authority */
    other.ca_cert_file = settings.cert_file;
    expect_dial(&settings, &other, "localhost", "certificate");
    other.partial_chains = true;
    expect_dial(&settings, &other, "localhost", NULL);
    other.ca_cert_file = certs_get()->stale;
    expect_dial(&settings, &other, "localhost", "certificate");
    other = settings;
    other.cert_file = certs_get()->stale;
    other.key_file = certs_get()->stale;
    expect_dial(&other, &settings, "localhost", "expired");
}

/* OpenSSL takes the place of the machine's authorities from there. */
TEST(a_dialled_server_may_be_of_an_authority_of_the_machine)
{
    struct tls_settings settings = certs_settings();
    struct tls_settings known = settings;

    assert_int_equal(setenv("SSL_CERT_FILE", settings.ca_cert_file, 1), 0);
    known.serves = false;
    known.ca_cert_file = "";
    known.known_authorities = true;
    expect_dial(&settings, &known, "localhost", NULL);
    assert_int_equal(setenv("SSL_CERT_FILE", certs_get()->other_ca, 1), 0);
    expect_dial(&settings, &known, "localhost", "certificate");
    assert_int_equal(unsetenv("SSL_CERT_FILE"), 0);
}

TEST(protocols_are_those_that_are_allowed)
{
    struct tls_settings two = certs_settings();
    struct tls_settings three = two;
    struct pair pair;

    two.protocols = "TLSv1.2";
    three.protocols = "TLSv1.3";
    expect_no_handshake(&two, &three, "unsupported protocol");
    pair = pair_of(&two, &two);
    expect_established(&pair);
    say(&pair, &pair.client, &pair.server, slice_lit("PING\r\n"));
    pair_free(&pair);
}

TEST(close_notify_ends_one_direction)
{
    struct pair pair = pair_new();

    expect_established(&pair);
    assert_true(
        tls_seal(pair.client.tls, slice_lit("QUIT\r\n"), &pair.client.sealed));
    tls_end(pair.client.tls, &pair.client.sealed);
    pair.server.plain.len = 0;
    carry(&pair, &pair.client, &pair.server);
    assert_int_equal(TLS_ENDED, pair.server.result);
    assert_true(
        slice_equal(slice_lit("QUIT\r\n"), buf_slice(&pair.server.plain)));
    assert_true(
        tls_seal(pair.server.tls, slice_lit("+OK\r\n"), &pair.server.sealed));
    assert_false(
        tls_seal(pair.client.tls, slice_lit("x"), &pair.client.sealed));
    pair.server.sealed.len = 0;
    pair_free(&pair);
}

TEST(an_end_before_the_handshake_says_nothing)
{
    struct pair pair = pair_new();

    tls_end(pair.server.tls, &pair.server.sealed);
    assert_int_equal(0, pair.server.sealed.len);
    pair_free(&pair);
}

/* A new load does not touch connections that are open. */
TEST(a_reload_leaves_open_connections_alone)
{
    struct tls_settings settings = certs_settings();
    struct pair pair = pair_new();
    struct tls *fresh;

    expect_established(&pair);
    settings.ca_cert_file = certs_get()->other_ca;
    certs_load(&pair.contexts[0], &settings);
    say(&pair, &pair.client, &pair.server, slice_lit("PING\r\n"));
    fresh = tls_new_server(&pair.contexts[0]);
    assert_non_null(fresh);
    tls_free(pair.server.tls);
    tls_free(pair.client.tls);
    pair.server.tls = fresh;
    pair.client.tls = tls_new_dial(&pair.contexts[1], "localhost");
    shake_hands(&pair);
    assert_int_equal(TLS_FAILED, pair.server.result);
    pair_free(&pair);
}

TEST(nothing_is_made_of_contexts_that_were_never_loaded)
{
    struct tls_contexts contexts;

    tls_contexts_init(&contexts);
    assert_null(tls_new_server(&contexts));
    assert_null(tls_new_dial(&contexts, "localhost"));
    tls_contexts_fini(&contexts);
}

/* Fails the nth allocation of a whole conversation, for each n: an error, no
 * crash, and nothing is lost. */
TEST(each_allocation_may_fail)
{
    struct pair warm = pair_new();
    bool fired = true;

    expect_established(&warm);
    for (unsigned nth = 1; fired; nth += 1 + nth / 16) {
        struct pair pair = pair_new();

        mem_fail_at(nth);
        shake_hands(&pair);
        if (tls_is_established(pair.client.tls) &&
            tls_is_established(pair.server.tls)) {
            (void)tls_seal(pair.client.tls, slice_lit("PING\r\n"),
                           &pair.client.sealed);
            settle(&pair);
        }
        fired = mem_fail_clear();
        pair_free(&pair);
    }
    pair_free(&warm);
}

/* The estimate is between the half and twice of what is counted. */
TEST(the_memory_is_about_the_estimated)
{
    enum { PAIRS = 50 };
    struct pair warm = pair_new();
    struct pair pairs[PAIRS];
    uint64_t before, each, part;

    expect_established(&warm);
    for (int i = 0; i < PAIRS; i++) {
        pairs[i] = pair_new();
        expect_established(&pairs[i]);
        tls_free(pairs[i].client.tls);
        pairs[i].client.tls = NULL;
    }
    before = mem_used();
    for (int i = 0; i < PAIRS; i++) {
        give(&pairs[i].server, slice_lit("\x17\x03\x03\x40"));
    }
    part = (mem_used() - before) / PAIRS;
    each = tls_memory_bytes(pairs[0].server.tls);
    before = mem_used();
    for (int i = 0; i < PAIRS; i++) {
        tls_free(pairs[i].server.tls);
        pairs[i].server.tls = NULL;
    }
    before = (before - mem_used()) / PAIRS;
    print_message("a connection: %llu bytes, %llu of them for part of a "
                  "record; the estimate is %llu\n",
                  (unsigned long long)before, (unsigned long long)part,
                  (unsigned long long)each);
    assert_in_range(each, before / 2, before * 2);
    for (int i = 0; i < PAIRS; i++) {
        pair_free(&pairs[i]);
    }
    pair_free(&warm);
}
