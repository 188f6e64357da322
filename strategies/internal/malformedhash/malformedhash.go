// Package malformedhash tests the operations of a strategy on a hash with a field written by none
// of its scripts. Only tests import it.
package malformedhash

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
)

// Server is a server for a test to change directly, such as miniredis.
type Server interface {
	HKeys(key string) ([]string, error)
	HGet(key, field string) string
	HSet(key string, fieldsAndValues ...string)
	Del(key string) bool
	Exists(key string) bool
	SetTTL(key string, ttl time.Duration)
	TTL(key string) time.Duration
	Dump() string
}

// Hash is a lock's key as the strategy's scripts wrote it.
type Hash struct {
	server Server
	key    string
	sound  map[string]string
}

// Of reads the hash at a key.
func Of(t *testing.T, server Server, key string) *Hash {
	t.Helper()
	h := &Hash{server, key, map[string]string{}}
	fields, err := server.HKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		h.sound[f] = server.HGet(key, f)
	}
	return h
}

// Fields returns the names of the fields, sorted.
func (h *Hash) Fields() []string { return slices.Sorted(maps.Keys(h.sound)) }

// Restore stores the hash as it was read.
func (h *Hash) Restore() {
	h.server.Del(h.key)
	for f, v := range h.sound {
		h.server.HSet(h.key, f, v)
	}
	h.server.SetTTL(h.key, 3*time.Hour)
}

// Locker has the methods for Ops.
type Locker interface {
	locker.Locker
	locker.Inspector
}

// Ops are operations by name. Those named inspect look at each hold; those in Acquires look at the
// last one.
type Ops struct {
	Acquires, Others map[string]func() error
}

// OpsOf returns the acquires of reqs, and the operations on lock and its name. Those on lock are sent
// even after it has ended.
func OpsOf(t *testing.T, l Locker, lock *locker.Lock, reqs ...locker.Request) Ops {
	t.Helper()
	ops := Ops{Acquires: map[string]func() error{}, Others: map[string]func() error{
		"resume":  func() error { _, err := locker.Resume(t.Context(), l, lock.Handle()); return err },
		"inspect": func() error { _, err := l.Inspect(t.Context(), lock.Name()); return err },
	}}
	for _, req := range reqs {
		ops.Acquires[fmt.Sprintf("%v by %s", req.Mode, req.Owner)] = func() error { _, err := l.Acquire(t.Context(), req); return err }
	}
	for name, op := range map[string]lease.Op{
		"renew": {Kind: lease.OpRenew, TTL: 3 * time.Hour}, "release": {Kind: lease.OpRelease}, "raise": {Kind: lease.OpRaiseFence, Fence: 1},
		"up": {Kind: lease.OpConvert, Mode: locker.Exclusive}, "down": {Kind: lease.OpConvert, Mode: locker.Shared},
	} {
		ops.Others[name] = func() error { _, err := locktest.LeaseOf(lock).Do(t.Context(), op); return err }
	}
	return ops
}

// Try runs each operation on the hash with one field changed. It must end at once with a definite
// outcome. An error of a foreign key leaves the key alone, and is due if the operation reads a
// malformed hold. The key keeps an expiry.
func (h *Hash) Try(t *testing.T, ops Ops, field, value string) {
	t.Helper()
	for name, op := range ops.Acquires {
		h.try(t, name, op, field, value, field == h.sound["last"])
	}
	for name, op := range ops.Others {
		h.try(t, name, op, field, value, name == "inspect")
	}
}

func (h *Hash) try(t *testing.T, name string, op func() error, field, value string, reads bool) {
	t.Helper()
	h.Restore()
	h.server.HSet(h.key, field, value)
	before, start := h.server.Dump(), time.Now()
	err := op()
	if took := time.Since(start); errors.Is(err, locker.ErrUnknownOutcome) || took > 0 { // in fake time
		t.Errorf("%s where %s is %.40q: %v after %v", name, field, value, err, took)
	}
	foreign := err != nil && strings.Contains(err.Error(), "not of our form")
	if foreign && h.server.Dump() != before {
		t.Errorf("%s where %s is %.40q: %v, but the key was changed:\n%s", name, field, value, err, h.server.Dump())
	}
	if len(field) == lease.TokenLen && reads && !foreign {
		t.Errorf("%s where the hold %s is %.40q: %v, want an error that says what is there", name, field, value, err)
	}
	if h.server.Exists(h.key) && h.server.TTL(h.key) == 0 {
		t.Errorf("%s where %s is %.40q left the key without an expiry", name, field, value)
	}
}
