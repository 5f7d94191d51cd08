// SPDX-License-Identifier: BSD-3-Clause
//
// valkey-glide for Node: customCommand() for BF, RESP3 by default, then RESP2.
// It makes 1 and 0 of no boolean, and turns an error element of an array into a
// failed call. One client multiplexes all; its cache tracks in BCAST mode but
// keeps GET, MGET, HGETALL and SMEMBERS only, no command of a filter.

import { readdirSync, rmSync } from "node:fs";

import { ADD, CARD, EXISTS, Inbox, TYPE, bloom, check, dialect, finish, lacks,
  library, note, numbers, port, rejects, same, sum, tls,
  version } from "./check.mjs";

const { Batch, ClientSideCache, GlideClient, ProtocolVersion } = library;
const addresses = [{ host: "127.0.0.1", port }];
const server = tls ? { addresses, useTLS: true, advancedConfiguration: {
  tlsAdvancedConfiguration: { rootCertificates: tls.ca } } } : { addresses };
const connect = (options) => GlideClient.createClient({ ...server, ...options });

// A map of RESP3 comes as a list of {key, value}.
const entries = (got) => got[0]?.key !== undefined
  ? Object.fromEntries(got.map(({ key, value }) => [key, value]))
  : Object.fromEntries(got.flatMap((v, i) => i % 2 ? [] : [[v, got[i + 1]]]));

async function session(protocol, options) {
  const client = await connect(options);
  const other = await connect(options);
  const call = (...words) => client.customCommand(words);

  await check("connect", protocol, "ping", async () => {
    same(await client.ping(), "PONG");
    same(await client.echo("x"), "x");
    same(await client.flushall(), "OK");
    same(entries(await call("HELLO")).proto, protocol);
    if (bloom) {
      same(/lib-name=Glide/i.test(await call("CLIENT", "LIST")), true);
    }
  });
  await check("pool", protocol, "eight clients", async () => {
    const all = await Promise.all([...Array(8)].map(() => connect(options)));
    const got = await Promise.all(all.flatMap((one) => [...Array(50).keys()]
      .map((i) => one.customCommand([ADD, "pool", String(i)]))));
    same(sum(got), await call(CARD, "pool"));
    all.forEach((one) => one.close());
  });
  await check("pipeline", protocol, "thousand", async () => {
    const batch = new Batch(false);
    for (let i = 0; i < 1000; i++) batch.customCommand([ADD, "pipe", `${i % 500}`]);
    const got = await client.exec(batch, true);
    same([got.length, sum(got.slice(500))], [1000, 0]);
    same(sum(got), await call(CARD, "pipe"));
  });
  await check("transaction", protocol, "exec", async () => {
    const batch = new Batch(true).customCommand([ADD, "txn", "a"])
      .customCommand([ADD, "txn", "a"]).exists(["txn"]);
    same(numbers(await client.exec(batch, true)), [1, 0, 1]);
  });
  await check("transaction", protocol, "bad command", async () => {
    const batch = new Batch(true).customCommand([ADD, "txn", "never"])
      .customCommand(["ECHO"]);
    await rejects(client.exec(batch, true), "");
    same(Number(await call(EXISTS, "txn", "never")), 0);
  });
  await check("watch", protocol, "changed unchanged", async () => {
    same(await client.watch(["txn"]), "OK");
    await other.customCommand([ADD, "txn", "b"]);
    same(await client.exec(new Batch(true).ping(), true), null);
    same(await client.watch(["txn"]), "OK");
    await other.customCommand([ADD, "another", "b"]);
    same(await client.exec(new Batch(true).ping(), true), ["PONG"]);
  });
  await check("keys", protocol, "commands", async () => {
    await call(ADD, "key", "a");
    same([await client.type("key"), await client.exists(["key", "gone"])], [TYPE, 1]);
    same([await client.expire("key", 100), await client.persist("key")], [true, true]);
    same([await client.rename("key", "renamed"), await client.copy("renamed", "key"),
      await client.del(["key", "renamed"])], ["OK", true, 2]);
    same(await client.dbsize(), 4);
  });
  if (bloom) await calls(protocol, call);
  client.close();
  other.close();
}

async function calls(protocol, call) {
  const modern = dialect === "redis" && protocol === 3;
  await check("bloom", protocol, "calls", async () => {
    same(await call("BF.RESERVE", "b", "0.01", "1000"), "OK");
    await rejects(call("BF.RESERVE", "b", "0.01", "1000"), "item exists");
    const yes = modern ? true : 1, no = modern ? false : 0;
    same([await call("BF.ADD", "b", "foo"), await call("BF.ADD", "b", "foo")],
      [yes, no]);
    same(await call("BF.MADD", "b", "foo", "bar", "baz"), [no, yes, yes]);
    same(await call("BF.EXISTS", "b", "foo"), yes);
    same(await call("BF.MEXISTS", "b", "foo", "no", "baz"), [yes, no, yes]);
    same(await call("BF.INSERT", "i", "CAPACITY", "50", "ITEMS", "x", "x"),
      [yes, no]);
    same(await call("BF.CARD", "b"), 3);
  });
  await check("bloom", protocol, "info", async () => {
    const info = await call("BF.INFO", "b");
    same(info.length, modern ? 5 : dialect === "redis" ? 10 : 16);
    same(entries(info).Capacity, 1000);
  });
  await check("bloom", protocol, "full", async () => {
    await call("BF.RESERVE", "f", "1e-9", "1", "NONSCALING");
    await rejects(call("BF.MADD", "f", "a", "b"), "filter is full");
  });
}

async function pubsub(other) {
  const exact = new Inbox();
  const listening = await connect({ pubsubSubscriptions: {
    channelsAndPatterns: {},
    callback: (m) => exact.listener(m.pattern ?? "", m.channel, m.message),
  } });
  await check("pubsub", 3, "subscribe", async () => {
    await listening.subscribe(["news", "more"], 5000);
    same(await other.publish("hello", "news"), 1);
    same(await exact.next(), ["", "news", "hello"]);
    same(Object.values(await other.pubsubNumSub(["news"])).length, 1);
    await listening.unsubscribe(["news"], 5000);
    same(await other.publish("nobody", "news"), 0);
  });
  await check("pattern", 3, "psubscribe", async () => {
    await listening.psubscribe(["news.*"], 5000);
    same(await other.publish("hello", "news.today"), 1);
    same(await exact.next(), ["news.*", "news.today", "hello"]);
    await listening.punsubscribe(["news.*"], 5000);
    same(await other.publish("nobody", "news.today"), 0);
  });
  listening.close();
}

// Of a filter it caches nothing, so this only sees that it connects and works.
async function cache(other) {
  await check("cache", 3, "connects with BCAST", async () => {
    const cached = await connect({ clientSideCache: new ClientSideCache(
      { maxCacheKb: 100, entryTtlMs: 0, serverAssisted: true }) });
    const flags = entries(await cached.customCommand(["CLIENT", "TRACKINGINFO"])).flags;
    same([...flags].includes("bcast"), true);
    same(await cached.get("c"), null);
    await other.customCommand([ADD, "c", "x"]);
    same(await cached.exists(["c"]), 1);
    cached.close();
  });
}

note(`valkey-glide ${version}`);
await session(3, {});
const other = await connect({});
await pubsub(other);
await cache(other);
other.close();
await session(2, { protocol: ProtocolVersion.RESP2 });
// It leaves the socket on which it talks to its own core.
for (const file of readdirSync("/tmp")) {
  if (file.startsWith(`glide-socket-${process.pid}-`)) rmSync(`/tmp/${file}`);
}
finish();
