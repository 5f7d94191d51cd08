// SPDX-License-Identifier: BSD-3-Clause
//
// Asks a filter which items are new: go run seen.go PORT. It needs go-redis.

package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	err := client.BFReserve(ctx, "seen", 0.001, 1000000).Err()
	if err == nil || strings.Contains(err.Error(), "exists") {
		err = client.BFMAdd(ctx, "seen", "alice", "bob").Err()
	}
	if err != nil {
		panic(err)
	}
	found, err := client.BFMExists(ctx, "seen", "alice", "carol").Result()
	if err != nil {
		panic(err)
	}
	fmt.Println(found)
	fmt.Println("new:", client.Do(ctx, "BF.COUNTNEW", "seen", "bob", "carol").Val())
}
