package conformance

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
)

// flawedCandidate campaigns with a flaw.
type flawedCandidate struct {
	locker locker.Locker
	cfg    leader.Config

	impatient bool // it leads without the lock if another one holds it
	keeps     bool // it steps down without a release
	deaf      bool // the ctx of Lead does not end with the lease
	counts    bool // its terms count its own leads

	terms   int64
	leading atomic.Bool
}

func (c *flawedCandidate) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		lock, err := c.locker.Acquire(ctx, locker.Request{Name: c.cfg.Name, TTL: c.cfg.TTL, Fenced: true, NoWait: c.impatient})
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil //nolint:nilerr // as of a Candidate that is stopped
		case c.impatient && errors.Is(err, locker.ErrNotAcquired):
			_ = c.lead(ctx, time.Now().UnixMicro())
			continue
		default:
			return err
		}
		lease, cancel := lock.Context(ctx)
		if c.deaf {
			lease = ctx
		}
		term := lock.Fence()
		if c.terms++; c.counts {
			term = c.terms
		}
		_ = c.lead(lease, term)
		cancel()
		if !c.keeps {
			_ = lock.Release(ctx)
		}
	}
	return nil
}

func (c *flawedCandidate) lead(ctx context.Context, term int64) error {
	c.leading.Store(true)
	defer c.leading.Store(false)
	return c.cfg.Lead(ctx, term)
}

func (c *flawedCandidate) IsLeader(context.Context) error {
	if !c.leading.Load() {
		return leader.ErrNotLeader
	}
	return nil
}

func TestMutantsThatLead(t *testing.T) {
	t.Parallel()
	sound := func(l locker.Locker, cfg leader.Config) candidate { return locker.Must(leader.New(l, cfg)) }
	var suspects []suspect
	for _, m := range []struct {
		name   string
		flawed func(*flawedCandidate)
		caught string
	}{
		{"a refused candidate that leads", func(c *flawedCandidate) { c.impatient = true }, "one candidate leads at a time"},
		{"a step-down without a release", func(c *flawedCandidate) { c.keeps = true }, "one candidate leads at a time"},
		{"terms that each candidate counts", func(c *flawedCandidate) { c.counts = true }, "one candidate leads at a time"},
		{"a lead that outlasts its lease", func(c *flawedCandidate) { c.deaf = true }, "a lost lease ends the lead"},
	} {
		flawed := func(l locker.Locker, cfg leader.Config) candidate {
			c := &flawedCandidate{locker: l, cfg: cfg}
			m.flawed(c)
			return c
		}
		suspects = append(suspects, suspect{
			m.name, &Harness{Dial: plain, candidate: flawed}, &Harness{Dial: plain, candidate: sound}, []string{m.caught},
		})
	}
	convict(t, suspects)
}
