# SPDX-License-Identifier: BSD-3-Clause
#
# redis-rb 4 of Debian 12: call() for BF, RESP2. It has no pool of its own; one
# client is shared by threads, which wait for each other.

require "redis"

PORT = ARGV[0].to_i
# The file of the authority that signed the server's certificate; plain TCP without.
CA = ENV["BLOOMERY_CA"]
DIALECT = ARGV[1]
BLOOM = DIALECT != "redis-server"
# Where redis-server stands in for the server, a set stands in for a filter:
# SADD, SISMEMBER and SCARD answer as BF.ADD, BF.EXISTS and BF.CARD do.
ADD, EXISTS, CARD = BLOOM ? %w[BF.ADD BF.EXISTS BF.CARD] : %w[SADD SISMEMBER SCARD]
TYPE = { "valkey" => "bloomfltr", "redis" => "MBbloom--" }.fetch(DIALECT, "set")

$stdout.sync = true
$failed = false

def check(area, what)
  yield
  puts "ok #{area} RESP2 #{what}"
rescue StandardError => e
  $failed = true
  where = e.backtrace.find { |x| x.include?("check_redis_rb") && !x.include?("same") }
  puts "not ok #{area} RESP2 #{what}: #{e.class} #{e.message} (#{where})".tr("\n", " ")
end

def same(got, want)
  raise "got #{got.inspect}, want #{want.inspect}" unless got == want
end

def fails(text)
  got = yield
rescue Redis::CommandError => e
  raise "said #{e.message}" unless e.message.include?(text)
else
  raise "no error but #{got.inspect}"
end

def open_one
  Redis.new(host: "127.0.0.1", port: PORT, timeout: 5,
            ssl: !CA.nil?, ssl_params: { ca_file: CA })
end

redis = open_one
other = open_one
puts "note redis-rb #{Redis::VERSION}"

check("connect", "ping") do
  same([redis.ping, redis.echo("x"), redis.flushall], %w[PONG x OK])
  same(redis.info["redis_mode"], "standalone")
  same(redis.config(:get, "maxmemory"), { "maxmemory" => "0" })
end

check("pool", "threads") do
  crowd = Array.new(8) do |n|
    Thread.new do
      one = n.even? ? redis : open_one
      (0...50).sum { |i| one.call(ADD, "pool", i.to_s) }
    end
  end
  same(crowd.sum(&:value), redis.call(CARD, "pool"))
end

check("pipeline", "thousand") do
  got = redis.pipelined do |pipe|
    1000.times { |i| pipe.call(ADD, "pipe", (i % 500).to_s) }
  end
  same([got.size, got[500..].sum], [1000, 0])
  same(got.sum, redis.call(CARD, "pipe"))
end

check("transaction", "exec") do
  got = redis.multi do |tx|
    tx.call(ADD, "txn", "a")
    tx.call(ADD, "txn", "a")
    tx.exists("txn")
  end
  same(got, [1, 0, 1])
end

check("transaction", "bad command") do
  fails("") do
    redis.multi do |tx|
      tx.call(ADD, "txn", "never")
      tx.call("ECHO")
    end
  end
  same(redis.call(EXISTS, "txn", "never"), 0)
end

check("watch", "changed unchanged") do
  [["txn", nil], ["another", ["PONG"]]].each do |changed, want|
    got = redis.watch("txn") do
      other.call(ADD, changed, "b")
      redis.multi { |tx| tx.call("PING") }
    end
    same(got, want)
  end
end

check("pubsub", "subscribe") do
  heard = nil
  listening = open_one
  listening.subscribe_with_timeout(5, "news", "more") do |on|
    on.subscribe { |_, count| other.publish("news", "hello") if count == 2 }
    on.message do |channel, text|
      heard = [channel, text]
      listening.unsubscribe
    end
  end
  same(heard, %w[news hello])
  same(other.publish("news", "nobody"), 0)
end

check("pattern", "psubscribe") do
  heard = nil
  listening = open_one
  listening.psubscribe_with_timeout(5, "news.*") do |on|
    on.psubscribe { other.publish("news.today", "hello") }
    on.pmessage do |pattern, channel, text|
      heard = [pattern, channel, text]
      listening.punsubscribe("news.*")
    end
  end
  same(heard, %w[news.* news.today hello])
  same(other.publish("news.today", "nobody"), 0)
end

check("keys", "commands") do
  redis.call(ADD, "key", "a")
  same(redis.type("key"), TYPE)
  same([redis.expire("key", 100), redis.persist("key")], [true, true])
  same(redis.rename("key", "renamed"), "OK")
  same([redis.copy("renamed", "key"), redis.del("key", "renamed", "gone")], [true, 2])
  same(redis.scan_each.to_a.uniq.sort, %w[another pipe pool txn])
end

if BLOOM
  check("bloom", "calls") do
    same(redis.call("BF.RESERVE", "b", "0.01", "1000"), "OK")
    fails("item exists") { redis.call("BF.RESERVE", "b", "0.01", "1000") }
    same(redis.call("BF.MADD", "b", "foo", "bar", "foo"), [1, 1, 0])
    same(redis.call("BF.MEXISTS", "b", "foo", "no"), [1, 0])
    same(redis.call("BF.CARD", "b"), 2)
    same(redis.call("BF.INFO", "b").size, DIALECT == "valkey" ? 16 : 10)
    same(redis.call("BF.INFO", "b", "ITEMS"), DIALECT == "valkey" ? 2 : [2])
    fails("not found") { redis.call("BF.INFO", "missing") }
  end
else
  puts "lacks bloom redis-server stands in"
end
puts "lacks cache it has none"
puts "lacks RESP3 it speaks RESP2 only"
puts "end"
exit($failed ? 1 : 0)
