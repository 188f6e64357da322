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
			return nil //nolint:nilerr // as of a stopped Candidate
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

func (c *flawedCandidate) IsLeader() bool { return c.leading.Load() }

func TestMutantsThatLead(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	flawed := func(flaw func(*flawedCandidate)) *Harness {
		return &Harness{Dial: plain, candidate: func(l locker.Locker, cfg leader.Config) candidate {
			c := &flawedCandidate{locker: l, cfg: cfg}
			flaw(c)
			return c
		}}
	}
	sound, alone := &Harness{Dial: plain}, "one candidate leads at a time"
	m.add("a refused candidate that leads", flawed(func(c *flawedCandidate) { c.impatient = true }), sound, alone)
	m.add("a step-down without a release", flawed(func(c *flawedCandidate) { c.keeps = true }), sound, alone)
	m.add("terms that each candidate counts", flawed(func(c *flawedCandidate) { c.counts = true }), sound, alone)
	m.add("a lead that outlasts its lease", flawed(func(c *flawedCandidate) { c.deaf = true }), sound, "a lost lease ends the lead")
	m.convict()
}
