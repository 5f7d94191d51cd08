// SPDX-License-Identifier: BSD-3-Clause
//
// valkey-glide: customCommand() only, RESP3 by default, then RESP2. It turns
// an error element of an array into a failed call.

import { check, finish, library, note, port, rejects, same } from "./check.mjs";

const { GlideClient, Batch, ProtocolVersion } = library;
const addresses = [{ host: "127.0.0.1", port: Number(port) }];

async function session(label, options) {
  const client = await GlideClient.createClient({ addresses, ...options });
  const call = (...words) => client.customCommand(words);

  await check(`${label} ping`, async () => {
    same(await client.ping(), "PONG");
    same(await client.echo("x"), "x");
    same(await client.flushall(), "OK");
  });
  await check(`${label} pipeline`, async () => {
    const batch = new Batch(false);
    for (let i = 0; i < 1000; i++) batch.customCommand(["BF.ADD", "pipe", `${i}`]);
    same((await client.exec(batch, true)).length, 1000);
  });
  await check(`${label} transaction`, async () => {
    const batch = new Batch(true).customCommand(["BF.ADD", "txn", "a"])
      .customCommand(["BF.ADD", "txn", "a"]).exists(["txn"]);
    same(await client.exec(batch, true), [1, 0, 1]);
  });
  await check(`${label} BF calls`, async () => {
    same(await call("BF.RESERVE", "b", "0.01", "1000"), "OK");
    await rejects(call("BF.RESERVE", "b", "0.01", "1000"), "item exists");
    same([await call("BF.ADD", "b", "foo"), await call("BF.ADD", "b", "foo")],
      [1, 0]);
    same(await call("BF.MADD", "b", "foo", "bar", "baz"), [0, 1, 1]);
    same(await call("BF.EXISTS", "b", "foo"), 1);
    same(await call("BF.MEXISTS", "b", "foo", "no", "baz"), [1, 0, 1]);
    same(await call("BF.INSERT", "i", "CAPACITY", "50", "ITEMS", "x", "x"), [1, 0]);
    same(await call("BF.CARD", "b"), 3);
    same(await call("BF.INFO", "b", "CAPACITY"), 1000);
    same(Number(await call("BF.INFO", "b", "ERROR")), 0.01);
    same((await call("BF.INFO", "b")).length, 16);
  });
  await check(`${label} an error element is a failed call`, async () => {
    await call("BF.RESERVE", "f", "1e-9", "1", "NONSCALING");
    await rejects(call("BF.MADD", "f", "a", "b"), "filter is full");
  });
  await check(`${label} keys`, async () => {
    same(await client.type("b"), "bloomfltr");
    same(await client.expire("b", 100), true);
    same(await client.del(["b", "i", "f", "txn", "pipe"]), 5);
    same(await client.dbsize(), 0);
  });
  client.close();
}

note("valkey-glide uses RESP3 by default");
await session("valkey-glide", {});
await session("valkey-glide RESP2", { protocol: ProtocolVersion.RESP2 });
finish();
