//realtime:ok each test runs in a bubble, by run of tools_test.go

package rwhash_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/keylock"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// Holds that are never released do not accumulate while readers enter.
func TestDeadHoldsAreRemoved(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer := b.read(t, locker.Request{TTL: 24 * time.Hour})
		for range 200 {
			b.read(t, locker.Request{TTL: 10 * time.Millisecond})
			sleep(10 * time.Millisecond)
		}
		if keys, _ := b.m.HKeys(name); len(keys) > 100 {
			t.Errorf("%d fields are stored for one live hold", len(keys))
		}
		release(t, outer)
		b.free(t)
	})
}

func TestBadConfig(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		locktest.BadConfig(t, "rwhash", func(cfg keylock.Config) error {
			_, err := rwhash.New(b.drv, rwhash.Config{Prefix: cfg.Prefix, TTL: cfg.TTL, AttemptTimeout: cfg.AttemptTimeout})
			return err
		})
		match(t, check.ErrOf(rwhash.New(nil, rwhash.Config{})), locker.ErrInvalid)
		for _, turn := range []time.Duration{-1, time.Millisecond, time.Hour + 1} {
			_, err := rwhash.New(b.drv, rwhash.Config{WriterTurn: turn})
			if invalid, ok := errors.AsType[*locker.InvalidError](err); !ok || invalid.What != "rwhash.Config.WriterTurn" {
				t.Errorf("WriterTurn %v: %v", turn, err)
			}
		}
	})
}

// The key does not outlive its holds by much after a long hold has ended.
func TestKeyEndsWithItsHolds(t *testing.T) {
	eachRun(t, map[string]int{"few": 20, "many": 100}, func(t *testing.T, b bench, n int) {
		long := b.read(t, locker.Request{TTL: 24 * time.Hour})
		for range n {
			b.read(t, locker.Request{TTL: time.Second})
		}
		release(t, long)
		for range n {
			b.read(t, locker.Request{TTL: time.Second})
		}
		sleep(time.Second)
		b.free(t)
	})
}
