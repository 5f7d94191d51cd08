// SPDX-License-Identifier: BSD-3-Clause
//
// go-redis 9 with its typed BF helpers: with its defaults (RESP3), then in
// RESP2. Its client-side cache is for EXISTS and TYPE, not for BF.
package main

import (
	"context"
	"io"
	"log"
	"sort"
	"strings"
	"sync"
	"time"

	. "clients/check"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

type session struct {
	protocol      int
	client, other *redis.Client
}

func options(protocol int) *redis.Options {
	got := &redis.Options{Addr: Address, TLSConfig: TLS()}
	if protocol == 2 {
		got.Protocol = 2
	}
	return got
}

func (s *session) add(key, item string) int64 {
	return asInt(s.other.Do(ctx, Add, key, item).Result())
}

func asInt(got any, err error) int64 {
	OK(err)
	if yes, ok := got.(bool); ok {
		if yes {
			return 1
		}
		return 0
	}
	return got.(int64)
}

func (s *session) check(area, what string, body func()) {
	Run(area, s.protocol, what, body)
}

func (s *session) connect() {
	s.check("connect", "ping", func() {
		Same(Must(s.client.Ping(ctx).Result()), "PONG")
		Same(Must(s.client.Echo(ctx, "x").Result()), "x")
		OK(s.client.FlushAll(ctx).Err())
		Same(strings.Contains(Must(s.client.Info(ctx).Result()),
			"redis_mode:standalone"), true)
		Same(Must(s.client.ConfigGet(ctx, "maxmemory").Result()),
			map[string]string{"maxmemory": "0"})
		info := Must(s.client.ClientInfo(ctx).Result())
		if Bloom {
			Same(info.Resp, s.protocol)
			Same(strings.HasPrefix(info.LibName, "go-redis"), true)
		}
	})
	s.check("pool", "goroutines", func() {
		opt := options(s.protocol)
		opt.PoolSize = 4
		pool := redis.NewClient(opt)
		defer pool.Close()
		var all sync.WaitGroup
		var lock sync.Mutex
		var sum int64
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range 100 {
					one, _ := pool.Do(ctx, Add, "pool", Item(i)).Result()
					lock.Lock()
					sum += asInt(one, nil)
					lock.Unlock()
				}
			}()
		}
		all.Wait()
		Same(sum, asInt(s.client.Do(ctx, Card, "pool").Result()))
		Same(pool.PoolStats().TotalConns <= 4, true)
	})
	s.check("pipeline", "thousand", func() {
		pipe := s.client.Pipeline()
		for i := range 1000 {
			pipe.Do(ctx, Add, "pipe", Item(i%500))
		}
		sums := [2]int64{}
		for i, got := range Must(pipe.Exec(ctx)) {
			sums[i/500] += asInt(got.(*redis.Cmd).Result())
		}
		Same(sums, [2]int64{asInt(s.client.Do(ctx, Card, "pipe").Result()), 0})
	})
}

func (s *session) transactions() {
	s.check("transaction", "exec", func() {
		pipe := s.client.TxPipeline()
		first, second := pipe.Do(ctx, Add, "txn", "a"), pipe.Do(ctx, Add, "txn", "a")
		third := pipe.Exists(ctx, "txn")
		Must(pipe.Exec(ctx))
		Same([]int64{asInt(first.Result()), asInt(second.Result()), third.Val()},
			[]int64{1, 0, 1})
	})
	s.check("transaction", "bad command", func() {
		pipe := s.client.TxPipeline()
		pipe.Do(ctx, Add, "txn", "never")
		pipe.Do(ctx, "ECHO")
		_, err := pipe.Exec(ctx)
		Fails(err, "EXECABORT")
		Same(asInt(s.client.Do(ctx, Exists, "txn", "never").Result()), int64(0))
	})
	for _, changed := range []string{"txn", "another"} {
		s.check("watch", "while "+changed+" changes", func() {
			err := s.client.Watch(ctx, func(tx *redis.Tx) error {
				s.add(changed, "b")
				_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
					pipe.Ping(ctx)
					return nil
				})
				return err
			}, "txn")
			Same(err == redis.TxFailedErr, changed == "txn")
			Same(err == nil, changed != "txn")
		})
	}
}

