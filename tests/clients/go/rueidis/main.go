// SPDX-License-Identifier: BSD-3-Clause
//
// rueidis, and valkey-go, which came from it (built with the tag valkeygo): the
// same program. By default it speaks RESP3, turns CLIENT TRACKING on and sends
// CLUSTER SLOTS first; then once more in RESP2 without cache.
package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "clients/check"
)

var ctx = context.Background()

type session struct {
	protocol      int
	client, other client
}

func options(protocol int) clientOption {
	opt := clientOption{InitAddress: []string{Address}, BlockingPoolSize: 4,
		TLSConfig: TLS()}
	if protocol == 2 {
		opt.AlwaysRESP2, opt.DisableCache = true, true
	}
	return opt
}

func open(protocol int) client {
	return Must(newClient(options(protocol)))
}

func call(c client, words ...string) result {
	return c.Do(ctx, c.B().Arbitrary(words...).Build())
}

// number takes an integer or a boolean.
func number(got result) int64 {
	message := Must(got.ToMessage())
	if yes, err := message.ToBool(); err == nil {
		return Sum([]bool{yes})
	}
	return Must(message.ToInt64())
}

func (s *session) add(key, item string) int64 {
	return number(call(s.other, Add, key, item))
}

func (s *session) check(area, what string, body func()) {
	Run(area, s.protocol, what, body)
}

func (s *session) connect() {
	c := s.client
	s.check("connect", "ping", func() {
		Same(Must(c.Do(ctx, c.B().Ping().Build()).ToString()), "PONG")
		Same(Must(c.Do(ctx, c.B().Echo().Message("x").Build()).ToString()), "x")
		OK(c.Do(ctx, c.B().Flushall().Build()).Error())
		hello := Must(call(c, "HELLO").AsMap())
		proto := hello["proto"]
		Same(Must(proto.ToInt64()), int64(s.protocol))
		info := Must(c.Do(ctx, c.B().ClientInfo().Build()).ToString())
		if Bloom {
			Same(strings.Contains(info, "lib-name="+libName+" "), true)
		}
	})
	s.check("connect", "redirect", func() {
		if !Bloom {
			return // redis-server 7 has no CLIENT CAPA
		}
		opt := options(s.protocol)
		opt.Standalone.EnableRedirect = true
		if replica := os.Getenv("BLOOMERY_REPLICA"); replica != "" {
			opt.InitAddress = []string{"127.0.0.1:" + replica}
		}
		one := Must(newClient(opt))
		defer one.Close()
		Same(number(call(one, Add, "redirect", "a")), int64(1))
		Same(number(call(c, Exists, "redirect", "a")), int64(1))
		info := Must(one.Do(ctx, one.B().ClientInfo().Build()).ToString())
		Same(strings.Contains(info, " capa=r "), true)
		OK(call(one, "DEL", "redirect").Error())
	})
	s.check("pool", "goroutines", func() {
		var all sync.WaitGroup
		var sum atomic.Int64
		for worker := range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range 100 {
					if worker%2 == 0 {
						sum.Add(number(call(c, Add, "pool", Item(i))))
						continue
					}
					c.Dedicated(func(one dedicated) error {
						sum.Add(number(one.Do(ctx, one.B().Arbitrary(Add, "pool",
							Item(i)).Build())))
						return nil
					})
				}
			}()
		}
		all.Wait()
		Same(sum.Load(), number(call(c, Card, "pool")))
	})
	s.check("pipeline", "thousand", func() {
		var commands []command
		for i := range 1000 {
			commands = append(commands, c.B().Arbitrary(Add, "pipe",
				Item(i%500)).Build())
		}
		sums := [2]int64{}
		for i, got := range c.DoMulti(ctx, commands...) {
			sums[i/500] += number(got)
		}
		Same(sums, [2]int64{number(call(c, Card, "pipe")), 0})
	})
}

