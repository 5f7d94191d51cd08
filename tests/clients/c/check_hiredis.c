/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hiredis: no typed helpers, RESP2 as it comes and, from hiredis 1.0 on, RESP3
 * after HELLO 3. Debian's 0.14 speaks RESP2 only. It has no pool, cache or
 * transactions of its own; connections and commands are all there is. TLS came
 * with hiredis 1.0, in a library of its own. */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int port;
static const char *dialect;
static bool bloom, failed, bad;
static const char *add = "BF.ADD", *exists = "BF.EXISTS", *card = "BF.CARD";

static void
want_at(bool good, const char *what, int line)
{
    if (!good && !bad) {
        bad = true;
        printf("not ok %s (line %d)\n", what, line);
    }
}

#define WANT(area, x) want_at(x, area " RESP2 " #x, __LINE__)

static void
done(const char *label)
{
    if (!bad) {
        printf("ok %s\n", label);
    }
    failed |= bad;
    bad = false;
}

static redisContext *
open_one(void)
{
    redisContext *c = redisConnect("127.0.0.1", port);

    if (c == NULL || c->err) {
        printf("not ok connect RESP2 redisConnect: %s\n", c ? c->errstr : "");
        exit(1);
    }
    redisSetTimeout(c, (struct timeval){ .tv_sec = 5 });
    return c;
}

/* The reply of one command; never NULL. */
static redisReply *
call(redisContext *c, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    redisReply *reply = redisvCommand(c, format, words);
    va_end(words);
    if (reply == NULL) {
        printf("not ok connection RESP2 lost: %s\n", c->errstr);
        exit(1);
    }
    return reply;
}

/* The number of one command, -1 if the reply is none. */
static long long
number(redisContext *c, const char *command, const char *key, const char *item)
{
    redisReply *reply =
        call(c, item ? "%s %s %s" : "%s %s", command, key, item);
    long long value = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;

    freeReplyObject(reply);
    return value;
}

static bool
says(redisReply *reply, const char *text)
{
    bool good = reply->str != NULL && strstr(reply->str, text) != NULL;

    if (!good) {
        printf("note got type %d \"%s\", want %s\n", reply->type,
               reply->str ? reply->str : "", text);
    }
    freeReplyObject(reply);
    return good;
}

static void
connect_pool_pipeline(redisContext *c)
{
    redisContext *many[8];
    long long sum = 0, late = 0;
    redisReply *reply;

    WANT("connect", says(call(c, "PING"), "PONG"));
    WANT("connect", says(call(c, "ECHO %b", "a\0b", (size_t)3), "a"));
    WANT("connect", says(call(c, "FLUSHALL"), "OK"));
    WANT("connect", says(call(c, "INFO"), "redis_mode:standalone"));
    done("connect RESP2 ping");

    for (int i = 0; i < 8; i++) {
        many[i] = open_one();
    }
    for (int i = 0; i < 400; i++) {
        char item[16];

        snprintf(item, sizeof item, "%d", i % 100);
        sum += number(many[i % 8], add, "pool", item);
    }
    for (int i = 0; i < 8; i++) {
        redisFree(many[i]);
    }
    WANT("pool", sum == number(c, card, "pool", NULL));
    done("pool RESP2 eight connections");

    sum = 0;
    for (int i = 0; i < 1000; i++) {
        redisAppendCommand(c, "%s pipe %d", add, i % 500);
    }
    for (int i = 0; i < 1000; i++) {
        WANT("pipeline", redisGetReply(c, (void **)&reply) == REDIS_OK);
        *(i < 500 ? &sum : &late) += reply->integer;
        freeReplyObject(reply);
    }
    WANT("pipeline", late == 0 && sum == number(c, card, "pipe", NULL));
    done("pipeline RESP2 thousand");
}

static void
transactions(redisContext *c, redisContext *other)
{
    redisReply *reply;

    freeReplyObject(call(c, "MULTI"));
    WANT("transaction", says(call(c, "%s txn a", add), "QUEUED"));
    WANT("transaction", says(call(c, "%s txn a", add), "QUEUED"));
    reply = call(c, "EXEC");
    WANT("transaction", reply->elements == 2 &&
                            reply->element[0]->integer == 1 &&
                            reply->element[1]->integer == 0);
    freeReplyObject(reply);
    freeReplyObject(call(c, "MULTI"));
    freeReplyObject(call(c, "%s txn never", add));
    WANT("transaction", says(call(c, "ECHO"), "wrong number of arguments"));
    WANT("transaction", says(call(c, "EXEC"), "EXECABORT"));
    WANT("transaction", number(c, exists, "txn", "never") == 0);
    done("transaction RESP2 exec");

    for (int i = 0; i < 2; i++) {
        freeReplyObject(call(c, "WATCH txn"));
        number(other, add, i == 0 ? "txn" : "another", "b");
        freeReplyObject(call(c, "MULTI"));
        freeReplyObject(call(c, "PING"));
        reply = call(c, "EXEC");
        WANT("watch",
             reply->type == (i == 0 ? REDIS_REPLY_NIL : REDIS_REPLY_ARRAY));
        freeReplyObject(reply);
    }
    done("watch RESP2 changed unchanged");
}

/* Whether the next message is KIND, and ends in TEXT if given. */
static bool
hears(redisContext *c, const char *kind, const char *text)
{
    redisReply *reply;
    bool good;

    if (redisGetReply(c, (void **)&reply) != REDIS_OK) {
        return false;
    }
    good = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 3 &&
           strcmp(reply->element[0]->str, kind) == 0 &&
           (text == NULL ||
            strcmp(reply->element[reply->elements - 1]->str, text) == 0);
    freeReplyObject(reply);
    return good;
}

