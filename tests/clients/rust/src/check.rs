// SPDX-License-Identifier: BSD-3-Clause
//
// The words on the command line, and the lines that the driver reads
// (README.md).

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

static FAILED: AtomicBool = AtomicBool::new(false);
static PROBLEM: Mutex<String> = Mutex::new(String::new());
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| std::env::args().collect());

pub fn port() -> &'static str {
    &WORDS[1]
}

pub fn dialect() -> &'static str {
    &WORDS[2]
}

/// The file of the authority that signed the server's certificate; plain TCP
/// without it.
pub fn authority() -> Option<String> {
    std::env::var("BLOOMERY_CA").ok()
}

/// False where redis-server stands in for the server. There a set stands in for
/// a filter: SADD, SISMEMBER and SCARD answer as BF.ADD and its like do.
pub fn bloom() -> bool {
    dialect() != "redis-server"
}

pub fn add() -> &'static str {
    if bloom() { "BF.ADD" } else { "SADD" }
}

pub fn exists() -> &'static str {
    if bloom() { "BF.EXISTS" } else { "SISMEMBER" }
}

pub fn card() -> &'static str {
    if bloom() { "BF.CARD" } else { "SCARD" }
}

pub fn kind() -> &'static str {
    match dialect() {
        "valkey" => "bloomfltr",
        "redis" => "MBbloom--",
        _ => "set",
    }
}

/// A panic is how a check fails; its text is kept for the line.
pub fn start() {
    std::panic::set_hook(Box::new(|info| {
        let mut problem = PROBLEM.lock().unwrap();
        if problem.is_empty() {
            *problem = info.to_string().replace('\n', " ");
        }
    }));
}

pub fn check(area: &str, protocol: i64, what: &str, body: impl FnOnce()) {
    let label = format!("{area} RESP{protocol} {what}");
    PROBLEM.lock().unwrap().clear();
    if catch_unwind(AssertUnwindSafe(body)).is_ok() {
        println!("ok {label}");
    } else {
        FAILED.store(true, Ordering::Relaxed);
        println!("not ok {label}: {}", PROBLEM.lock().unwrap());
    }
}

pub fn fails<T: Debug>(got: redis::RedisResult<T>, text: &str) {
    let error = got.expect_err("no error").to_string();
    assert!(error.contains(text), "said {error}");
}

/// Asks again until it is so; with a deadline.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn finish() -> ! {
    if !bloom() {
        println!("lacks bloom redis-server stands in");
    }
    println!("end");
    std::process::exit(FAILED.load(Ordering::Relaxed).into());
}
