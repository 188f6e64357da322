package redisson_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/redisson"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const (
	name    = "job"
	counter = "redisson_lock_token:{job}"
	channel = "redisson_lock__channel:{job}"
	java    = "2f1c0e5a-8d8e-4f43-9a41-7f8d6b7f0c11:77" // a thread's field
)

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*redisson.Locker
	drv *faultdriver.Driver
	m   *memredis.Server
}

func run(t *testing.T, f func(t *testing.T, b bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, drv := locktest.Memory(t)
		f(t, bench{locker.Must(redisson.New(drv, redisson.Config{AttemptTimeout: time.Second})), drv, m})
	})
}

func (b bench) acquire(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name = name
	return locker.Must(b.Acquire(t.Context(), req))
}

// javaHolds stores the hold of a thread in Java.
func (b bench) javaHolds(count string, ttl time.Duration) {
	b.m.Del(name)
	b.m.HSet(name, java, count)
	b.m.SetTTL(name, ttl)
}

// stored fails the test unless the lock's key has these fields and values.
func (b bench) stored(t *testing.T, want map[string]string) {
	t.Helper()
	fields, _ := b.m.HKeys(name)
	check.Equal(t, "number of fields", len(fields), len(want))
	for field, value := range want {
		check.Equal(t, "value of "+field, b.m.HGet(name, field), value)
	}
}
