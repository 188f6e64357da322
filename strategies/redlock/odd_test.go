package redlock_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// odd is a Locker that returns what make makes of a lock.
type odd struct {
	*lockertest.Locker
	change func(*locker.Lock) *locker.Lock
}

func (o odd) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := o.Locker.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	return o.change(lock), nil
}

// A lock that is over, or of another mode, or the zero Lock, does not count for the quorum.
func TestOddLocksAreNoParts(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*locker.Lock) *locker.Lock{
		"lost":     func(l *locker.Lock) *locker.Lock { locker.MarkLost(l, errDown); return l },
		"released": func(l *locker.Lock) *locker.Lock { _ = l.Release(bg); return l },
		"zero":     func(*locker.Lock) *locker.Lock { return &locker.Lock{} },
		"shared":   func(l *locker.Lock) *locker.Lock { _ = l.Downgrade(bg); return l },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lockers []locker.Locker
				for range 3 {
					lockers = append(lockers, odd{lockertest.New(), change})
				}
				lock, err := locker.Must(redlock.New(lockers, redlock.Config{})).Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
				if err == nil {
					t.Errorf("an exclusive lock, until %v, of three nodes' locks that are %s", lock.Deadline(), what)
				}
			})
		})
	}
}

// The same node twice is one: every attempt would be refused by itself.
func TestNodeGivenTwice(t *testing.T) {
	t.Parallel()
	n := lockertest.New()
	l, err := redlock.New([]locker.Locker{n, n, n}, redlock.Config{})
	if err != nil {
		match(t, err, locker.ErrInvalid)
		return
	}
	_, err = l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})
	t.Errorf("New takes a node three times; then an acquire of what is free says: %v", err)
}

// raises is a Lease that can do all.
type raises struct{}

func (raises) Do(_ context.Context, op locker.Op) (locker.Term, error) {
	return locker.Term{Fence: op.Fence, Deadline: time.Now().Add(ttl)}, nil
}

// What panics in a node's own code is a failure of that node: nobody else could recover, in goroutines of redlock's own.
func TestPanicsOfNodes(t *testing.T) {
	t.Parallel()
	if what := os.Getenv("REDLOCK_PANIC"); what != "" {
		var fence int64
		lease := locker.Lease(raises{})
		switch what {
		case "negative fence":
			fence = -1
		case "no lease":
			lease = nil
		}
		node := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if what == "node panics" {
				panic("a node's own")
			}
			return locker.NewLock(ctx, locker.Grant{
				Name: req.Name, Token: "t", TTL: req.TTL, Deadline: time.Now().Add(req.TTL), Fence: fence,
			}, lease), nil
		})
		l := locker.Must(redlock.New([]locker.Locker{node, node, node}, redlock.Config{}))
		defer func() { _ = recover() }() //nolint:tparallel // a caller's
		lock, err := l.Acquire(context.Background(), locker.Request{Name: name, TTL: ttl, Fenced: fence != 0})
		if err == nil && what == "no lease" {
			_ = lock.Release(context.Background())
		}
		sleep(50 * ms) // in this process, which nobody waits for, what panics behind comes to light
		return
	}
	for _, what := range []string{"negative fence", "no lease", "node panics"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestPanicsOfNodes$", "-test.count=1")
			cmd.Env = append(os.Environ(), "REDLOCK_PANIC="+what)
			out, err := cmd.CombinedOutput()
			if _, what, panics := strings.Cut(string(out), "panic: "); panics {
				what, _, _ = strings.Cut(what, "\n")
				t.Errorf("the process dies of %q (%v)", what, err)
			}
		})
	}
}
