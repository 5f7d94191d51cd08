// SPDX-License-Identifier: BSD-3-Clause
//
// redis-rs with its typed BF helpers: with its defaults (RESP2), then in RESP3.
// Its cache, of the asynchronous connection, is for EXISTS and TYPE, not for BF.

mod check;

use check::{add, authority, bloom, card, check, dialect, exists, fails, kind, port, until};
use redis::bloom::{BloomFilterInfoType, BloomFilterInsertOptions, BloomFilterScalingOptions};
use redis::caching::CacheConfig;
use redis::{
    AsyncConnectionConfig, Client, Commands, Connection, TlsCertificates, Value, cmd, pipe,
};
use std::time::Duration;

struct Session {
    protocol: i64,
    client: Client,
    con: Connection,
    other: Connection,
}

fn put(con: &mut Connection, key: &str, item: &str) -> i64 {
    cmd(add())
        .arg(key)
        .arg(item)
        .query::<bool>(con)
        .unwrap()
        .into()
}

/// A client over TLS if there is an authority, otherwise over plain TCP.
fn connect_to(query: &str) -> Client {
    let Some(authority) = authority() else {
        return Client::open(format!("redis://127.0.0.1:{}/{query}", port())).unwrap();
    };
    let certificates = TlsCertificates {
        client_tls: None,
        root_cert: Some(std::fs::read(authority).unwrap()),
    };
    Client::build_with_tls(
        format!("rediss://127.0.0.1:{}/{query}", port()),
        certificates,
    )
    .unwrap()
}

/// What PUBSUB NUMSUB says of a channel, or PUBSUB NUMPAT.
fn listeners(con: &mut Connection, what: &str, channel: &str) -> i64 {
    let mut ask = cmd("PUBSUB");
    ask.arg(what);
    if channel.is_empty() {
        return ask.query(con).unwrap();
    }
    ask.arg(channel).query::<(String, i64)>(con).unwrap().1
}

impl Session {
    fn new(protocol: i64) -> Session {
        let query = if protocol == 3 { "?protocol=resp3" } else { "" };
        let client = connect_to(query);
        let open = || {
            let con = client.get_connection().unwrap();
            con.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            con
        };
        let (con, other) = (open(), open());
        Session {
            protocol,
            client,
            con,
            other,
        }
    }

    fn connect(&mut self) {
        let Session {
            protocol,
            client,
            con,
            ..
        } = self;
        check("connect", *protocol, "ping", || {
            assert_eq!(con.ping::<String>().unwrap(), "PONG");
            assert_eq!(cmd("ECHO").arg("x").query::<String>(con).unwrap(), "x");
            con.flushall::<()>().unwrap();
            let hello: redis::InfoDict = cmd("INFO").query(con).unwrap();
            assert_eq!(hello.get::<String>("redis_mode").unwrap(), "standalone");
            let info: String = cmd("CLIENT").arg("INFO").query(con).unwrap();
            assert!(!bloom() || info.contains("lib-name=redis-rs"), "{info}");
            assert!(
                !bloom() || info.contains(&format!("resp={protocol}")),
                "{info}"
            );
        });
        check("pool", *protocol, "threads", || {
            let pool = r2d2::Pool::builder()
                .max_size(4)
                .build(client.clone())
                .unwrap();
            let workers: Vec<_> = (0..8)
                .map(|_| {
                    let pool = pool.clone();
                    std::thread::spawn(move || {
                        let each = |i: i32| put(&mut pool.get().unwrap(), "pool", &i.to_string());
                        (0..50).map(each).sum::<i64>()
                    })
                })
                .collect();
            let sum: i64 = workers.into_iter().map(|w| w.join().unwrap()).sum();
            assert_eq!(sum, cmd(card()).arg("pool").query::<i64>(con).unwrap());
        });
        check("pipeline", *protocol, "thousand", || {
            let mut all = pipe();
            for i in 0..1000 {
                all.cmd(add()).arg("pipe").arg(i % 500);
            }
            let got: Vec<bool> = all.query(con).unwrap();
            let new = got.iter().filter(|x| **x).count();
            assert!(got.len() == 1000 && got[500..].iter().all(|x| !x));
            assert_eq!(new, cmd(card()).arg("pipe").query::<usize>(con).unwrap());
        });
    }