func (s *session) transactions() {
	exec := func(one dedicated, commands ...[]string) result {
		all := []command{one.B().Multi().Build()}
		for _, words := range commands {
			all = append(all, one.B().Arbitrary(words...).Build())
		}
		got := one.DoMulti(ctx, append(all, one.B().Exec().Build())...)
		return got[len(got)-1]
	}
	within := func(body func(one dedicated)) func() {
		return func() {
			OK(s.client.Dedicated(func(one dedicated) error {
				body(one)
				return nil
			}))
		}
	}
	s.check("transaction", "exec", within(func(one dedicated) {
		got := Must(exec(one, []string{Add, "txn", "a"}, []string{Add, "txn", "a"},
			[]string{"EXISTS", "txn"}).ToArray())
		Same(len(got), 3)
		Same(Must(got[2].ToInt64()), int64(1))
	}))
	s.check("transaction", "bad command", within(func(one dedicated) {
		Fails(exec(one, []string{Add, "txn", "never"}, []string{"ECHO"}).Error(),
			"EXECABORT")
		Same(number(call(s.client, Exists, "txn", "never")), int64(0))
	}))
	s.check("watch", "changed unchanged", within(func(one dedicated) {
		watch := func() { OK(one.Do(ctx, one.B().Watch().Key("txn").Build()).Error()) }
		watch()
		s.add("txn", "b")
		Same(isNil(exec(one, []string{"PING"}).Error()), true)
		watch()
		s.add("another", "b")
		Same(Must(exec(one, []string{"PING"}).AsStrSlice()), []string{"PONG"})
	}))
}

// listen subscribes, runs the body when that is confirmed, and unsubscribes.
func (s *session) listen(subscribe func(client) command, numbers func() bool,
	body func(next func() message), unsubscribe func(client) command) {
	c := open(s.protocol)
	defer c.Close()
	inbox, ended := make(chan message, 10), make(chan error, 1)
	go func() {
		ended <- c.Receive(ctx, subscribe(c), func(m message) { inbox <- m })
	}()
	Until("subscribed", numbers)
	body(func() message {
		select {
		case m := <-inbox:
			return m
		case <-time.After(5 * time.Second):
			panic(Problem("no message"))
		}
	})
	OK(c.Do(ctx, unsubscribe(c)).Error())
	OK(<-ended)
}

func (s *session) publish(channel, text string) int64 {
	return Must(s.other.Do(ctx, s.other.B().Publish().Channel(channel).
		Message(text).Build()).ToInt64())
}

func (s *session) pubsub() {
	s.check("pubsub", "subscribe", func() {
		s.listen(func(c client) command {
			return c.B().Subscribe().Channel("news", "more").Build()
		}, func() bool {
			got := Must(call(s.other, "PUBSUB", "NUMSUB", "more").ToArray())
			return Must(got[1].ToInt64()) == 1
		}, func(next func() message) {
			Same(s.publish("news", "hello"), int64(1))
			got := next()
			Same([]string{got.Channel, got.Message}, []string{"news", "hello"})
		}, func(c client) command {
			return c.B().Unsubscribe().Channel("news", "more").Build()
		})
		Same(s.publish("news", "nobody"), int64(0))
	})
	s.check("pattern", "psubscribe", func() {
		s.listen(func(c client) command {
			return c.B().Psubscribe().Pattern("news.*").Build()
		}, func() bool {
			return number(call(s.other, "PUBSUB", "NUMPAT")) == 1
		}, func(next func() message) {
			Same(s.publish("news.today", "hello"), int64(1))
			got := next()
			Same([]string{got.Pattern, got.Channel, got.Message},
				[]string{"news.*", "news.today", "hello"})
		}, func(c client) command {
			return c.B().Punsubscribe().Pattern("news.*").Build()
		})
		Same(s.publish("news.today", "nobody"), int64(0))
	})
}

func (s *session) keys() {
	s.check("keys", "commands", func() {
		s.add("key", "a")
		Same(Must(call(s.client, "TYPE", "key").ToString()), Type)
		Same(number(call(s.client, "EXPIRE", "key", "100")), int64(1))
		Same(number(call(s.client, "PERSIST", "key")), int64(1))
		OK(call(s.client, "RENAME", "key", "renamed").Error())
		Same(number(call(s.client, "COPY", "renamed", "key")), int64(1))
		Same(number(call(s.client, "DEL", "key", "renamed", "gone")), int64(2))
		got := Must(s.client.Do(ctx, s.client.B().Scan().Cursor(0).Count(1000).
			Build()).AsScanEntry())
		Same([]int{int(got.Cursor), len(got.Elements)}, []int{0, 4})
	})
}

