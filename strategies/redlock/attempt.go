package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// minGrace is the least time that a verdict waits which the answers on their way may change.
const minGrace = time.Millisecond

func (l *Locker) acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	tokens, err := l.check(ctx, req)
	if err != nil {
		return nil, err
	}
	waits := !req.NoWait
	h := l.newHold(ctx, req, tokens)
	h.start()
	timer := time.NewTimer(h.timeout)
	defer timer.Stop()
	select {
	case <-h.decided:
	case <-timer.C:
		h.giveUp()
		timer.Reset(h.timeout)
	case <-ctx.Done():
		h.abandon(ended(ctx))
	}
	h.mu.Lock()
	err, fence, deadline := h.err, h.fence, h.deadline
	h.mu.Unlock()
	if err == nil {
		return locker.NewLock(ctx, locker.Grant{
			Name: req.Name, Owner: h.owner, Mode: req.Mode, TTL: h.req.TTL, Deadline: deadline, Fence: fence,
		}, h), nil
	}
	select { // who gives up now and ends the process is to leave nothing at the nodes that answer
	case <-h.gaveBack:
	case <-timer.C:
	case <-ctx.Done():
	}
	if waits && errors.Is(err, locker.ErrNotAcquired) {
		err = fmt.Errorf("%w; one attempt was made, middleware/retry waits", err)
	}
	return nil, err
}

// newHold makes the hold of a request that was checked.
func (l *Locker) newHold(ctx context.Context, req locker.Request, tokens []string) *hold {
	given := req.Resume.Grant()
	if req.Owner == "" && tokens == nil {
		// All nodes store the same owner: it is by that that parts which belong together are known, and entered again.
		var carried bool
		if req.Owner, carried = locker.OwnerFrom(ctx, req.Name); !carried {
			req.Owner = locker.NewToken()
		}
	}
	req.TTL = l.cfg.ttl(cmp.Or(req.TTL, given.TTL))
	req.Fenced = req.Fenced || given.Fence != 0
	req.NoWait, req.MaxWait = true, 0
	h := &hold{
		Locker: l, ctx: context.WithoutCancel(attemptsOnly(ctx)), req: req, owner: cmp.Or(req.Owner, given.Owner), tokens: tokens, timeout: l.cfg.attemptTimeout(req.TTL),
		decided: make(chan struct{}), turn: make(chan struct{}, 1),
		members: make([]member, len(l.nodes)), mode: req.Mode, settled: true,
	}
	if req.Fenced {
		h.fixed = make(chan struct{})
	}
	return h
}

// attemptsOnly is ctx, with the Trace that the nodes may report to: of their locks nobody outside knows.
func attemptsOnly(ctx context.Context) context.Context {
	t := locker.TraceFrom(ctx)
	if t == nil {
		return ctx
	}
	ctx = locker.WithoutTrace(ctx)
	if t.Attempt == nil {
		return ctx
	}
	return locker.WithTrace(ctx, &locker.Trace{Attempt: t.Attempt})
}

// start asks all nodes.
func (h *hold) start() {
	h.began = time.Now()
	ctx, stop := locker.Detach(h.ctx, h.req.TTL)
	h.stop = stop
	for i := range h.members {
		if h.tokens != nil && h.tokens[i] == "" {
			h.members[i].err = locker.ErrNotHeld // nothing to resume there
			continue
		}
		h.members[i].asking = true
		h.asking++
	}
	if h.asking < h.quorum { // the handle is of fewer: there is nothing to resume
		stop()
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range h.members {
			h.members[i] = member{err: locker.ErrNotHeld}
		}
		h.look()
		return
	}
	for i := range h.members {
		if h.members[i].asking {
			go func() {
				h.ask(ctx, i, h.request(i))
				h.through()
			}()
		}
	}
}

// through notes that a node of the attempt has answered.
func (h *hold) through() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking--; h.asking == 0 {
		h.stop()
	}
}

// ask asks one node for a part, and sees to it that it joins, or goes back.
func (h *hold) ask(ctx context.Context, i int, req locker.Request) {
	p, err := h.nodes[i].acquire(ctx, req, h.timeout)
	if err == nil && h.fixed != nil && p.fence == 0 {
		p.giveBack(h.ctx)
		err = fmt.Errorf("it gave no fencing token: %w", errors.ErrUnsupported)
	}
	h.mu.Lock()
	m := &h.members[i]
	m.asking = false
	if m.err = err; err == nil {
		if !h.wants(p) {
			p.quiet.Store(h.quiet)
			h.mu.Unlock()
			_ = p.lock.Release(h.ctx) // nobody is left to tell
			return
		}
		m.part = p
		h.fixFence()
	}
	h.look()
	h.mu.Unlock()
	if err == nil && h.fixed != nil {
		<-h.fixed
		_ = h.lift(m, p) // it keeps the error
	}
}

