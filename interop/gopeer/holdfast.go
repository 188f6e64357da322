package gopeer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// scope is the part of a testing.TB that a client needs to dial. The end of the process cleans up.
type scope struct{ testing.TB }

// Helper implements testing.TB.
func (scope) Helper() {}

// Cleanup implements testing.TB.
func (scope) Cleanup(func()) {}

// newHoldfast opens the usual chain over one of internal/clients. kind is the client, of
// strategies/single, or the strategy, a slash and the client; "keyspace" is single with its Keyspace.
func newHoldfast(kind, addr, prefix string) (library, error) {
	strategyName, client, named := strings.Cut(kind, "/")
	if !named {
		strategyName, client = "single", kind
	}
	i := slices.IndexFunc(clients.WithFork, func(c clients.Client) bool { return c.Name == client })
	if i < 0 {
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	target := drivertest.Target{Kind: drivertest.Single, Addrs: []string{addr}}
	drv, err := clients.WithFork[i].Dial(scope{}, target)
	if err != nil {
		return nil, err
	}
	var strategy locker.Locker
	switch strategyName {
	case "single":
		strategy, err = single.New(drv, single.Config{Prefix: prefix})
	case "keyspace":
		strategy, err = single.New(drv, single.Config{Prefix: prefix, Keyspace: "__keyspace@0__:"})
	case "redisson":
		strategy, err = redisson.New(drv, redisson.Config{Prefix: prefix})
	default:
		err = fmt.Errorf("unknown kind %q", kind)
	}
	if err != nil {
		return nil, err
	}
	l, err := holdfast.Wrap(strategy, holdfast.Config{})
	return holdfastLibrary{l}, err
}

type holdfastLibrary struct{ l locker.Locker }

func (h holdfastLibrary) acquire(name string, ttl, wait time.Duration, _ string) (lock, error) {
	held, err := h.l.Acquire(context.Background(), locker.Request{Name: name, TTL: ttl, NoWait: wait == 0, MaxWait: wait})
	if errors.Is(err, locker.ErrNotAcquired) {
		err = errNo
	}
	return holdfastLock{held}, err
}

type holdfastLock struct{ l *locker.Lock }

func (l holdfastLock) renew(ttl time.Duration) error {
	return lost(l.l.Renew(context.Background(), ttl), locker.ErrLost)
}

func (l holdfastLock) release() error { return lost(l.l.Release(context.Background()), locker.ErrLost) }

// lost returns errNo for an error that matches one of these.
func lost(err error, these ...error) error {
	for _, e := range these {
		if errors.Is(err, e) {
			return errNo
		}
	}
	return err
}
