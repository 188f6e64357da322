package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// quorumAttempt is one attempt to acquire or resume at all nodes at once. At the quorum it becomes
// the heldLock; late node locks join it.
type quorumAttempt struct {
	heldLock
	tokens    []string      // of the hold to resume, by node; nil: acquire
	fresh     bool          // the owner is random, of this attempt alone
	needsBusy bool          // a quorum needs nodes with too many unanswered calls
	stop      func()        // ends the ctx of the calls
	decided   chan struct{} // closed at the end of gathering

	// The mutex guards these.
	err        error       // why the attempt failed
	tooLate    error       // set if too little of the lease was left at the quorum
	tookOver   bool        // a node granted its lock
	inFlight   int         // nodes yet to answer
	spare      int         // nodes that skipNode may still skip
	grace      *time.Timer // bounds the wait for missing answers
	callerLeft bool        // before it was decided
	undoing    int         // node locks being released
	// closed once the answering nodes hold nothing of a failed attempt; nil: it has not failed
	cleanedUp chan struct{}
}

func (l *Locker) acquire(ctx context.Context, req locker.Request) (lock *locker.Lock, err error) {
	tokens, note, err := l.check(ctx, req)
	if err != nil {
		return nil, err
	}
	req.Note = cmp.Or(req.Note, note)
	if req.MaxWait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, req.MaxWait, locker.ErrMaxWait)
		defer stop()
	}
	a := l.newAttempt(ctx, req, tokens)
	a.start(ctx)
	timer := time.NewTimer(a.attemptTimeout())
	defer timer.Stop()
	grant, err := a.await(ctx, timer)
	if err == nil {
		defer func() {
			if lock == nil { // a callback of the Trace panicked
				_ = a.release(ctx, time.Time{})
			}
		}()
	}
	a.report(ctx, req, err)
	if err == nil {
		return a.attach(locker.NewLock(ctx, grant, &a.heldLock)), nil
	}
	a.awaitCleanUp(ctx, timer)
	if !req.NoWait && errors.Is(err, locker.ErrNotAcquired) {
		err = fmt.Errorf("%w; one attempt was made, middleware/retry waits", err)
	}
	return nil, err
}

// newAttempt makes the attempt for a checked request.
func (l *Locker) newAttempt(ctx context.Context, req locker.Request, tokens []string) *quorumAttempt {
	given := req.Resume.Info()
	fresh := false
	if req.Owner == "" && tokens == nil {
		// All nodes store the same owner: it relates the node locks, and re-entry goes by it.
		var carried bool
		if req.Owner, carried = lease.OwnerFrom(ctx, req.Name); !carried {
			req.Owner = lease.NewToken()
		}
		fresh = !carried
	}
	req.MinHold = max(req.MinHold, given.MinHold)
	req.TTL = max(l.cfg.ttl(cmp.Or(req.TTL, given.TTL)), req.MinHold)
	req.Fenced = req.Fenced || given.Fence != 0
	req.NoWait, req.MaxWait = true, req.TTL // a node resolves its commands beyond the attempt
	a := &quorumAttempt{
		heldLock: heldLock{turn: make(turn, 1), note: req.Note, quorumState: quorumState{
			Locker: l, ctx: uncancelled(asQuorum(attemptsOnly(ctx))), req: req,
			mode: req.Mode, slots: make([]slot, len(l.nodes)),
		}},
		tokens: tokens, fresh: fresh, decided: make(chan struct{}),
	}
	a.attempt = a
	for i, n := range l.nodes {
		a.slots[i].node = n
	}
	if req.Fenced {
		a.fenceKnown = make(chan struct{})
	}
	return a
}

// asQuorum returns ctx for the nodes. A waiting caller takes no place of its own there: their
// queues have no common order.
func asQuorum(ctx context.Context) context.Context {
	w, waits := lease.WaitingFrom(ctx)
	if !waits {
		return ctx
	}
	w.Quorum, w.Subscribed = true, false
	return lease.WithWaiting(ctx, w)
}

// attemptsOnly returns ctx with a Trace of the nodes' attempts, marked as parts, and of their
// health. Events of node locks are not reported.
func attemptsOnly(ctx context.Context) context.Context {
	t := locktrace.From(ctx)
	if t == nil {
		return ctx
	}
	parts := &locktrace.Trace{NodeFailing: t.NodeFailing, NodeRecovered: t.NodeRecovered}
	if t.Attempt != nil {
		parts.Attempt = func(ctx context.Context, info locktrace.AttemptInfo) {
			info.AtNode = true
			t.Attempt(ctx, info)
		}
	}
	return locktrace.With(locktrace.Without(ctx), parts)
}