static void
pubsub(redisContext *other)
{
    redisContext *c = open_one();

    redisAppendCommand(c, "SUBSCRIBE news more");
    WANT("pubsub", hears(c, "subscribe", NULL) && hears(c, "subscribe", NULL));
    WANT("pubsub", number(other, "PUBLISH", "news", "hello") == 1);
    WANT("pubsub", hears(c, "message", "hello"));
    redisAppendCommand(c, "UNSUBSCRIBE");
    WANT("pubsub",
         hears(c, "unsubscribe", NULL) && hears(c, "unsubscribe", NULL));
    WANT("pubsub", number(other, "PUBLISH", "news", "nobody") == 0);
    WANT("pubsub", says(call(c, "ECHO x"), "x"));
    done("pubsub RESP2 subscribe");

    redisAppendCommand(c, "PSUBSCRIBE news.*");
    WANT("pattern", hears(c, "psubscribe", NULL));
    WANT("pattern", number(other, "PUBLISH", "news.today", "hello") == 1);
    WANT("pattern", hears(c, "pmessage", "hello"));
    redisAppendCommand(c, "PUNSUBSCRIBE");
    WANT("pattern", hears(c, "punsubscribe", NULL));
    done("pattern RESP2 psubscribe");
    redisFree(c);
}

/* CLIENT TRACKING with REDIRECT to a second connection, the way of RESP2. */
static void
cache(redisContext *other)
{
    redisContext *reads = open_one(), *told = open_one();
    redisReply *reply = call(told, "CLIENT ID");
    static const char *const changes[][3] = { { "add", "cached", "x" },
                                              { "add", "cached", "y" },
                                              { "DEL", "cached", NULL } };

    freeReplyObject(call(told, "SUBSCRIBE __redis__:invalidate"));
    WANT("cache",
         says(call(reads, "CLIENT TRACKING ON REDIRECT %lld", reply->integer),
              "OK"));
    for (int i = 0; i < 3 && !bad; i++) {
        const char *word = i < 2 ? add : changes[i][0];

        number(reads, exists, "cached", "x");
        number(other, word, changes[i][1], changes[i][2]);
        redisReply *message;
        WANT("cache", redisGetReply(told, (void **)&message) == REDIS_OK);
        if (!bad) {
            WANT("cache",
                 message->elements == 3 && message->element[2]->elements == 1 &&
                     strcmp(message->element[2]->element[0]->str, "cached") ==
                         0);
            freeReplyObject(message);
        }
    }
    done("cache RESP2 invalidation by redirection");
    freeReplyObject(reply);
    redisFree(reads);
    redisFree(told);
}

static void
bloom_calls(redisContext *c)
{
    redisReply *reply;
    bool valkey = strcmp(dialect, "valkey") == 0;

    WANT("bloom", says(call(c, "BF.RESERVE b 0.01 1000"), "OK"));
    WANT("bloom", says(call(c, "BF.RESERVE b 0.01 1000"), "item exists"));
    WANT("bloom", number(c, "BF.ADD", "b", "foo") == 1);
    WANT("bloom", number(c, "BF.ADD", "b", "foo") == 0);
    reply = call(c, "BF.MEXISTS b foo no");
    WANT("bloom", reply->elements == 2 && reply->element[0]->integer == 1 &&
                      reply->element[1]->integer == 0);
    freeReplyObject(reply);
    reply = call(c, "BF.INFO b");
    WANT("bloom", reply->elements == (valkey ? 16U : 10U));
    freeReplyObject(reply);
    reply = call(c, "BF.INFO b ITEMS");
    WANT("bloom",
         reply->type == (valkey ? REDIS_REPLY_INTEGER : REDIS_REPLY_ARRAY));
    freeReplyObject(reply);
    freeReplyObject(call(c, "BF.RESERVE f 1e-9 1 NONSCALING"));
    reply = call(c, "BF.MADD f a b c");
    WANT("bloom",
         reply->elements == 2 && reply->element[1]->type == REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    done("bloom RESP2 calls");
}

int
main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    port = atoi(argv[1]);
    dialect = argv[2];
    bloom = strcmp(dialect, "redis-server") != 0;
    if (!bloom) {
        add = "SADD";
        exists = "SISMEMBER";
        card = "SCARD";
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("note hiredis %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR,
           HIREDIS_PATCH);
    if (getenv("BLOOMERY_CA") != NULL) {
        printf("lacks tls it came with hiredis 1.0\nend\n");
        return 0;
    }
    redisContext *c = open_one(), *other = open_one();

    connect_pool_pipeline(c);
    transactions(c, other);
    pubsub(other);
    cache(other);
    number(c, add, "key", "a");
    WANT("keys",
         says(call(c, "TYPE key"),
              bloom ? strcmp(dialect, "valkey") == 0 ? "bloomfltr" : "MBbloom--"
                    : "set"));
    WANT("keys", says(call(c, "RENAME key renamed"), "OK"));
    WANT("keys", number(c, "EXPIRE", "renamed", "100") == 1);
    WANT("keys", number(c, "DEL", "renamed", "gone") == 1);
    done("keys RESP2 commands");
    if (bloom) {
        bloom_calls(c);
    } else {
        printf("lacks bloom redis-server stands in\n");
    }
    printf("lacks RESP3 it is spoken from hiredis 1.0 on\nend\n");
    redisFree(c);
    redisFree(other);
    return failed;
}
