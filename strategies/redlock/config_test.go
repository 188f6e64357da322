package redlock_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

func lockers(n int) []locker.Locker {
	nodes := make([]locker.Locker, n)
	for i := range nodes {
		nodes[i] = lockertest.New()
	}
	return nodes
}

// wantInvalid demands an *InvalidError that names what is wrong.
func wantInvalid(t *testing.T, err error, what string) {
	t.Helper()
	match(t, err, locker.ErrInvalid)
	if bad, ok := errors.AsType[*locker.InvalidError](err); !ok || !strings.Contains(bad.What, what) || bad.Got == "" || bad.Allowed == "" {
		t.Errorf("error %v, want one that says what is wrong with %s", err, what)
	}
}

// wraps is a Locker around another, as middleware is.
type wraps struct{ locker.Locker }

func (w wraps) Unwrap() locker.Locker { return w.Locker }

// counted is a Locker of a semaphore.
type counted struct{ locker.Locker }

func (counted) Permits() int { return 1 }

// A quorum has no permits.
func TestPermitsAreRefused(t *testing.T) {
	t.Parallel()
	l := locker.Must(redlock.New(lockers(3), redlock.Config{}))
	if lock, err := l.Acquire(t.Context(), locker.Request{Name: "a", Permits: 2}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("acquired %v, %v; want ErrUnsupported", lock, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	once := lockertest.New()
	type test struct {
		nodes []locker.Locker
		cfg   redlock.Config
		what  string
	}
	check.Each(t, map[string]test{
		"no nodes":          {nil, redlock.Config{}, "nodes"},
		"a nil node":        {[]locker.Locker{lockertest.New(), nil, lockertest.New()}, redlock.Config{}, "nodes[1]"},
		"a node twice":      {[]locker.Locker{once, lockertest.New(), once}, redlock.Config{}, "nodes[2]"},
		"a quorum":          {append(lockers(2), wraps{locker.Must(redlock.New(lockers(3), redlock.Config{}))}), redlock.Config{}, "nodes[2]"},
		"a semaphore":       {append(lockers(2), counted{lockertest.New()}), redlock.Config{}, "nodes[2]"},
		"half a quorum":     {lockers(4), redlock.Config{Quorum: 2}, "Quorum"},
		"a minority":        {lockers(5), redlock.Config{Quorum: 2}, "Quorum"},
		"more than all":     {lockers(3), redlock.Config{Quorum: 4}, "Quorum"},
		"a negative quorum": {lockers(3), redlock.Config{Quorum: -1}, "Quorum"},
		//realtime:ok it is refused
		"a short TTL":         {lockers(3), redlock.Config{TTL: time.Microsecond}, "TTL"},
		"a long TTL":          {lockers(3), redlock.Config{TTL: locker.MaxTTL + 1}, "TTL"},
		"a negative TTL":      {lockers(3), redlock.Config{TTL: -time.Second}, "TTL"},
		"a negative validity": {lockers(3), redlock.Config{MinValidity: -1}, "MinValidity"},
		//realtime:ok it is refused
		"a validity of all the TTL":     {lockers(3), redlock.Config{TTL: time.Second, MinValidity: time.Second}, "MinValidity"},
		"a validity of the default TTL": {lockers(3), redlock.Config{MinValidity: locker.DefaultTTL}, "MinValidity"},
		"a short timeout":               {lockers(3), redlock.Config{AttemptTimeout: time.Microsecond}, "AttemptTimeout"},
		"a negative timeout":            {lockers(3), redlock.Config{AttemptTimeout: -1}, "AttemptTimeout"},
		"a negative jitter":             {lockers(3), redlock.Config{WakeJitter: -1}, "WakeJitter"},
		"names for some":                {lockers(3), redlock.Config{Names: []string{"a", "b"}}, "Names"},
		"names for more":                {lockers(1), redlock.Config{Names: []string{"a", "b"}}, "Names"},
	}, func(t *testing.T, tc test) {
		l, err := redlock.New(tc.nodes, tc.cfg)
		check.Equal(t, "Locker", l, nil)
		wantInvalid(t, err, tc.what)
	})
}

func TestNewAllows(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		for quorum := (n + 1) / 2; quorum <= n+1; quorum++ {
			_, err := redlock.New(lockers(n), redlock.Config{Quorum: quorum})
			if want := n > 0 && (quorum == 0 || 2*quorum > n && quorum <= n); want != (err == nil) {
				t.Errorf("%d of %d: %v, want it allowed: %v", quorum, n, err, want)
			}
		}
	}
}

// What cannot be asked for reaches no node.
func TestAcquireRefuses(t *testing.T) {
	inMemory(t, 3, redlock.Config{MinValidity: time.Second}, func(t *testing.T, c *cluster) {
		foreign := func(token string) locker.Handle {
			return locker.NewHandle(lease.Grant{Name: name, Token: token, TTL: ttl})
		}
		wire := func(text string) locker.Handle {
			return foreign("redlock1." + base64.RawURLEncoding.EncodeToString([]byte(text)))
		}
		for what, req := range map[string]locker.Request{
			"Request.Name": {},
			"Request.Mode": {Name: name, Mode: 7},
			//realtime:ok it is refused
			"Request.TTL":    {Name: name, TTL: time.Second}, // MinValidity would use it up
			"Request.Resume": {Name: name, Resume: foreign(lease.NewToken())},
		} {
			_, err := c.Acquire(t.Context(), req)
			wantInvalid(t, err, what)
			if op, ok := errors.AsType[*locker.OpError](err); !ok || op.Name != req.Name {
				t.Errorf("%v is no *OpError", err)
			}
		}
		for _, h := range []locker.Handle{
			foreign("redlock1."), foreign("redlock1.%"), foreign("redlock2.bm8"), wire(""), wire("[]"), wire(`{"Nodes":7}`),
			wire(`{}`), wire(`{"Nodes":["YQ==","YQ=="]}`), wire(`{"Nodes":["YQ==","YQ==","YQ==","YQ=="]}`),
		} {
			wantInvalid(t, check.ErrOf(locker.Resume(t.Context(), c, h)), "Request.Resume")
		}
		_, err := c.Acquire(nil, locker.Request{Name: name}) //nolint:staticcheck // that is the test
		wantInvalid(t, err, "ctx")
		for _, n := range c.nodes {
			check.Equal(t, "acquires at a node", n.asked, 0)
		}
	})
}

// What the nodes refuse for good is what the error matches, and none tries again.
func TestLastingErrorsDecide(t *testing.T) {
	type test struct {
		errs      []error
		want      error // one that err matches
		transient bool
	}
	eachInMemory(t, 3, redlock.Config{Names: []string{"a", "b", "c"}}, map[string]test{
		"all are closed":      {[]error{locker.ErrClosed, locker.ErrClosed, locker.ErrClosed}, locker.ErrClosed, false},
		"a quorum is closed":  {[]error{locker.ErrClosed, locker.ErrClosed, errDown}, locker.ErrClosed, false},
		"one is closed":       {[]error{locker.ErrClosed, errDown, errDown}, errDown, true},
		"none can":            {[]error{errors.ErrUnsupported, errors.ErrUnsupported, errors.ErrUnsupported}, errors.ErrUnsupported, false},
		"all are unreachable": {[]error{errDown, errDown, errDown}, errDown, true},
	}, func(t *testing.T, c *cluster, tc test) {
		for i, n := range c.nodes {
			n.down, n.delay = tc.errs[i], time.Duration(i)*ms/10
		}
		_, err := c.Acquire(t.Context(), locker.Request{Name: "x"})
		match(t, err, tc.want)
		check.Equal(t, fmt.Sprintf("Transient(%v)", err), driver.Transient(err), tc.transient)
		first, ok := errors.AsType[*redlock.NodeError](err)
		if !ok || first.Name != string(rune('a'+first.Node)) || !errors.Is(first, tc.want) {
			t.Errorf("the first node error is %+v", first)
		}
		if text := err.Error(); !strings.Contains(text, "0 of 3 nodes did, 2 needed; node 0 (a): ") {
			t.Errorf("the error says %q", text)
		}
	})
}

// Without names, a node is named by its server's address, once an attempt or a lock has told it.
func TestNodesAreNamedByAddress(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		nodes := make([]locker.Locker, 3)
		for i, n := range c.nodes {
			nodes[i] = locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				lock, err := n.Acquire(locktrace.Without(ctx), req)
				if trace := locktrace.From(ctx); err != nil && trace != nil && i == 0 {
					trace.Attempt(ctx, locktrace.AttemptInfo{Source: locktrace.Source{Address: "told by an attempt"}, Err: err})
				}
				return lock, err
			})
		}
		l := locker.Must(redlock.New(nodes, redlock.Config{}))
		c.nodes[0].down = errDown
		match(t, locker.Must(l.Acquire(t.Context(), locker.Request{Name: name})).Release(t.Context()))
		setAll(c.nodes[1:], func(n *node) { n.down, n.delay = errDown, time.Duration(n.index)*ms })
		_, err := l.Acquire(t.Context(), locker.Request{Name: name})
		missed, ok := errors.AsType[*redlock.QuorumError](err)
		if !ok {
			t.Fatalf("error %v", err)
		}
		for i, want := range []string{"told by an attempt", "mem:1", "mem:2"} {
			if n := missed.Nodes[i]; n.Name != want || n.Node != i {
				t.Errorf("node %d is named %q, want %d and %q", n.Node, n.Name, i, want)
			}
		}
	})
}