// start asks all nodes. The calls end with the caller's ctx.
func (a *quorumAttempt) start(caller context.Context) {
	a.began = time.Now()
	var ctx context.Context
	if driver.Cancellable(caller) {
		ctx, a.stop = context.WithTimeout(a.ctx, a.req.TTL)
	} else { // stop is not called before the nodes have answered
		bound := bounded.New(a.ctx, a.req.TTL)
		ctx, a.stop = bound, bound.Stop
	}
	a.needsBusy = answering(a.nodes, a.attemptTimeout()) < a.quorum
	a.mu.Lock()
	defer a.unlock()
	for i := range a.slots {
		s := &a.slots[i]
		if len(a.tokens) > 0 && a.tokens[i] == "" {
			s.err = locker.ErrNotHeld // nothing to resume there
			continue
		}
		s.asking, s.askedAt = true, a.began
		a.inFlight++
		go func() {
			a.ask(ctx, s, a.requestFor(s), func() bool { return a.mayAsk(ctx, s) })
			a.nodeAnswered()
		}()
	}
	a.spare = a.inFlight - a.quorum
}

// requestFor returns the request to a node.
func (a *quorumAttempt) requestFor(s *slot) *locker.Request {
	if a.tokens == nil {
		return &a.req
	}
	req := a.req
	req.Resume = req.Resume.WithToken(a.tokens[s.node.index])
	return &req
}

// mayAsk reports whether a node may be asked now. If it may, the call is counted. If the attempt
// cannot do without the node, mayAsk waits for one of the node's calls to return, until the attempt
// is decided: on a busy machine unanswered calls may merely be late.
func (a *quorumAttempt) mayAsk(ctx context.Context, s *slot) bool {
	for {
		returned, ok := s.node.beginAcquire(ctx, a.attemptTimeout(), a.needsBusy)
		switch {
		case ok:
			return true
		case !a.needsBusy && a.skipNode():
			return false
		}
		a.setQueued(s, true)
		select {
		case <-returned:
		case <-a.decided:
		}
		if !a.setQueued(s, false) {
			return false
		}
	}
}

// skipNode reports whether the attempt can do without one more node. If it can, the node is
// counted.
func (a *quorumAttempt) skipNode() bool {
	a.mu.Lock()
	defer a.unlock()
	if a.spare <= 0 {
		return false
	}
	a.spare--
	return true
}

// setQueued records whether the call of a node waits for earlier ones. It reports whether the
// attempt is undecided; a decided one is left as it is, and sends nothing more.
func (a *quorumAttempt) setQueued(s *slot, queued bool) bool {
	a.mu.Lock()
	defer a.unlock()
	if a.phase != gathering {
		return false
	}
	s.queued = queued
	return true
}

// nodeAnswered counts the answer of a node.
func (a *quorumAttempt) nodeAnswered() {
	a.mu.Lock()
	defer a.unlock()
	if a.inFlight--; a.inFlight == 0 {
		a.stop()
	}
	a.signalCleanedUp()
}

// await waits until the attempt is decided, timer fires or ctx ends. It returns the grant or the
// error.
func (a *quorumAttempt) await(ctx context.Context, timer *time.Timer) (lease.HoldInfo, error) {
	select {
	case <-a.decided:
	case <-timer.C:
		a.giveUp()
		timer.Reset(a.attemptTimeout())
	case <-ctx.Done():
		a.abandon(lease.ContextErr(ctx))
	}
	a.mu.Lock()
	defer a.unlock()
	return lease.HoldInfo{
		Name: a.req.Name, Owner: a.owner(), Mode: a.req.Mode, TTL: a.req.TTL, Deadline: a.deadline, Fence: a.fence,
		MinHold: a.req.MinHold,
	}, a.err
}

// awaitCleanUp waits for cleanedUp, since the caller may end the process next: until timer fires
// or, once ctx has ended, as long again as the attempt took.
func (a *quorumAttempt) awaitCleanUp(ctx context.Context, timer *time.Timer) {
	for ctxEnds := ctx.Done(); ; {
		select {
		case <-a.cleanedUp:
			return
		case <-timer.C:
			return
		case <-ctxEnds:
			ctxEnds = nil
			timer.Reset(asLongAgain(time.Since(a.began), a.attemptTimeout()))
		}
	}
}

// report reports the attempt to the Trace in ctx.
func (a *quorumAttempt) report(ctx context.Context, req locker.Request, err error) {
	if t := locktrace.From(ctx); t != nil && t.Attempt != nil {
		t.Attempt(ctx, locktrace.AttemptInfo{
			Source: a.source(), Name: req.Name, Mode: req.Mode.String(), Elapsed: time.Since(a.began), Err: err,
		})
	}
}
