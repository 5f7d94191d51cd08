// SPDX-License-Identifier: BSD-3-Clause

//go:build !valkeygo

package main

import lib "github.com/redis/rueidis"

const (
	name    = "rueidis " + lib.LibVer
	libName = lib.LibName
)

type (
	client       = lib.Client
	clientOption = lib.ClientOption
	command      = lib.Completed
	dedicated    = lib.DedicatedClient
	message      = lib.PubSubMessage
	result       = lib.RedisResult
)

var (
	newClient = lib.NewClient
	isNil     = lib.IsRedisNil
)