func (s *session) pubsub() {
	s.check("pubsub", "subscribe", func() {
		sub := s.client.Subscribe(ctx, "news", "more")
		defer sub.Close()
		Must(sub.Receive(ctx))
		Must(sub.Receive(ctx))
		Same(Must(s.other.Publish(ctx, "news", "hello").Result()), int64(1))
		got := Must(sub.ReceiveMessage(ctx))
		Same([]string{got.Channel, got.Payload}, []string{"news", "hello"})
		Same(Must(s.other.PubSubNumSub(ctx, "news").Result()),
			map[string]int64{"news": 1})
		OK(sub.Ping(ctx, "still there"))
		Same(Must(sub.Receive(ctx)).(*redis.Pong).Payload, "still there")
		OK(sub.Unsubscribe(ctx, "news"))
		Same(Must(sub.Receive(ctx)).(*redis.Subscription).Kind, "unsubscribe")
		Same(Must(s.other.Publish(ctx, "news", "nobody").Result()), int64(0))
	})
	s.check("pattern", "psubscribe", func() {
		sub := s.client.PSubscribe(ctx, "news.*")
		defer sub.Close()
		Must(sub.Receive(ctx))
		Same(Must(s.other.PubSubNumPat(ctx).Result()), int64(1))
		s.other.Publish(ctx, "news.today", "hello")
		got := Must(sub.ReceiveMessage(ctx))
		Same([]string{got.Pattern, got.Channel, got.Payload},
			[]string{"news.*", "news.today", "hello"})
		OK(sub.PUnsubscribe(ctx))
		Must(sub.Receive(ctx))
		Same(Must(s.other.Publish(ctx, "news.today", "nobody").Result()), int64(0))
	})
}

func (s *session) shards() {
	s.check("pubsub", "ssubscribe", func() {
		sub := s.client.SSubscribe(ctx, "shard")
		defer sub.Close()
		Must(sub.Receive(ctx))
		Same(Must(s.other.Publish(ctx, "shard", "other kind").Result()), int64(0))
		Same(Must(s.other.SPublish(ctx, "shard", "hello").Result()), int64(1))
		Same(Must(sub.ReceiveMessage(ctx)).Payload, "hello")
		OK(sub.SUnsubscribe(ctx))
		Must(sub.Receive(ctx))
		Same(Must(s.other.SPublish(ctx, "shard", "nobody").Result()), int64(0))
	})
}

func (s *session) keys() {
	s.check("keys", "commands", func() {
		c := s.client
		s.add("key", "a")
		Same(Must(c.Type(ctx, "key").Result()), Type)
		Same(Must(c.Expire(ctx, "key", 100*time.Second).Result()), true)
		Same(Must(c.TTL(ctx, "key").Result()) > 90*time.Second, true)
		Same(Must(c.Persist(ctx, "key").Result()), true)
		Same(Must(c.Rename(ctx, "key", "renamed").Result()), "OK")
		Same(Must(c.Copy(ctx, "renamed", "key", 0, false).Result()), int64(1))
		Same(Must(c.Del(ctx, "key", "renamed", "gone").Result()), int64(2))
		seen := map[string]bool{}
		for each := c.Scan(ctx, 0, "", 0).Iterator(); each.Next(ctx); {
			seen[each.Val()] = true
		}
		var names []string
		for name := range seen {
			names = append(names, name)
		}
		sort.Strings(names)
		Same(names, []string{"another", "pipe", "pool", "txn"})
	})
}

