package conformance

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var leaderCases = []testCase{
	{
		name: "one candidate leads at a time", contract: 1, on: suite.AllKinds,
		why: "two leaders do the same work, and if a leader that steps down keeps its lock, nobody does it for a TTL",
		run: oneLeaderAtATime,
	},
	{
		name: "a lost lease ends the lead", contract: 10, on: suite.OnlyMemory,
		why: "a leader that is cut off would work on beside the next one",
		run: lostLeaseEndsLead,
	},
}

// candidate campaigns as leader.Candidate does.
type candidate interface {
	Run(ctx context.Context) error
	IsLeader() bool
}

// candidate makes a leader.Candidate, unless the harness has others.
func (t *caseT) candidate(l locker.Locker, cfg leader.Config) candidate {
	t.Helper()
	if t.h.candidate != nil {
		return t.h.candidate(l, cfg)
	}
	c, err := leader.New(l, cfg)
	t.OK(err, "leader.New")
	return c
}

// election is several candidates for one name. A Lead of theirs returns when its ctx ends.
type election struct {
	t          *caseT
	name       string
	candidates []candidate
	seen       []chan struct{}      // gets a value when the candidate waits, or begins to lead
	stop       []context.CancelFunc // ends the ctx of each one's Run
	results    []<-chan error       // of each one's Run
	leads      chan lead
	last       int64 // the term of the last lead
}

// lead is a call of Lead.
type lead struct {
	ctx    context.Context
	by     int // the candidate's index
	term   int64
	beside int // how many other candidates led when it began
}

// campaign makes a candidate over each of the drivers. It returns when each of them leads or waits.
func (t *caseT) campaign(ttl time.Duration, drivers ...driver.Driver) *election {
	t.Helper()
	e := &election{t: t, name: t.Key(), leads: make(chan lead, 64)}
	for i, drv := range drivers {
		e.seen = append(e.seen, make(chan struct{}, 1))
		e.candidates = append(e.candidates, t.candidate(t.waiting(t.locker(drv), retry.Config{}), leader.Config{
			Name: e.name, TTL: ttl,
			Lead: func(ctx context.Context, term int64) error { return e.lead(ctx, i, term) },
		}))
	}
	for i, c := range e.candidates {
		ctx, cancel := context.WithCancel(locktrace.With(t.Ctx, &locktrace.Trace{
			Waiting: func(context.Context, locktrace.WaitingInfo) { e.see(i) },
		}))
		e.stop = append(e.stop, cancel)
		e.results = append(e.results, suite.Background(func() error { return c.Run(ctx) }))
		t.Cleanup(cancel)
		t.Event(e.seen[i], "a candidate leads or waits")
	}
	return e
}

func (e *election) see(i int) {
	select {
	case e.seen[i] <- struct{}{}:
	default:
	}
}

func (e *election) lead(ctx context.Context, by int, term int64) error {
	beside := 0
	for i, c := range e.candidates {
		if i != by && c.IsLeader() {
			beside++
		}
	}
	select {
	case e.leads <- lead{ctx, by, term, beside}:
		e.see(by)
	case <-e.t.Ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

// next waits for the next lead. It demands a higher term than before, and no other leading
// candidate at its begin.
func (e *election) next() lead {
	e.t.Helper()
	timer := time.NewTimer(e.t.Limit)
	defer timer.Stop()
	select {
	case next := <-e.leads:
		if next.beside > 0 {
			e.t.Errorf("%d other candidates lead in term %d", next.beside, next.term)
		}
		if next.term <= e.last {
			e.t.Errorf("term %d follows term %d", next.term, e.last)
		}
		e.last = next.term
		return next
	case <-timer.C:
		e.t.Fatalf("no candidate leads after %v", e.t.Limit)
		return lead{}
	}
}

func oneLeaderAtATime(t *caseT) {
	e := t.campaign(long, t.Driver(), t.Driver(), t.Driver())
	for range e.candidates {
		now := e.next()
		e.stop[now.by]()
		t.OK(t.Result(e.results[now.by], "Run of the leader, which steps down"), "Run of the leader, which steps down")
	}
	if n := len(e.leads); n > 0 {
		t.Errorf("%d candidates led beside the others", n)
	}
	t.gone(e.name, "after the last leader stepped down")
}

func lostLeaseEndsLead(t *caseT) {
	drivers := []driver.Driver{t.Driver(), t.Driver()}
	e := t.campaign(brief, drivers...)
	first := e.next()
	if t.h.Can.Renews {
		t.OK(drivers[first.by].Close(), "Close of the leader's driver")
	}
	t.Event(first.ctx.Done(), "the ctx of Lead ends with the lease")
	t.Is(context.Cause(first.ctx), locker.ErrLost, "the cause of the end of the ctx of Lead")
	e.next()
}
