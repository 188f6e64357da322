package rwhash_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Expired readers, however many, do not keep a reader from upgrading, and are removed soon.
func TestUpgradeAmongManyDeadReaders(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		for range 300 {
			b.read(t, locker.Request{TTL: time.Second})
		}
		lock := b.read(t, locker.Request{})
		sleep(time.Second)
		match(t, lock.Upgrade(t.Context()))
		b.holds(t, 1, locker.Exclusive)
		b.refused(t, noWait(reader), "reader", 29*time.Second)
		match(t, lock.Downgrade(t.Context()))
		for range 5 { // each removes some
			match(t, lock.Upgrade(t.Context()))
			match(t, lock.Downgrade(t.Context()))
		}
		if fields, err := b.m.HKeys(name); err != nil || len(fields) > 3 {
			t.Errorf("%d fields are left, %v", len(fields), err)
		}
		release(t, lock)
		b.free(t)
	})
}