// giveBack releases a part that nobody else knows of, waking nobody.
func (p *part) giveBack(ctx context.Context) {
	p.quiet.Store(true)
	_ = p.lock.Release(ctx) // at the worst it ends by itself
}

// look decides, as soon as the quorum is there or out of reach. The mutex is held.
func (h *hold) look() {
	if h.phase != gathering {
		return
	}
	var there, coming int
	for i := range h.members {
		switch m := &h.members[i]; {
		case h.counts(m):
			there++
		case m.asking, m.part != nil && m.err == nil:
			coming++
		}
	}
	switch {
	case there >= h.quorum:
		h.win()
	case there+coming < h.quorum:
		h.miss(false)
	}
}

// win ends the attempt with the lock, if there is enough left of it. The mutex is held.
func (h *hold) win() {
	h.deadline = h.quorumDeadline()
	need := h.cfg.minValidity(h.req.TTL)
	if left := time.Until(h.deadline); !h.deadline.IsZero() && left < need {
		h.fail(fmt.Errorf("%w: of the lease %v was left when the quorum was won, %v are needed; it was given back",
			locker.ErrLost, left.Round(time.Millisecond), need))
		return
	}
	h.phase = holding
	h.decide()
}

// miss ends the attempt without the lock. Where it hangs on answers that may be on their way whether others hold it or the
// nodes failed, it waits for them as long again as the attempt took, unless that is over. The mutex is held.
func (h *hold) miss(final bool) {
	t := h.tally()
	err, open := h.verdict(t)
	switch {
	case !open || final:
		h.fail(err)
	case h.grace == nil:
		h.grace = time.AfterFunc(max(time.Since(h.began), minGrace), h.giveUp)
	}
}

// giveUp ends an attempt that is not decided: what has not answered counts as failed.
func (h *hold) giveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == gathering {
		h.miss(true)
	}
}

// abandon ends an attempt that is not decided, because its caller left.
func (h *hold) abandon(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == gathering {
		h.fail(err)
	}
}

// tally is what the nodes answered. The mutex is held.
func (h *hold) tally() *tally {
	t := &tally{}
	for i := range h.members {
		m := &h.members[i]
		err := m.err
		if m.asking || err == nil && h.fence > 0 && !h.counts(m) { // or its counter is being raised
			err = errUnanswered
		}
		t.add(h.nodes[i], err)
	}
	return t
}

// verdict says why the quorum was missed. open: answers that have not come might change it. The mutex is held.
func (h *hold) verdict(t *tally) (err error, open bool) { //nolint:revive // the error is what it returns
	no, allowed := len(t.refused), len(h.nodes)-h.quorum
	if h.tokens != nil {
		if no > allowed {
			return locker.ErrNotHeld, false
		}
		err = t.quorumError(len(h.nodes), h.quorum)
		if t.done+t.pending > 0 {
			err = fmt.Errorf("%w: %w; what was taken over is released", locker.ErrUnknownOutcome, err)
		}
		return err, no+t.pending > allowed
	}
	// Would the lock have been won, had others not held it? Where nothing has failed, it is they alone who are in the way.
	outOfReach := t.done+t.pending < h.quorum
	if no > 0 && (t.done+no >= h.quorum || outOfReach && len(t.failed) == t.pending) {
		return t.contention(h.req.Name, h.quorum, h.cfg.WakeJitter), false
	}
	return t.quorumError(len(h.nodes), h.quorum), no > 0 && t.done+no+t.pending >= h.quorum
}

// fail ends the attempt with err, and gives back what it has. The mutex is held.
func (h *hold) fail(err error) {
	h.phase, h.err, h.gaveBack = over, err, make(chan struct{})
	h.quiet = h.tokens == nil // a resume that fails ends a hold for which others may wait
	for i := range h.members {
		p := h.members[i].part
		if p == nil {
			continue
		}
		h.members[i].part = nil
		h.back++
		p.quiet.Store(h.quiet)
		go func() {
			_ = p.lock.Release(h.ctx) // at the worst it ends by itself
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.back--; h.back == 0 {
				close(h.gaveBack)
			}
		}()
	}
	if h.back == 0 {
		close(h.gaveBack)
	}
	h.decide()
}

// decide ends the gathering. The mutex is held.
func (h *hold) decide() {
	if h.grace != nil {
		h.grace.Stop()
	}
	if h.fixed != nil && h.fence == 0 {
		close(h.fixed)
	}
	close(h.decided)
}