func (s *session) bloom() {
	c := s.client
	b := c.B
	do := func(cmd command) result { return c.Do(ctx, cmd) }
	s.check("bloom", "reserve", func() {
		OK(do(b().BfReserve().Key("b").ErrorRate(0.01).Capacity(1000).Build()).Error())
		OK(do(b().BfReserve().Key("e").ErrorRate(0.01).Capacity(1000).Expansion(4).
			Build()).Error())
		OK(do(b().BfReserve().Key("n").ErrorRate(0.01).Capacity(1000).Nonscaling().
			Build()).Error())
		Fails(do(b().BfReserve().Key("b").ErrorRate(0.01).Capacity(1000).Build()).
			Error(), "item exists")
	})
	s.check("bloom", "add exists", func() {
		Same(Must(do(b().BfAdd().Key("b").Item("foo").Build()).AsBool()), true)
		Same(Must(do(b().BfAdd().Key("b").Item("foo").Build()).AsBool()), false)
		Same(Must(do(b().BfMadd().Key("b").Item("foo", "bar", "baz").Build()).
			AsBoolSlice()), []bool{false, true, true})
		Same(Must(do(b().BfExists().Key("b").Item("foo").Build()).AsBool()), true)
		Same(Must(do(b().BfMexists().Key("b").Item("foo", "no", "baz").Build()).
			AsBoolSlice()), []bool{true, false, true})
	})
	s.check("bloom", "insert", func() {
		Same(Must(do(b().BfInsert().Key("i").Capacity(500).Error(0.001).Items().
			Item("x", "y", "x").Build()).AsBoolSlice()), []bool{true, true, false})
		Fails(do(b().BfInsert().Key("gone").Nocreate().Items().Item("z").Build()).
			Error(), "not found")
	})
	s.check("bloom", "card info", func() {
		Same(Must(do(b().BfCard().Key("b").Build()).AsInt64()), int64(3))
		info := Must(do(b().BfInfo().Key("b").Build()).AsMap())
		capacity, items := info["Capacity"], info["Number of items inserted"]
		Same([]int64{Must(capacity.ToInt64()), Must(items.ToInt64())},
			[]int64{1000, 3})
		if Dialect == "redis" {
			Same(len(info), 5)
		}
		fixed := Must(do(b().BfInfo().Key("n").Build()).AsMap())
		rate := fixed["Expansion rate"]
		Same(rate.IsNil(), true)
		one := do(b().BfInfo().Key("b").Items().Build())
		switch {
		case Dialect == "valkey":
			Same(Must(one.ToInt64()), int64(3))
		case s.protocol == 3:
			Same(Must(one.AsIntMap()), map[string]int64{"Number of items inserted": 3})
		default:
			Same(Must(one.AsIntSlice()), []int64{3})
		}
	})
	s.check("bloom", "full", func() {
		OK(do(b().BfReserve().Key("f").ErrorRate(1e-9).Capacity(1).Nonscaling().
			Build()).Error())
		got := Must(do(b().BfMadd().Key("f").Item("a", "b", "c").Build()).ToArray())
		Same(len(got), 2)
		Fails(got[1].Error(), "non scaling filter is full")
	})
}

// cache reads through DoCache: CLIENT CACHING YES, MULTI, PTTL, the read, EXEC.
func (s *session) cache() {
	c := s.client
	read := func() result {
		if !Bloom {
			return c.DoCache(ctx, c.B().Sismember().Key("c").Member("x").Cache(),
				time.Minute)
		}
		return c.DoCache(ctx, c.B().BfExists().Key("c").Item("x").Cache(),
			time.Minute)
	}
	s.check("cache", "invalidation", func() {
		Same(number(read()), int64(0))
		Same(read().IsCacheHit(), true)
		s.add("c", "x")
		Until("BF.ADD invalidates a read", func() bool { return number(read()) == 1 })
		Same(read().IsCacheHit(), true)
		s.add("c", "y")
		Until("BF.ADD to what is there invalidates", func() bool {
			return !read().IsCacheHit()
		})
		Same(number(read()), int64(1))
		Same(number(call(s.other, "DEL", "c")), int64(1))
		Until("DEL invalidates a read", func() bool { return number(read()) == 0 })
		Same(read().IsCacheHit(), true)
		OK(call(s.other, "FLUSHALL").Error())
		Until("FLUSHALL invalidates all", func() bool { return !read().IsCacheHit() })
	})
}

func main() {
	Note(name)
	for _, protocol := range []int{3, 2} {
		s := &session{protocol: protocol}
		s.check("connect", "new client", func() {
			s.client, s.other = open(protocol), open(protocol)
		})
		if s.other == nil {
			continue
		}
		s.connect()
		s.transactions()
		s.pubsub()
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