    fn transactions(&mut self) {
        let Session {
            protocol,
            con,
            other,
            ..
        } = self;
        check("transaction", *protocol, "exec", || {
            let mut all = pipe();
            all.atomic()
                .cmd(add())
                .arg("txn")
                .arg("a")
                .cmd(add())
                .arg("txn")
                .arg("a");
            let got: Vec<bool> = all.exists("txn").query(con).unwrap();
            assert_eq!(got, [true, false, true]);
        });
        check("transaction", *protocol, "bad command", || {
            let mut all = pipe();
            all.atomic().cmd(add()).arg("txn").arg("never").cmd("ECHO");
            fails(all.query::<Value>(con), "");
            assert!(
                !cmd(exists())
                    .arg("txn")
                    .arg("never")
                    .query::<bool>(con)
                    .unwrap()
            );
        });
        check("watch", *protocol, "changed unchanged", || {
            for (changed, want) in [("txn", None), ("another", Some(vec!["PONG".to_string()]))] {
                cmd("WATCH").arg("txn").exec(con).unwrap();
                put(other, changed, "b");
                let got: Option<Vec<String>> = pipe().atomic().ping().query(con).unwrap();
                assert_eq!(got, want);
            }
        });
    }

    fn pubsub(&mut self) {
        let Session {
            protocol,
            client,
            other,
            ..
        } = self;
        let mut listening = client.get_connection().unwrap();
        let mut heard = listening.as_pubsub();
        heard
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        check("pubsub", *protocol, "subscribe", || {
            heard.subscribe(&["news", "more"]).unwrap();
            assert_eq!(other.publish::<_, _, i64>("news", "hello").unwrap(), 1);
            let got = heard.get_message().unwrap();
            assert_eq!(got.get_channel_name(), "news");
            assert_eq!(got.get_payload::<String>().unwrap(), "hello");
            // It waits for one reply, whatever the number of channels.
            heard.unsubscribe(&["news", "more"]).unwrap();
            until("unsubscribed", || listeners(other, "NUMSUB", "more") == 0);
            assert_eq!(other.publish::<_, _, i64>("news", "nobody").unwrap(), 0);
        });
        check("pattern", *protocol, "psubscribe", || {
            heard.psubscribe("news.*").unwrap();
            until("subscribed", || listeners(other, "NUMPAT", "") == 1);
            assert_eq!(
                other.publish::<_, _, i64>("news.today", "hello").unwrap(),
                1
            );
            let got = heard.get_message().unwrap();
            assert_eq!(got.get_pattern::<String>().unwrap(), "news.*");
            assert_eq!(got.get_channel_name(), "news.today");
            heard.punsubscribe("news.*").unwrap();
            until("unsubscribed", || listeners(other, "NUMPAT", "") == 0);
            assert_eq!(
                other.publish::<_, _, i64>("news.today", "nobody").unwrap(),
                0
            );
        });
    }

    fn keys(&mut self) {
        let Session { protocol, con, .. } = self;
        check("keys", *protocol, "commands", || {
            put(con, "key", "a");
            assert_eq!(cmd("TYPE").arg("key").query::<String>(con).unwrap(), kind());
            assert!(con.expire::<_, bool>("key", 100).unwrap());
            assert!(con.persist::<_, bool>("key").unwrap());
            con.rename::<_, _, ()>("key", "renamed").unwrap();
            assert!(
                cmd("COPY")
                    .arg("renamed")
                    .arg("key")
                    .query::<bool>(con)
                    .unwrap()
            );
            assert_eq!(con.del::<_, i64>(&["key", "renamed", "gone"]).unwrap(), 2);
            let mut seen: Vec<String> = con.scan().unwrap().map(|x| x.unwrap()).collect();
            seen.sort();
            seen.dedup();
            assert_eq!(seen, ["another", "pipe", "pool", "txn"]);
        });
    }

