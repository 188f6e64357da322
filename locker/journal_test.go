package locker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// journal is a Locker in memory that writes down what is acquired and released, in order.
type journal struct {
	*lockertest.Locker
	before func(ctx context.Context, req locker.Request) error // of each acquire; nil: nothing

	mu   sync.Mutex
	reqs []locker.Request
	log  []string
}

func newJournal() *journal { return &journal{Locker: lockertest.New()} }

func (j *journal) note(event, name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.log = append(j.log, event+name)
}

func (j *journal) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	j.mu.Lock()
	j.reqs = append(j.reqs, req)
	j.mu.Unlock()
	if j.before != nil {
		if err := j.before(ctx, req); err != nil {
			return nil, err
		}
	}
	lock, err := j.Locker.Acquire(locktrace.With(context.WithoutCancel(ctx), &locktrace.Trace{
		Released: func(_ context.Context, info locktrace.ReleasedInfo) { j.note("-", info.Name) },
	}), req)
	if err == nil {
		j.note("+", req.Name)
	}
	return lock, err
}

// wantLog demands that exactly this was acquired (+) and released (-). What was acquired at the same
// time, or released, is in the order of the names.
func (j *journal) wantLog(t *testing.T, want string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, start := 1, 0; i <= len(j.log); i++ {
		if i == len(j.log) || j.log[i][0] != j.log[start][0] {
			slices.Sort(j.log[start:i])
			start = i
		}
	}
	if got := strings.Join(j.log, " "); got != want {
		t.Errorf("acquired and released %q, want %q", got, want)
	}
}

func named(names ...string) (reqs []locker.Request) {
	for _, name := range names {
		reqs = append(reqs, locker.Request{Name: name})
	}
	return reqs
}

func wantName(t *testing.T, err error, op, name string) {
	t.Helper()
	if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Op != op || oe.Name != name {
		t.Errorf("error %v, want an OpError of %q of %q", err, op, name)
	}
}
