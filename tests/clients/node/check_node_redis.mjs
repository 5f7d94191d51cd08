// SPDX-License-Identifier: BSD-3-Clause
//
// node-redis 4, 5 and 6 with their typed BF helpers: with the defaults, then in
// the protocol that is not the default. In RESP3 the helpers hand on what
// comes: booleans and a map from RedisBloom, integers and a flat array from
// valkey-bloom.

import { ADD, CARD, EXISTS, Inbox, TYPE, bloom, check, dialect, finish, lacks,
  library, note, numbers, port, rejects, same, sum, tls, until, version }
  from "./check.mjs";

const major = Number(version.split(".")[0]);
const server = tls ? { url: `rediss://127.0.0.1:${port}`, socket: tls }
  : { url: `redis://127.0.0.1:${port}` };
const open = [];

async function connect(options = {}) {
  const client = library.createClient({ ...server, ...options });
  client.on("error", (error) => note(`error event: ${error.message}`));
  await client.connect();
  open.push(client);
  return client;
}

const call = (client, ...words) => client.sendCommand(words);

async function basics(protocol, options, client) {
  await check("connect", protocol, "ping", async () => {
    same(await client.ping(), "PONG");
    same(await client.echo("x"), "x");
    const hello = await call(client, "HELLO");
    same(Array.isArray(hello) ? hello[hello.indexOf("proto") + 1] : hello.proto,
      protocol);
  });
  await check("connect", protocol, "server", async () => {
    same((await client.info()).includes("redis_mode:standalone"), true);
    same((await client.configGet("maxmemory")).maxmemory, "0");
    const info = await call(client, "CLIENT", "LIST");
    if (bloom) same(/lib-name=node-redis/.test(info), true);
  });
  await check("pool", protocol, "parallel", async () => {
    const work = [...Array(400).keys()].map((i) => String(i % 100));
    let got;
    if (major === 4) {
      got = await Promise.all(work.map((item) =>
        client.executeIsolated((one) => call(one, ADD, "pool", item))));
    } else {
      const pool = await library.createClientPool({ ...server, ...options },
        { maximum: 4 }).connect();
      got = await Promise.all(work.map((item) =>
        pool.execute((one) => call(one, ADD, "pool", item))));
      await pool.close();
    }
    same(sum(got), await call(client, CARD, "pool"));
  });
  await check("pipeline", protocol, "thousand", async () => {
    const got = await Promise.all([...Array(1000).keys()].map((i) =>
      call(client, ADD, "pipe", String(i % 500))));
    same([got.length, sum(got.slice(500))], [1000, 0]);
    same(sum(got), await call(client, CARD, "pipe"));
  });
  await check("keys", protocol, "commands", async () => {
    await call(client, ADD, "key", "a");
    same([await client.type("key"), await client.exists(["key", "gone"])], [TYPE, 1]);
    same(Number(await client.expire("key", 100)), 1);
    same(await client.ttl("key") > 90, true);
    same(Number(await client.persist("key")), 1);
    await client.rename("key", "renamed");
    same(Number(await client.copy("renamed", "key")), 1);
    same(await client.del(["key", "renamed"]), 2);
    const seen = [];
    for await (const part of client.scanIterator()) seen.push(...[].concat(part));
    same([...new Set(seen)].sort(), ["pipe", "pool"]);
  });
}

async function transactions(protocol, client, other) {
  await check("transaction", protocol, "exec", async () => {
    const got = await client.multi().addCommand([ADD, "txn", "a"])
      .addCommand([ADD, "txn", "a"]).exists("txn").exec();
    same(numbers(got), [1, 0, 1]);
  });
  await check("transaction", protocol, "bad command", async () => {
    await rejects(client.multi().addCommand([ADD, "txn", "never"])
      .addCommand(["ECHO"]).exec(), "");
    same(Number(await call(client, EXISTS, "txn", "never")), 0);
  });
  const watching = async (body) => {
    if (major === 4) return client.executeIsolated(body);
    const one = await connect(client.options);
    return body(one).finally(() => one.close());
  };
  await check("watch", protocol, "changed", () => watching(async (one) => {
    await one.watch("txn");
    await call(other, ADD, "txn", "b");
    const got = one.multi().ping().exec();
    const error = await got.then(() => null, (problem) => problem);
    same(error instanceof library.WatchError, true);
  }));
  await check("watch", protocol, "unchanged", () => watching(async (one) => {
    await one.watch("txn");
    await call(other, ADD, "another", "b");
    same(await one.multi().ping().exec(), ["PONG"]);
  }));
}

async function pubsub(protocol, options, other) {
  const listening = await connect(options);
  await check("pubsub", protocol, "subscribe", async () => {
    const box = new Inbox();
    await listening.subscribe(["news", "more"], box.listener);
    same(await other.publish("news", "hello"), 1);
    same(await box.next(), ["hello", "news"]);
    same(Number((await other.pubSubNumSub("news")).news), 1);
    await listening.unsubscribe("news");
    same(await other.publish("news", "nobody"), 0);
    same(await other.publish("more", "still"), 1);
    same(await box.next(), ["still", "more"]);
    await listening.unsubscribe();
  });
  await check("pubsub", protocol, "ssubscribe", async () => {
    const box = new Inbox();
    await listening.sSubscribe("shard", box.listener);
    same(await other.publish("shard", "other kind"), 0);
    same(await other.sPublish("shard", "hello"), 1);
    same(await box.next(), ["hello", "shard"]);
    await listening.sUnsubscribe("shard");
    same(await other.sPublish("shard", "nobody"), 0);
  });
  await check("pattern", protocol, "psubscribe", async () => {
    const box = new Inbox();
    await listening.pSubscribe("news.*", box.listener);
    same(await other.pubSubNumPat(), 1);
    same(await other.publish("news.today", "hello"), 1);
    same(await box.next(), ["hello", "news.today"]);
    await listening.pUnsubscribe("news.*");
    same(await other.publish("news.today", "nobody"), 0);
  });
}

