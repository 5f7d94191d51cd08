// SPDX-License-Identifier: BSD-3-Clause
//
// node-redis 6 with its typed BF helpers: with its defaults (RESP3), then in
// RESP2. In RESP3 its helpers hand on what RedisBloom answers there, booleans
// and a map for BF.INFO; this dialect answers integers and a flat array, as
// valkey-bloom does, so that they give 1 and 0 and, for info, the array.

import { check, finish, library, note, port, rejects, same } from "./check.mjs";

const { createClient } = library;

async function basics(label, client) {
  await check(`${label} ping`, async () => {
    same(await client.ping(), "PONG");
    same(await client.echo("x"), "x");
  });
  await check(`${label} pipeline`, async () => {
    const all = [];
    for (let i = 0; i < 1000; i++) all.push(client.bf.add("pipe", String(i)));
    same((await Promise.all(all)).length, 1000);
  });
  await check(`${label} transaction`, async () => {
    const got = await client.multi().bf.add("txn", "a").bf.add("txn", "a")
      .exists("txn").exec();
    same(got.map(Number), [1, 0, 1]);
  });
  await check(`${label} keys`, async () => {
    same(await client.type("txn"), "bloomfltr");
    same(Number(await client.expire("txn", 100)), 1);
    const seen = [];
    for await (const part of client.scanIterator()) seen.push(...[].concat(part));
    same(seen.sort(), ["pipe", "txn"]);
    same(await client.del(["txn", "pipe"]), 2);
  });
  await check(`${label} server`, async () => {
    if (!(await client.info()).includes("redis_version:")) throw new Error("info");
    same((await client.configGet("maxmemory")).maxmemory, "0");
  });
}

async function helpers(label, client, protocol) {
  const bf = client.bf;
  await check(`${label} bf.reserve`, async () => {
    same(await bf.reserve("b", 0.01, 1000), "OK");
    same(await bf.reserve("e", 0.01, 1000, { EXPANSION: 4 }), "OK");
    same(await bf.reserve("n", 0.01, 1000, { NONSCALING: true }), "OK");
    await rejects(bf.reserve("b", 0.01, 1000), "item exists");
  });
  await check(`${label} bf.add bf.mAdd`, async () => {
    same([await bf.add("b", "foo"), await bf.add("b", "foo")].map(Number), [1, 0]);
    same((await bf.mAdd("b", ["foo", "bar", "baz"])).map(Number), [0, 1, 1]);
  });
  await check(`${label} bf.exists bf.mExists`, async () => {
    same([await bf.exists("b", "foo"), await bf.exists("b", "no")].map(Number),
      [1, 0]);
    same((await bf.mExists("b", ["foo", "no", "baz"])).map(Number), [1, 0, 1]);
  });
  await check(`${label} bf.insert`, async () => {
    same((await bf.insert("i", ["x", "y", "x"], { CAPACITY: 500, ERROR: 0.001 }))
      .map(Number), [1, 1, 0]);
    await rejects(bf.insert("gone", ["z"], { NOCREATE: true }), "not found");
  });
  await check(`${label} bf.card`, async () => {
    same([await bf.card("b"), await bf.card("missing")], [3, 0]);
  });
  await check(`${label} bf.info`, async () => {
    let info = await bf.info("b");
    if (Array.isArray(info)) {
      note(`${label} bf.info hands the flat array on, as it came`);
      same(protocol, 3);
      info = Object.fromEntries(info.flatMap((v, i) =>
        i % 2 ? [] : [[v, info[i + 1]]]));
    }
    same([info.Capacity, info["Number of items inserted"],
      info["Number of filters"], info["Expansion rate"]], [1000, 3, 1, 2]);
    await rejects(bf.info("missing"), "not found");
  });
  note(`${label} bf.add gives a ${typeof await bf.add("b", "new")}`);
}

for (const [label, protocol, options] of [
  ["node-redis", 3, {}], ["node-redis RESP 2", 2, { RESP: 2 }]]) {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, ...options });
  client.on("error", (error) => note(`${label} error event: ${error.message}`));
  await client.connect();
  await client.flushAll();
  await basics(label, client);
  await helpers(label, client, protocol);
  await client.flushAll();
  await client.close();
}
finish();
