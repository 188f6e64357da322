package leader

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// ErrLeadRunning means that Lead has not returned within Config.StopTimeout after its ctx ended.
// Another process may lead meanwhile.
var ErrLeadRunning = errors.New("leader: Lead still runs after its ctx ended")

// Candidate campaigns for a name, and leads while it holds its lock. It is safe for concurrent use.
type Candidate struct {
	locker  locker.Locker
	cfg     Config
	running atomic.Bool          // Run is running
	current atomic.Pointer[term] // the term whose Lead has not returned; nil: none
}

// New returns a Candidate that campaigns over l once Run is called. It sends nothing. The error
// matches locker.ErrInvalid if l is nil or a semaphore of more than one permit, if cfg has no Name
// or no Lead, or if a field is out of its range.
func New(l locker.Locker, cfg Config) (*Candidate, error) {
	if l == nil {
		return nil, argument.Invalid("leader.New locker", "nil", "a Locker")
	}
	if permits := lease.TraitsOf(l).Permits; permits > 1 {
		return nil, argument.Invalid("leader.New locker",
			fmt.Sprintf("a semaphore of %d permits", permits), "a lock that one holds at a time")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Candidate{locker: l, cfg: cfg}, nil
}

// Run makes a Candidate with New and calls its Run. After an error that matches ErrLeadRunning, do
// not call Run again while that Lead runs: the new Candidate would not wait for it.
func Run(ctx context.Context, l locker.Locker, cfg Config) error {
	c, err := New(l, cfg)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// Run campaigns and leads, again and again, until ctx ends or Lead returns nil while the Candidate
// leads; Config.Lead lists what else Lead may return. Run steps down before it returns: it waits
// for Lead, for Config.StopTimeout at most, and releases the lock. If the server does not answer,
// the release takes as long as the strategy's ReleaseTimeout, such as that of single.Config. Run
// can be called again after it has returned.
//
// Run returns nil if it stepped down without an error, or if ctx ended before it led; if ctx had
// ended before the call, nothing is sent. The errors:
//   - ErrLeadRunning: Lead has not returned in time, or the Lead of an earlier Run still runs.
//   - Lead's error, if it is [Permanent] or, after the end of ctx, anything but the error of its
//     ctx.
//   - a [locker.OpError] of an acquire with an error that another attempt would only repeat, such
//     as locker.ErrInvalid, locker.ErrClosed, errors.ErrUnsupported (the strategy has no fencing
//     tokens), a missing permission, or a key of another type. Run waits for the end of an outage.
//   - an OpError of the last release. It matches locker.ErrLost if the lease ended before Lead
//     returned, and locker.ErrUnknownOutcome if the server did not answer; the lock is then free at
//     its TTL at the latest.
//   - the cause of a pause, if the pause is backoff.Stop.
//   - locker.ErrInvalid: ctx is nil, Run was called while it runs, or Policy returned nil.
func (c *Candidate) Run(ctx context.Context) error {
	if ctx == nil {
		return argument.NilContext("Candidate.Run ctx")
	}
	if !c.running.CompareAndSwap(false, true) {
		return argument.Invalid("Candidate.Run", "a call while another one runs", "one at a time")
	}
	defer c.running.Store(false)
	if c.current.Load() != nil {
		return fmt.Errorf("%w: that of an earlier Run of %q", ErrLeadRunning, c.cfg.Name)
	}
	var pauses backoff.BackOff
	for ctx.Err() == nil {
		next, lasted := c.campaign(ctx)
		if !next.again {
			return next.err
		}
		if lasted || pauses == nil {
			if pauses = c.cfg.Policy(); pauses == nil {
				return argument.Invalid("leader.Config.Policy", "nil from the function", "a BackOff")
			}
		}
		pause := pauses.NextBackOff()
		if pause < 0 {
			return next.err
		}
		sleep(ctx, pause)
	}
	return nil
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// campaign acquires the lock and leads for one term. lasted reports whether the term lasted for a
// TTL or longer.
//
// The owner is random, because a reentrant lock can be acquired again under the owner of another
// hold. A request with an owner is also excluded from middleware/handover, so the server knows of
// each term.
func (c *Candidate) campaign(ctx context.Context) (next verdict, lasted bool) {
	lock, err := c.locker.Acquire(ctx, c.cfg.request(lease.NewToken()))
	if err != nil {
		return afterAcquire(ctx.Err() != nil, err), false
	}
	if ctx.Err() != nil {
		return verdict{err: lock.Release(ctx)}, false
	}
	began := time.Now()
	t := newTerm(ctx, lock)
	c.current.Store(t)
	go t.lead(c.cfg.Lead, func() { c.current.CompareAndSwap(t, nil) })
	if !t.wait(c.cfg.StopTimeout) {
		err := fmt.Errorf("%w: term %d of %q, for %v", ErrLeadRunning, t.number, c.cfg.Name, c.cfg.StopTimeout)
		c.cfg.OnEnd(t.number, err)
		return verdict{err: err}, false
	}
	o := outcome{stopped: ctx.Err() != nil, lead: t.err, ctxErr: t.ctxErr, lost: lock.Err(), release: lock.Release(ctx)}
	switch {
	case t.panicked != nil:
		panic(t.panicked)
	case t.exited:
		runtime.Goexit()
	}
	lasted, next = time.Since(began) >= lock.TTL(), afterTerm(o)
	c.cfg.OnEnd(t.number, next.err)
	return next, lasted
}

// IsLeader reports whether the Candidate leads now. It sends nothing. It never returns true after the
// lock's Deadline, nor after Lead's ctx has ended or Lead has returned.
func (c *Candidate) IsLeader() bool {
	_, leads := c.Term()
	return leads
}

// Term returns the number of the Candidate's current term. If the Candidate does not lead, Term
// returns 0 and false.
func (c *Candidate) Term() (term int64, leads bool) {
	t := c.current.Load()
	if t == nil || !t.leads() {
		return 0, false
	}
	return t.number, true
}
