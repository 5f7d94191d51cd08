// SPDX-License-Identifier: BSD-3-Clause
//
// go-redis with NewFailoverClient through failovers (README.md): adds, waits
// for two replicas, and counts.
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
	client        *redis.Client
	key           string
	acked         []any
	tried, errors int
	last          time.Time
	longest       time.Duration
}

func number(got any) int64 {
	if yes, ok := got.(bool); ok && yes {
		return 1
	}
	value, _ := got.(int64)
	return value
}

// A connection that wrote nothing waits for nothing: what an earlier try of the
// same item had added already does not count.
func (w *writer) add() error {
	w.tried++
	pipe := w.client.Pipeline()
	added := pipe.Do(ctx, Add, w.key, w.tried)
	replicas := pipe.Do(ctx, "WAIT", 2, 1000)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	if number(added.Val()) == 1 && number(replicas.Val()) >= 2 {
		now := time.Now()
		w.longest = max(w.longest, now.Sub(w.last))
		w.last = now
		w.acked = append(w.acked, w.tried)
	}
	return nil
}

func (w *writer) goesOn() {
	Same(len(w.acked) > 0 && time.Since(w.last) < 2*time.Second, true)
	if w.longest > patience {
		panic(Problem("stood still for " + w.longest.String()))
	}
}

func (w *writer) hasAll() {
	name := map[bool]string{true: "BF.MEXISTS", false: "SMISMEMBER"}[Bloom]
	for at := 0; at < len(w.acked); at += 500 {
		items := w.acked[at:min(at+500, len(w.acked))]
		got := Must(w.client.Do(ctx, append([]any{name, w.key}, items...)...).Slice())
		for _, one := range got {
			Same(number(one), int64(1))
		}
	}
}

func main() {
	log.SetOutput(io.Discard)
	Note("go-redis " + redis.Version())
	addresses := []string{Address}
	for _, port := range os.Args[4:] {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	w := &writer{key: os.Args[3], last: time.Now(),
		client: redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "bloom", SentinelAddrs: addresses})}
	var over atomic.Bool
	go func() {
		_, _ = io.ReadAll(os.Stdin)
		over.Store(true)
	}()
	for !over.Load() {
		if w.add() != nil {
			w.errors++
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond)
	}
	Run("failover", 3, "goes on", w.goesOn)
	Run("failover", 3, "nothing lost", w.hasAll)
	Note(fmt.Sprintf("%d acknowledged by two, %d errors, longest wait %.1f s",
		len(w.acked), w.errors, w.longest.Seconds()))
	Finish()
}