func (s *session) bloom() {
	c := s.client
	s.check("bloom", "reserve", func() {
		Same(Must(c.BFReserve(ctx, "b", 0.01, 1000).Result()), "OK")
		Same(Must(c.BFReserveExpansion(ctx, "e", 0.01, 1000, 4).Result()), "OK")
		Same(Must(c.BFReserveNonScaling(ctx, "n", 0.01, 1000).Result()), "OK")
		Fails(c.BFReserve(ctx, "b", 0.01, 1000).Err(), "item exists")
	})
	s.check("bloom", "add exists", func() {
		Same(Must(c.BFAdd(ctx, "b", "foo").Result()), true)
		Same(Must(c.BFAdd(ctx, "b", "foo").Result()), false)
		Same(Must(c.BFMAdd(ctx, "b", "foo", "bar", "baz").Result()),
			[]bool{false, true, true})
		Same(Must(c.BFExists(ctx, "b", "foo").Result()), true)
		Same(Must(c.BFMExists(ctx, "b", "foo", "no", "baz").Result()),
			[]bool{true, false, true})
	})
	s.check("bloom", "insert", func() {
		Same(Must(c.BFInsert(ctx, "i", &redis.BFInsertOptions{Capacity: 500,
			Error: 0.001}, "x", "y", "x").Result()), []bool{true, true, false})
		Fails(c.BFInsert(ctx, "gone", &redis.BFInsertOptions{NoCreate: true},
			"z").Err(), "not found")
	})
	s.check("bloom", "card", func() {
		Same(Must(c.BFCard(ctx, "b").Result()), int64(3))
		Same(Must(c.BFCard(ctx, "missing").Result()), int64(0))
	})
	s.check("bloom", "info", func() {
		got := Must(c.BFInfo(ctx, "b").Result())
		Same(got.Size > 1000, true)
		got.Size = 0
		Same(got, redis.BFInfo{Capacity: 1000, Filters: 1, ItemsInserted: 3,
			ExpansionRate: 2})
		Fails(c.BFInfo(ctx, "missing").Err(), "not found")
		// It does not know that the rate of a filter that does not scale is null.
		Fails(c.BFInfo(ctx, "n").Err(), "nil")
	})
	s.check("bloom", "info of one field", func() {
		got, err := c.BFInfoCapacity(ctx, "b").Result()
		if Dialect == "redis" {
			OK(err)
			Same(got.Capacity, int64(1000))
		} else {
			Fails(err, "redis: ") // It wants RedisBloom's shapes.
		}
	})
	s.check("bloom", "full", func() {
		OK(c.BFReserveNonScaling(ctx, "f", 1e-9, 1).Err())
		Same(Must(c.BFAdd(ctx, "f", "a").Result()), true)
		Fails(c.BFAdd(ctx, "f", "b").Err(), "non scaling filter is full")
		Fails(c.BFMAdd(ctx, "f", "a", "b", "c").Err(), "non scaling filter is full")
		Same(Must(c.Ping(ctx).Result()), "PONG")
	})
}

func (s *session) cache() {
	s.check("cache", "invalidation", func() {
		opt := options(3)
		opt.ClientSideCacheConfig = &redis.ClientSideCacheConfig{MaxEntries: 100}
		cached := redis.NewClient(opt)
		defer cached.Close()
		Same(Must(cached.Exists(ctx, "c").Result()), int64(0))
		Until("a read is cached", func() bool {
			return cached.Exists(ctx, "c").Val() == 0 && cached.CSCStats().Hits > 0
		})
		s.add("c", "x")
		Until("BF.ADD invalidates a read", func() bool {
			return cached.Exists(ctx, "c").Val() == 1
		})
		Same(Must(cached.Type(ctx, "c").Result()), Type)
		OK(s.other.Del(ctx, "c").Err())
		Until("DEL invalidates a read", func() bool {
			return cached.Type(ctx, "c").Val() == "none"
		})
	})
}

func main() {
	log.SetOutput(io.Discard)
	Note("go-redis " + redis.Version())
	for _, protocol := range []int{3, 2} {
		s := &session{protocol, redis.NewClient(options(protocol)),
			redis.NewClient(options(protocol))}
		s.connect()
		s.transactions()
		s.pubsub()
		s.shards()
		s.keys()
		if Bloom {
			s.bloom()
		}
		if protocol == 3 {
			s.cache()
		}
		s.client.Close()
		s.other.Close()
	}
	Finish()
}
