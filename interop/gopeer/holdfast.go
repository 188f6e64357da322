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
	"github.com/holdfast-go/holdfast/locker/driver"
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
// strategies/single, or a strategy of NewStrategy, a slash and the client.
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
	strategy, err := NewStrategy(drv, strategyName, prefix)
	if err != nil {
		return nil, err
	}
	l, err := holdfast.Wrap(strategy, holdfast.Config{})
	return holdfastLibrary{l}, err
}

// Keyspace is the prefix of the channels of keyspace events.
const Keyspace = "__keyspace@0__:"

// NewStrategy makes a strategy by its name: "single", "redisson", or single with Keyspace, "keyspace",
// and also with a Signal, "spring" and "python".
func NewStrategy(drv driver.Driver, name, prefix string) (locker.Locker, error) {
	cfg := single.Config{Prefix: prefix}
	switch name {
	case "redisson":
		return redisson.New(drv, redisson.Config{Prefix: prefix})
	case "spring":
		cfg.Keyspace, cfg.Signal = Keyspace, single.SpringPubSub
	case "python":
		cfg.Keyspace, cfg.Signal = Keyspace, single.PythonRedisLock
	case "keyspace":
		cfg.Keyspace = Keyspace
	case "single":
	default:
		return nil, fmt.Errorf("unknown strategy %q", name)
	}
	return single.New(drv, cfg)
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
