// SPDX-License-Identifier: BSD-3-Clause
//
// ioredis and iovalkey: no typed BF helpers, so the generic call(). ioredis 6
// speaks RESP3 by default.

import { check, finish, library, name, port, rejects, same } from "./check.mjs";

const Client = library.default ?? library.Redis ?? library;
const client = new Client(Number(port), "127.0.0.1");
client.on("error", () => {});

await check(`${name} ping`, async () => {
  same(await client.ping(), "PONG");
  same(await client.echo("x"), "x");
  same(await client.flushall(), "OK");
});
await check(`${name} pipeline`, async () => {
  const pipe = client.pipeline();
  for (let i = 0; i < 1000; i++) pipe.call("BF.ADD", "pipe", String(i));
  const got = await pipe.exec();
  same(got.length, 1000);
  same(got.filter(([error]) => error).length, 0);
});
await check(`${name} automatic pipelining`, async () => {
  const auto = new Client(Number(port), "127.0.0.1",
    { enableAutoPipelining: true });
  const got = await Promise.all([..."abcdef"].map((c) =>
    auto.call("BF.ADD", "auto", c)));
  same(got.map(Number), [1, 1, 1, 1, 1, 1]);
  auto.disconnect();
});
await check(`${name} transaction`, async () => {
  const got = await client.multi().call("BF.ADD", "txn", "a")
    .call("BF.ADD", "txn", "a").exists("txn").exec();
  same(got.map(([error, value]) => [error, Number(value)]),
    [[null, 1], [null, 0], [null, 1]]);
});
await check(`${name} watch`, async () => {
  await client.watch("txn");
  const other = new Client(Number(port), "127.0.0.1");
  await other.call("BF.ADD", "txn", "b");
  other.disconnect();
  same(await client.multi().ping().exec(), null);
});
await check(`${name} BF calls`, async () => {
  const call = (...words) => client.call(...words);
  same(await call("BF.RESERVE", "b", "0.01", "1000"), "OK");
  await rejects(call("BF.RESERVE", "b", "0.01", "1000"), "item exists");
  same([await call("BF.ADD", "b", "foo"), await call("BF.ADD", "b", "foo")], [1, 0]);
  same(await call("BF.MADD", "b", "foo", "bar", "baz"), [0, 1, 1]);
  same(await call("BF.EXISTS", "b", "foo"), 1);
  same(await call("BF.MEXISTS", "b", "foo", "no", "baz"), [1, 0, 1]);
  same(await call("BF.INSERT", "i", "CAPACITY", "50", "ITEMS", "x", "x"), [1, 0]);
  same(await call("BF.CARD", "b"), 3);
  same(await call("BF.INFO", "b", "CAPACITY"), 1000);
});
await check(`${name} BF.INFO`, async () => {
  const info = await client.call("BF.INFO", "b");
  same(info.length, 16);
  same(info.slice(0, 2), ["Capacity", 1000]);
  same(Number(info[9]), 0.01);
});
await check(`${name} keys`, async () => {
  same(await client.type("b"), "bloomfltr");
  same(await client.expire("b", 100), 1);
  const seen = [];
  for await (const part of client.scanStream()) seen.push(...part);
  same([...new Set(seen)].sort(), ["auto", "b", "i", "pipe", "txn"]);
  if (!(await client.info()).includes("redis_version:")) throw new Error("info");
  same(await client.flushall(), "OK");
});
client.disconnect();
finish();