    fn bloom(&mut self) {
        let Session { protocol, con, .. } = self;
        check("bloom", *protocol, "reserve", || {
            con.bf_reserve::<_, ()>("b", 0.01, 1000).unwrap();
            let (four, fixed) = (
                BloomFilterScalingOptions::ExpansionRate(4),
                BloomFilterScalingOptions::NonScaling,
            );
            con.bf_reserve_options::<_, _, _, ()>("e", 0.01, 1000, four)
                .unwrap();
            con.bf_reserve_options::<_, _, _, ()>("n", 0.01, 1000, fixed)
                .unwrap();
            fails(con.bf_reserve::<_, ()>("b", 0.01, 1000), "item exists");
        });
        check("bloom", *protocol, "add exists", || {
            assert!(con.bf_add::<_, _, bool>("b", "foo").unwrap());
            assert!(!con.bf_add::<_, _, bool>("b", "foo").unwrap());
            let added: Vec<bool> = con.bf_madd("b", &["foo", "bar", "baz"]).unwrap();
            assert_eq!(added, [false, true, true]);
            assert!(con.bf_exists::<_, _, bool>("b", "foo").unwrap());
            let there: Vec<bool> = con.bf_mexists("b", &["foo", "no", "baz"]).unwrap();
            assert_eq!(there, [true, false, true]);
        });
        check("bloom", *protocol, "insert", || {
            let wide = BloomFilterInsertOptions::default()
                .capacity(500)
                .error_rate(0.001);
            let got: Vec<bool> = con.bf_insert_options("i", &["x", "y", "x"], wide).unwrap();
            assert_eq!(got, [true, true, false]);
            let none = BloomFilterInsertOptions::default().nocreate();
            fails(
                con.bf_insert_options::<_, _, Value>("gone", "z", none),
                "not found",
            );
        });
        check("bloom", *protocol, "card info", || {
            use BloomFilterInfoType::*;
            assert_eq!(con.bf_card::<_, i64>("b").unwrap(), 3);
            let info: std::collections::HashMap<String, Value> = con.bf_info("b").unwrap();
            assert_eq!(info["Capacity"], Value::Int(1000));
            assert_eq!(info.len(), if dialect() == "valkey" { 8 } else { 5 });
            let one = |con: &mut Connection, key: &str, kind| -> f64 {
                *con.bf_info_type::<_, redis::bloom::BloomFilterInfoTypeResponse>(key, kind)
                    .unwrap()
            };
            assert_eq!(one(con, "b", Items), 3.0);
            assert_eq!(one(con, "e", Expansion), 4.0);
            if dialect() == "valkey" {
                // It expects this null by itself only, not in RedisBloom's array.
                assert_eq!(one(con, "n", Expansion), 0.0);
                assert_eq!(
                    [one(con, "b", Error), one(con, "b", Tightening)],
                    [0.01, 0.5]
                );
            }
            fails(con.bf_info::<_, Value>("missing"), "not found");
        });
        check("bloom", *protocol, "full", || {
            let fixed = BloomFilterScalingOptions::NonScaling;
            con.bf_reserve_options::<_, _, _, ()>("f", 1e-9, 1, fixed)
                .unwrap();
            assert!(con.bf_add::<_, _, bool>("f", "a").unwrap());
            fails(
                con.bf_add::<_, _, bool>("f", "b"),
                "non scaling filter is full",
            );
            fails(
                con.bf_madd::<_, _, Vec<bool>>("f", &["a", "b", "c"]),
                "filter is full",
            );
            assert_eq!(con.ping::<String>().unwrap(), "PONG");
        });
    }

    fn cache(&mut self) {
        let Session {
            protocol,
            client,
            other,
            ..
        } = self;
        check("cache", *protocol, "invalidation", || {
            let quiet = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            let config = AsyncConnectionConfig::new().set_cache_config(CacheConfig::new());
            let open = client.get_multiplexed_async_connection_with_config(&config);
            let mut cached = quiet.block_on(open).unwrap();
            let stats = cached.clone();
            let mut there = || {
                quiet
                    .block_on(cmd("EXISTS").arg("c").query_async::<bool>(&mut cached))
                    .unwrap()
            };
            assert!(!there());
            until("a read is cached", || {
                !there() && stats.get_cache_statistics().unwrap().hit > 0
            });
            put(other, "c", "x");
            until("BF.ADD invalidates a read", &mut there);
            until("a read is cached again", || {
                let hits = stats.get_cache_statistics().unwrap().hit;
                there() && stats.get_cache_statistics().unwrap().hit > hits
            });
            let gone = stats.get_cache_statistics().unwrap().invalidate;
            put(other, "c", "y");
            until("BF.ADD to what is there invalidates", || {
                there() && stats.get_cache_statistics().unwrap().invalidate > gone
            });
            other.del::<_, ()>("c").unwrap();
            until("DEL invalidates a read", || !there());
        });
    }
}

fn main() {
    check::start();
    println!("note redis-rs 1.8.1");
    for protocol in [2, 3] {
        let mut session = Session::new(protocol);
        session.connect();
        session.transactions();
        session.pubsub();
        session.keys();
        if bloom() {
            session.bloom();
        }
        if protocol == 3 {
            session.cache();
        }
    }
    check::finish();
}
