package gocronlock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
)

// Elector is a gocron.Elector: of the replicas campaigning for a name, one leads, and its scheduler
// runs all jobs. Give it to gocron.WithDistributedElector. It takes precedence over the Lockers of
// the scheduler and its jobs. It is safe for concurrent use.
type Elector struct {
	candidate *leader.Candidate
	lead      atomic.Pointer[context.Context] // Lead's latest; nil: it has not led yet

	closed context.Context
	close  context.CancelFunc // ends closed
	mu     sync.Mutex         // makes Close wait for each Run begun before it
	runs   sync.WaitGroup
}

// NewElector returns an Elector over a waiting and renewing Locker, as holdfast.New's. It
// campaigns once [Elector.Run] is called. cfg.Name is required; it is the name of the lock.
// cfg.Lead may be nil; otherwise it is called for each term (package leader), and ends the term
// when it returns. The errors are those of [leader.New].
func NewElector(l locker.Locker, cfg leader.Config) (*Elector, error) {
	e := &Elector{}
	lead := cfg.Lead
	cfg.Lead = func(ctx context.Context, number int64) error {
		e.lead.Store(&ctx)
		if lead != nil {
			return lead(ctx, number)
		}
		<-ctx.Done()
		return ctx.Err()
	}
	var err error
	if e.candidate, err = leader.New(l, cfg); err != nil {
		return nil, err
	}
	e.closed, e.close = context.WithCancel(context.Background())
	return e, nil
}

// Run campaigns and leads, again and again, until ctx ends or Close is called, and then steps down.
// Without it the Elector never leads. It returns the result of [leader.Candidate.Run]: after an
// error this replica does not campaign any more. After Close, Run returns nil at once.
func (e *Elector) Run(ctx context.Context) error {
	if ctx == nil {
		return &locker.InvalidError{
			What: "Elector.Run ctx", Got: "nil",
			Allowed: "a context; context.Background() where there is none",
		}
	}
	e.mu.Lock()
	e.runs.Add(1)
	e.mu.Unlock()
	defer e.runs.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.closed, cancel)()
	if e.closed.Err() != nil {
		return nil
	}
	return e.candidate.Run(ctx)
}

// Close steps down, to let another replica lead at once, and returns when Run has returned. The
// Shutdown of the scheduler waits for running jobs. Call Close after it: otherwise the next leader
// runs jobs while jobs of this one still run.
func (e *Elector) Close() {
	e.close()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs.Wait()
}

// errNotLeader is for gocron, and for runs without a term.
var errNotLeader = fmt.Errorf("this replica does not lead: %w", locker.ErrNotHeld)

// IsLeader returns nil if this replica leads now, and an error that matches locker.ErrNotHeld if it
// does not. It sends nothing, and never returns nil after the lease has ended. gocron calls it at
// each tick, and skips the run if it returns an error. ctx is not used.
func (e *Elector) IsLeader(context.Context) error {
	lead := e.lead.Load()
	if lead == nil || (*lead).Err() != nil || !e.candidate.IsLeader() { // or Lead is about to be called
		return errNotLeader
	}
	return nil
}

// Term returns the number of this replica's present term, for use as a fencing token, or 0 and
// false if it does not lead.
func (e *Elector) Term() (number int64, leads bool) { return e.candidate.Term() }

// Context returns a copy of parent that also ends when the term ends; then context.Cause is the
// locker.LostError if the lease was lost. If this replica does not lead, the ctx has ended with the
// error of [Elector.IsLeader] as its cause. A job calls it first of all: gocron does not stop jobs
// after the lead is lost.
func (e *Elector) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if err := e.IsLeader(ctx); err != nil {
		cancel(err)
		return ctx, func() {}
	}
	lead := *e.lead.Load()
	stop := context.AfterFunc(lead, func() { cancel(context.Cause(lead)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
