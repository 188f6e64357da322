// Package contender lists the contenders of the benchmark: the bare Redis clients, other lock
// libraries, and Holdfast, each behind the same two calls.
package contender

import (
	"context"
	"time"
)

// Contender is one library over one client, with one set of options.
type Contender struct {
	Name   string // as in the reports, such as "redsync/goredis"
	Client string // the Redis client: Goredis, Rueidis or Redigo
	Roles  Role   // the works it takes part in
	Open   func(Options) (*Locks, error)
}

// Is reports whether c takes part in the works of role.
func (c Contender) Is(role Role) bool { return c.Roles&role != 0 }

// Role is a set of works.
type Role uint

// The roles.
const (
	Free   Role = 1 << iota // acquires and releases uncontended names
	Waits                   // waits for a held name
	Keeps                   // renews its locks
	Quorum                  // takes several servers
)

// The clients.
const (
	Goredis = "goredis"
	Rueidis = "rueidis"
	Redigo  = "redigo"
)

// Options are the parameters of a contender.
type Options struct {
	Addrs []string      // of the servers: one, or the nodes of a quorum
	TTL   time.Duration // of every lock
}

// Locks is an open contender.
type Locks struct {
	// Acquire returns when the lock is held. A bare client makes one attempt. Each library gets its
	// fastest context: one without an end, or, if it derives contexts from it anyway, one ended by
	// Close.
	Acquire func(name string) (Lock, error)
	// Close closes the clients. Waiting acquires return.
	Close func()
}

// Lock is a held lock.
type Lock interface {
	// Release reports an error if the lock was not held any more.
	Release(ctx context.Context) error
}

// All are the contenders. Those over one client are neighbours, to be measured close together in
// time; the bare client is their baseline.
var All = []Contender{
	{"bare/goredis", Goredis, Free, bareGoredis},
	{"redsync/goredis", Goredis, Free | Waits | Quorum, redsyncOver(goredisPools)},
	{"redsync-1ms/goredis", Goredis, Waits, redsyncOver(goredisPools, pollEachMillisecond)},
	{"redsync-failfast/goredis", Goredis, Quorum, redsyncOver(goredisPools, failFast)},
	{"redislock/goredis", Goredis, Free | Waits, redislockEach(100 * time.Millisecond)},
	{"redislock-1ms/goredis", Goredis, Waits, redislockEach(time.Millisecond)},
	{"holdfast/goredis", Goredis, Free | Waits | Keeps | Quorum, holdfastOver(goredisDrivers)},
	{"holdfast-handover/goredis", Goredis, Waits, holdfastOver(goredisDrivers, handOver)},
	{"holdfast-fair/goredis", Goredis, Waits, holdfastOver(goredisDrivers, fair)},

	{"bare/rueidis", Rueidis, Free, bareRueidis},
	{"redsync/rueidis", Rueidis, Free | Waits | Quorum, redsyncOver(rueidisPools)},
	{"rueidislock/rueidis", Rueidis, Free | Waits | Keeps, rueidislockOn},
	{"holdfast/rueidis", Rueidis, Free | Waits | Keeps | Quorum, holdfastOver(rueidisDrivers)},
	{"holdfast-handover/rueidis", Rueidis, Waits, holdfastOver(rueidisDrivers, handOver)},

	{"bare/redigo", Redigo, Free, bareRedigo},
	{"redsync/redigo", Redigo, Free | Waits | Quorum, redsyncOver(redigoPools)},
	{"holdfast/redigo", Redigo, Free | Waits | Keeps | Quorum, holdfastOver(redigoDrivers)},
	{"holdfast-handover/redigo", Redigo, Waits, holdfastOver(redigoDrivers, handOver)},
}

// With returns the contenders with a role.
func With(role Role) (some []Contender) {
	for _, c := range All {
		if c.Is(role) {
			some = append(some, c)
		}
	}
	return some
}

// Named returns the contender of that name.
func Named(name string) (Contender, bool) {
	for _, c := range All {
		if c.Name == name {
			return c, true
		}
	}
	return Contender{}, false
}
