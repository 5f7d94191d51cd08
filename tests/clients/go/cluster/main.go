// SPDX-License-Identifier: BSD-3-Clause
//
// go-redis with NewClusterClient in a cluster (README.md).
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"
	"time"

	. "clients/check"

	"github.com/redis/go-redis/v9"
)

const patience = 20 * time.Second

var ctx = context.Background()

type writer struct {
	client        *redis.ClusterClient
	prefix        string
	acked         map[string][]any
	tried, errors int
	last          time.Time
	longest       time.Duration
}

func word(bloom, set string) string {
	if Bloom {
		return bloom
	}
	return set
}

func number(got any) int64 {
	if yes, ok := got.(bool); ok && yes {
		return 1
	}
	value, _ := got.(int64)
	return value
}

func sum(values []any) (all int64) {
	for _, one := range values {
		all += number(one)
	}
	return all
}

func (w *writer) do(words ...any) any {
	return Must(w.client.Do(ctx, words...).Result())
}

func (w *writer) readsAndWrites() {
	for n := range 100 {
		key := fmt.Sprintf("%s-once-%d", w.prefix, n)
		Same(number(w.do(Add, key, "a")), int64(1))
		Same(number(w.do(Add, key, "a")), int64(0))
		Same(number(w.do(Exists, key, "a")), int64(1))
		Same(number(w.do(Exists, key, "b")), int64(0))
	}
}

func (w *writer) manyItems() {
	key := w.prefix + "-many"
	switch got := w.do(word("BF.MADD", "SADD"), key, "a", "b", "c").(type) {
	case []any:
		Same(sum(got), int64(3))
	default:
		Same(got, int64(3))
	}
	got := w.do(word("BF.MEXISTS", "SMISMEMBER"), key, "c", "no", "a").([]any)
	Same([]int64{number(got[0]), number(got[1]), number(got[2])}, []int64{1, 0, 1})
}

func (w *writer) pipeline() {
	for _, name := range []string{Add, Exists} {
		pipe := w.client.Pipeline()
		for n := range 50 {
			pipe.Do(ctx, name, fmt.Sprintf("%s-piped-%d", w.prefix, n), "a")
		}
		var all int64
		for _, one := range Must(pipe.Exec(ctx)) {
			all += number(one.(*redis.Cmd).Val())
		}
		Same(all, int64(50))
	}
}

// add makes a failed add none that was acknowledged.
func (w *writer) add() {
	w.tried++
	key := fmt.Sprintf("%s-%d", w.prefix, w.tried%20)
	if err := w.client.Do(ctx, Add, key, w.tried).Err(); err != nil {
		w.errors++
		time.Sleep(20 * time.Millisecond)
		return
	}
	now := time.Now()
	w.longest = max(w.longest, now.Sub(w.last))
	w.last = now
	w.acked[key] = append(w.acked[key], w.tried)
}

func (w *writer) goesOn() {
	Same(time.Since(w.last) < 2*time.Second, true)
	if w.longest > patience {
		panic(Problem("stood still for " + w.longest.String()))
	}
}

func (w *writer) hasAll() {
	name := word("BF.MEXISTS", "SMISMEMBER")
	for key, items := range w.acked {
		for at := 0; at < len(items); at += 500 {
			part := items[at:min(at+500, len(items))]
			got := w.do(append([]any{name, key}, part...)...).([]any)
			Same(sum(got), int64(len(part)))
		}
	}
}

func main() {
	log.SetOutput(io.Discard)
	Note("go-redis " + redis.Version())
	w := &writer{prefix: os.Args[3], acked: map[string][]any{},
		client: redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{Address}})}
	Run("cluster", 3, "reads and writes", w.readsAndWrites)
	Run("cluster", 3, "many items", w.manyItems)
	Run("cluster", 3, "pipeline", w.pipeline)
	var over atomic.Bool
	go func() {
		_, _ = io.ReadAll(os.Stdin)
		over.Store(true)
	}()
	for w.last = time.Now(); !over.Load(); time.Sleep(5 * time.Millisecond) {
		w.add()
	}
	Run("cluster", 3, "goes on", w.goesOn)
	Run("cluster", 3, "nothing lost", w.hasAll)
	count := 0
	for _, items := range w.acked {
		count += len(items)
	}
	Note(fmt.Sprintf("%d acknowledged, %d errors, longest wait %.2f s",
		count, w.errors, w.longest.Seconds()))
	Finish()
}
