// SPDX-License-Identifier: BSD-3-Clause
//
// Package check has what the Go programs share: the words on the command
// line, and the lines that the driver reads (README.md).
package check

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	// Address and Dialect come from the command line.
	Address = "127.0.0.1:" + os.Args[1]
	Dialect = os.Args[2]
	// Bloom is false where redis-server stands in for the server. There a set
	// stands in for a filter: SADD, SISMEMBER and SCARD answer as BF.ADD,
	// BF.EXISTS and BF.CARD do.
	Bloom  = Dialect != "redis-server"
	Add    = pick("BF.ADD", "SADD")
	Exists = pick("BF.EXISTS", "SISMEMBER")
	Card   = pick("BF.CARD", "SCARD")
	// Type is what TYPE answers for it.
	Type = map[string]string{"valkey": "bloomfltr", "redis": "MBbloom--",
		"redis-server": "set"}[Dialect]

	failed bool
)

func pick(bloom, set string) string {
	if os.Args[2] != "redis-server" {
		return bloom
	}
	return set
}

// TLS returns what trusts the authority of BLOOMERY_CA only, and nil without it:
// plain TCP.
func TLS() *tls.Config {
	path := os.Getenv("BLOOMERY_CA")
	if path == "" {
		return nil
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(Must(os.ReadFile(path)))
	return &tls.Config{RootCAs: authorities}
}

// Problem is what a failed comparison panics with.
type Problem string

// Run runs one check.
func Run(area string, protocol int, what string, body func()) {
	label := fmt.Sprintf("%s RESP%d %s", area, protocol, what)
	problem := make(chan any, 1)
	go func() {
		defer func() { problem <- recover() }()
		body()
	}()
	select {
	case got := <-problem:
		if got == nil {
			fmt.Println("ok", label)
			return
		}
		fail(label, got)
	case <-time.After(10 * time.Second):
		fail(label, "no answer")
	}
}

func fail(label string, problem any) {
	failed = true
	fmt.Println("not ok", label+":",
		strings.ReplaceAll(fmt.Sprint(problem), "\n", " "))
}

// Note says something that is neither good nor bad.
func Note(text string) { fmt.Println("note", text) }

// Lacks says what the client does not have.
func Lacks(area, why string) { fmt.Println("lacks", area, why) }

// Same compares.
func Same(got, want any) {
	if !reflect.DeepEqual(got, want) {
		panic(Problem(fmt.Sprintf("got %#v, want %#v", got, want)))
	}
}

// OK wants no error.
func OK(err error) {
	if err != nil {
		panic(Problem("error: " + err.Error()))
	}
}

// Must wants no error and returns the value.
func Must[T any](value T, err error) T {
	OK(err)
	return value
}

// Fails wants an error that says so.
func Fails(err error, text string) {
	if err == nil {
		panic(Problem("no error, want " + text))
	}
	if !strings.Contains(err.Error(), text) {
		panic(Problem("error: " + err.Error() + ", want " + text))
	}
}

// Until asks again until it is so; with a deadline.
func Until(what string, condition func() bool) {
	for end := time.Now().Add(5 * time.Second); !condition(); {
		if time.Now().After(end) {
			panic(Problem("never: " + what))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Item is the nth item.
func Item(n int) string { return strconv.Itoa(n) }

// Sum adds up, true being 1.
func Sum[T int64 | bool](values []T) (sum int64) {
	for _, value := range values {
		switch v := any(value).(type) {
		case int64:
			sum += v
		case bool:
			if v {
				sum++
			}
		}
	}
	return sum
}

// Finish ends the program.
func Finish() {
	if !Bloom {
		Lacks("bloom", "redis-server stands in")
	}
	fmt.Println("end")
	if failed {
		os.Exit(1)
	}
	os.Exit(0)
}