// From major version 5 on. Version 6 caches the reads of its BF helpers too.
async function cache(other) {
  await check("cache", 3, "invalidation", async () => {
    const cached = await connect({ RESP: 3,
      clientSideCache: { ttl: 0, maxEntries: 100 } });
    const entries = () => cached.clientSideCache.size();
    await call(other, ADD, "c", "x");
    same([await cached.type("c"), await cached.type("c")], [TYPE, TYPE]);
    same([entries(), cached.clientSideCache.stats().hitCount], [1, 1]);
    await call(other, ADD, "c", "y");
    await until(() => entries() === 0, "BF.ADD invalidates a read");
    if (major >= 6 && bloom) {
      same(Number(await cached.bf.exists("c", "z")), 0);
      same(Number(await cached.bf.exists("c", "z")), 0);
      same([entries(), cached.clientSideCache.stats().hitCount], [1, 2]);
      await other.bf.add("c", "z");
      await until(async () => Number(await cached.bf.exists("c", "z")) === 1,
        "BF.ADD invalidates BF.EXISTS");
    }
    same(await cached.exists("c"), 1);
    await other.del("c");
    await until(async () => await cached.exists("c") === 0,
      "DEL invalidates a read");
  });
}

// The fields of BF.INFO, whatever the helper made of them.
function fields(info, protocol) {
  if (major === 4) {
    return [info.capacity, info.numberOfInsertedItems, info.numberOfFilters,
      info.expansionRate];
  }
  if (Array.isArray(info)) {
    same([protocol, dialect], [3, "valkey"]);
    info = Object.fromEntries(info.flatMap((v, i) =>
      i % 2 ? [] : [[v, info[i + 1]]]));
  }
  return [info.Capacity, info["Number of items inserted"],
    info["Number of filters"], info["Expansion rate"]];
}

async function helpers(protocol, client) {
  const bf = client.bf;
  await check("bloom", protocol, "reserve", async () => {
    same(await bf.reserve("b", 0.01, 1000), "OK");
    same(await bf.reserve("e", 0.01, 1000, { EXPANSION: 4 }), "OK");
    same(await bf.reserve("n", 0.01, 1000, { NONSCALING: true }), "OK");
    await rejects(bf.reserve("b", 0.01, 1000), "item exists");
  });
  await check("bloom", protocol, "add exists", async () => {
    const got = [await bf.add("b", "foo"), await bf.add("b", "foo"),
      ...await bf.mAdd("b", ["foo", "bar", "baz"]), await bf.exists("b", "foo"),
      ...await bf.mExists("b", ["foo", "no", "baz"])];
    same(numbers(got), [1, 0, 0, 1, 1, 1, 1, 0, 1]);
    const want = major === 4 || protocol === 2 || dialect === "redis" ? "boolean"
      : "number";
    same([...new Set(got.map((x) => typeof x))], [want]);
  });
  await check("bloom", protocol, "insert", async () => {
    same(numbers(await bf.insert("i", ["x", "y", "x"],
      { CAPACITY: 500, ERROR: 0.001 })), [1, 1, 0]);
    await rejects(bf.insert("gone", ["z"], { NOCREATE: true }), "not found");
  });
  await check("bloom", protocol, "card", async () => {
    same([await bf.card("b"), await bf.card("missing")], [3, 0]);
  });
  await check("bloom", protocol, "info", async () => {
    // Major version 4 takes the fields by their place; valkey-bloom has the
    // error rate where it looks for the expansion.
    const fifth = major === 4 && dialect === "valkey" ? "0.01" : 2;
    same(fields(await bf.info("b"), protocol), [1000, 3, 1, fifth]);
    if (major > 4) same(fields(await bf.info("n"), protocol)[3], null);
    await rejects(bf.info("missing"), "not found");
  });
  await check("bloom", protocol, "full", async () => {
    await bf.reserve("f", 1e-9, 1, { NONSCALING: true });
    same(Number(await bf.add("f", "a")), 1);
    await rejects(bf.add("f", "b"), "non scaling filter is full");
    const got = await bf.mAdd("f", ["a", "b", "c"]);
    same([got.length, Number(got[0])], [2, 0]);
    if (protocol === 3) same(got[1] instanceof Error, true);
  });
}

note(`node-redis ${version}`);
const protocols = { 4: [2], 5: [2, 3], 6: [3, 2] }[major];
for (const protocol of protocols) {
  const options = protocol === protocols[0] ? {} : { RESP: protocol };
  const [client, other] = [await connect(options), await connect(options)];
  await client.flushAll();
  await basics(protocol, options, client);
  await transactions(protocol, client, other);
  await pubsub(protocol, options, other);
  if (protocol === 3) await cache(other);
  if (bloom) await helpers(protocol, client);
}
if (major === 4) {
  lacks("RESP3", "it speaks RESP2 only");
  lacks("cache", "it came with node-redis 5");
}
finish();
