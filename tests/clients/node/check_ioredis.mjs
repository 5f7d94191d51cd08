// SPDX-License-Identifier: BSD-3-Clause
//
// ioredis 5 and 6 and iovalkey, which came from it. They have no typed BF
// helpers, so the generic call(), no pool and no cache. ioredis 6 speaks RESP3
// by default, gives its users 1 and 0 for booleans and a flat array for a map.

import { ADD, CARD, EXISTS, Inbox, TYPE, bloom, check, dialect, finish, lacks,
  library, name, note, numbers, port, rejects, same, sum, tls, version }
  from "./check.mjs";

const Client = library.default ?? library.Redis ?? library;
const major = Number(version.split(".")[0]);

function connect(options = {}) {
  const client = new Client({ port, host: "127.0.0.1", tls, ...options });
  client.on("error", (error) => note(`error event: ${error.message}`));
  return client;
}

async function session(protocol, options) {
  const client = connect(options);
  const other = connect(options);
  const call = (...words) => client.call(...words);
  const results = (got) => got.map(([error, value]) => {
    if (error) throw error;
    return value;
  });

  await check("connect", protocol, "ping", async () => {
    same(await client.ping(), "PONG");
    same(await client.echo("x"), "x");
    const hello = await call("HELLO");
    same(hello[hello.indexOf("proto") + 1], protocol);
    same((await client.info()).includes("redis_mode:standalone"), true);
    same(await client.flushall(), "OK");
  });
  await check("pool", protocol, "eight connections", async () => {
    const all = [...Array(8)].map(() => connect(options));
    const got = await Promise.all(all.flatMap((one) =>
      [...Array(50).keys()].map((i) => one.call(ADD, "pool", String(i)))));
    same(sum(got), await call(CARD, "pool"));
    await Promise.all(all.map((one) => one.quit()));
  });
  await check("pipeline", protocol, "thousand", async () => {
    const pipe = client.pipeline();
    for (let i = 0; i < 1000; i++) pipe.call(ADD, "pipe", String(i % 500));
    const got = results(await pipe.exec());
    same([got.length, sum(got.slice(500))], [1000, 0]);
    same(sum(got), await call(CARD, "pipe"));
  });
  await check("pipeline", protocol, "automatic", async () => {
    const auto = connect({ ...options, enableAutoPipelining: true });
    const got = await Promise.all([..."abcdef"].map((c) =>
      auto.call(ADD, "auto", c)));
    same(numbers(got), [1, 1, 1, 1, 1, 1]);
    await auto.quit();
  });
  await check("transaction", protocol, "exec", async () => {
    const got = await client.multi().call(ADD, "txn", "a")
      .call(ADD, "txn", "a").exists("txn").exec();
    same(numbers(results(got)), [1, 0, 1]);
  });
  await check("transaction", protocol, "bad command", async () => {
    await rejects(client.multi().call(ADD, "txn", "never").call("ECHO").exec(),
      "EXECABORT");
    same(Number(await call(EXISTS, "txn", "never")), 0);
  });
  await check("watch", protocol, "changed unchanged", async () => {
    await client.watch("txn");
    await other.call(ADD, "txn", "b");
    same(await client.multi().ping().exec(), null);
    await client.watch("txn");
    await other.call(ADD, "another", "b");
    same(await client.multi().ping().exec(), [[null, "PONG"]]);
  });
  const listening = connect(options);
  const box = new Inbox();
  listening.on("message", box.listener);
  listening.on("pmessage", box.listener);
  await check("pubsub", protocol, "subscribe", async () => {
    same(await listening.subscribe("news", "more"), 2);
    same(await other.publish("news", "hello"), 1);
    same(await box.next(), ["news", "hello"]);
    same(await other.pubsub("NUMSUB", "news"), ["news", 1]);
    same(await listening.unsubscribe("news"), 1);
    same(await other.publish("news", "nobody"), 0);
  });
  await check("pattern", protocol, "psubscribe", async () => {
    same(await listening.psubscribe("news.*"), 2);
    same(await other.publish("news.today", "hello"), 1);
    same(await box.next(), ["news.*", "news.today", "hello"]);
    same(await listening.punsubscribe("news.*"), 1);
    same(await other.publish("news.today", "nobody"), 0);
  });
  await check("keys", protocol, "commands", async () => {
    await call(ADD, "key", "a");
    same([await client.type("key"), await client.exists("key", "gone")], [TYPE, 1]);
    same([await client.expire("key", 100), await client.persist("key")], [1, 1]);
    same([await client.rename("key", "renamed"), await client.copy("renamed", "key"),
      await client.del("key", "renamed")], ["OK", 1, 2]);
    const seen = [];
    for await (const part of client.scanStream()) seen.push(...part);
    same([...new Set(seen)].sort(), ["another", "auto", "pipe", "pool", "txn"]);
  });
  if (bloom) await calls(protocol, call);
  for (const one of [client, other, listening]) one.disconnect();
}

async function calls(protocol, call) {
  await check("bloom", protocol, "calls", async () => {
    same(await call("BF.RESERVE", "b", "0.01", "1000"), "OK");
    await rejects(call("BF.RESERVE", "b", "0.01", "1000"), "item exists");
    same([await call("BF.ADD", "b", "foo"), await call("BF.ADD", "b", "foo")], [1, 0]);
    same(await call("BF.MADD", "b", "foo", "bar", "baz"), [0, 1, 1]);
    same(await call("BF.EXISTS", "b", "foo"), 1);
    same(await call("BF.MEXISTS", "b", "foo", "no", "baz"), [1, 0, 1]);
    same(await call("BF.INSERT", "i", "CAPACITY", "50", "ITEMS", "x", "x"), [1, 0]);
    same(await call("BF.CARD", "b"), 3);
    const field = await call("BF.INFO", "b", "CAPACITY");
    same(field, dialect === "valkey" ? 1000
      : protocol === 3 ? ["Capacity", 1000] : [1000]);
  });
  await check("bloom", protocol, "info", async () => {
    const info = await call("BF.INFO", "b");
    same([info.length, ...info.slice(0, 2)],
      [dialect === "valkey" ? 16 : 10, "Capacity", 1000]);
  });
}

note(`${name.replace(/\d$/, "")} ${version}`);
if (major === 6) await session(3, {});
await session(2, major === 6 ? { protocol: 2 } : {});
if (major !== 6) lacks("RESP3", "it speaks RESP2 only");
lacks("cache", "it has none");
finish();
