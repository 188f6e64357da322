package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func (l *Locker) acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	tokens, note, err := l.check(ctx, req)
	if err != nil {
		return nil, err
	}
	req.Note = cmp.Or(req.Note, note)
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
	if t := locktrace.From(ctx); t != nil && t.Attempt != nil {
		t.Attempt(ctx, locktrace.AttemptInfo{
			Source: h.Source(), Name: req.Name, Mode: req.Mode.String(), Elapsed: time.Since(h.began), Err: err,
		})
	}
	if err == nil {
		lock := locker.NewLock(ctx, lease.Grant{
			Name: req.Name, Owner: h.owner, Mode: req.Mode, TTL: h.req.TTL, Deadline: deadline, Fence: fence,
		}, h)
		h.attach(lock)
		return lock, nil
	}
	// Who gives up now and ends the process is to leave nothing at the nodes that answer.
	for back, over := false, ctx.Done(); !back; {
		select {
		case <-h.gaveBack:
			back = true
		case <-timer.C:
			back = true
		case <-over:
			over = nil
			timer.Reset(asLongAgain(time.Since(h.began), h.timeout))
		}
	}
	if waits && errors.Is(err, locker.ErrNotAcquired) {
		err = fmt.Errorf("%w; one attempt was made, middleware/retry waits", err)
	}
	return nil, err
}

// newHold makes the hold of a request that was checked.
func (l *Locker) newHold(ctx context.Context, req locker.Request, tokens []string) *hold {
	given := req.Resume.Grant()
	fresh := false
	if req.Owner == "" && tokens == nil {
		// All nodes store the same owner: it is by that that parts which belong together are known,
		// and entered again.
		var carried bool
		if req.Owner, carried = lease.OwnerFrom(ctx, req.Name); !carried {
			req.Owner = lease.NewToken()
		}
		fresh = !carried
	}
	req.TTL = l.cfg.ttl(cmp.Or(req.TTL, given.TTL))
	req.Fenced = req.Fenced || given.Fence != 0
	req.NoWait, req.MaxWait = true, 0
	h := &hold{
		Locker: l, ctx: context.WithoutCancel(attemptsOnly(ctx)), req: req, tokens: tokens,
		owner: cmp.Or(req.Owner, given.Owner), fresh: fresh, timeout: l.cfg.attemptTimeout(req.TTL),
		decided: make(chan struct{}), turn: make(chan struct{}, 1),
		members: make([]member, len(l.nodes)), mode: req.Mode,
	}
	if req.Fenced {
		h.fixed = make(chan struct{})
	}
	return h
}

// attemptsOnly returns ctx with the part of its Trace that the nodes report to: their attempts,
// marked as parts, and their health. Events of node locks are not reported.
func attemptsOnly(ctx context.Context) context.Context {
	t := locktrace.From(ctx)
	if t == nil {
		return ctx
	}
	ctx = locktrace.Without(ctx)
	if t.Attempt == nil && t.NodeFailing == nil && t.NodeRecovered == nil {
		return ctx
	}
	parts := &locktrace.Trace{NodeFailing: t.NodeFailing, NodeRecovered: t.NodeRecovered}
	if t.Attempt != nil {
		parts.Attempt = func(ctx context.Context, info locktrace.AttemptInfo) {
			info.Part = true
			t.Attempt(ctx, info)
		}
	}
	return locktrace.With(ctx, parts)
}

// start asks all nodes.
func (h *hold) start() {
	h.began = time.Now()
	ctx, stop := detach(h.ctx, h.req.TTL)
	h.stop = stop
	earlier := h.leftovers.of(h.req.Name)
	free := 0
	for _, n := range h.nodes {
		if !n.crowded(h.timeout) {
			free++
		}
	}
	h.short = free < h.quorum
	for i := range h.members {
		if len(h.tokens) > 0 && h.tokens[i] == "" {
			h.members[i].err = locker.ErrNotHeld // nothing to resume there
			continue
		}
		h.members[i].asking, h.members[i].asked = true, h.began
		h.asking++
	}
	h.spare = h.asking - h.quorum
	if h.asking < h.quorum { // the handle is of fewer: there is nothing to resume
		stop()
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range h.members {
			h.members[i] = member{err: locker.ErrNotHeld}
		}
		h.tryDecide()
		return
	}
	for i := range h.members {
		if h.members[i].asking {
			go func() {
				h.ask(ctx, i, h.request(i), earlier)
				h.nodeAnswered()
			}()
		}
	}
}

// nodeAnswered notes that a node of the attempt has answered.
func (h *hold) nodeAnswered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking--; h.asking == 0 {
		h.stop()
	}
	h.settle()
}

// ask asks one node for a part, and sees to it that it joins, or goes back. earlier are the
// leftovers from before the request.
func (h *hold) ask(ctx context.Context, i int, req locker.Request, earlier []*hold) {
	grantedUntil := time.Now().Add(req.TTL)
	left := leftoversAt(earlier, i)
	var lock *locker.Lock
	err := errStalled
	if h.mayAsk(ctx, i) {
		lock, err = h.nodes[i].acquire(ctx, req, h.timeout)
	}
	if mayHaveRefused(left, err) && h.awaitLeftovers(ctx, left) && h.mayAsk(ctx, i) {
		lock, err = h.nodes[i].acquire(ctx, req, h.timeout) // what refused it is over
	}
	p, err := h.nodes[i].partOf(ctx, req, h.timeout, lock, err)
	if err == nil && h.fixed != nil && p.fence <= 0 {
		p.giveBack(h.ctx)
		err = fmt.Errorf("it gave no fencing token: %w", errors.ErrUnsupported)
	}
	h.sweep()
	h.mu.Lock()
	m := &h.members[i]
	m.asking, m.queued, m.err = false, false, err
	h.leaveBehind(i, false)
	rounds := m.rounds
	m.rounds = nil
	joins := err == nil && h.accepts()
	m.ending = err == nil && !joins
	if joins {
		m.part, h.took = p, true
		h.fixFence()
	} else if err == nil {
		p.quiet.Store(h.quiet)
	}
	h.tryDecide()
	h.watch()
	h.callEnded(i)
	h.mu.Unlock()
	if joins {
		h.dropIfEnded(m, p)
	}
	switch {
	case joins && h.fixed != nil:
		<-h.fixed
		_ = h.lift(m, p) // it keeps the error
	case !joins && err == nil:
		err = p.lock.Release(h.ctx)
		h.releaseEnded(i)
	}
	for _, j := range rounds {
		j.join(m, p, joins, err)
	}
	if joins {
		h.mu.Lock()
		h.comply(m, p)
		h.catchUp(m, p, grantedUntil)
		h.mu.Unlock()
	}
}

// mayAsk reports whether node i may be asked now, and counts the call if so. If the attempt cannot
// do without the node, mayAsk waits for one of the node's calls to return, until the attempt is
// decided: on a busy machine unanswered calls may merely be late.
func (h *hold) mayAsk(ctx context.Context, i int) bool {
	n := h.nodes[i]
	for {
		ends := n.nextReturn()
		if n.beginAcquire(ctx, h.timeout, h.short) {
			return true
		}
		if !h.short && h.skip() {
			return false
		}
		h.setQueued(i, true)
		select {
		case <-ends:
		case <-h.decided:
		}
		if !h.setQueued(i, false) {
			return false
		}
	}
}

// skip reports whether the attempt can do without one more node, and counts it if so.
func (h *hold) skip() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spare <= 0 {
		return false
	}
	h.spare--
	return true
}

// setQueued notes whether the call of node i waits for earlier ones. It reports whether the attempt
// is undecided, and leaves a decided one as it is: what was not sent by then is not.
func (h *hold) setQueued(i int, queued bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != gathering {
		return false
	}
	h.members[i].queued = queued
	return true
}

// leaveBehind says whether anybody waits for what node i is asked. The mutex is held.
func (h *hold) leaveBehind(i int, behind bool) {
	switch m := &h.members[i]; {
	case m.behind == behind:
		return
	case behind:
		h.nodes[i].behind.Add(1)
	default:
		h.nodes[i].behind.Add(-1)
	}
	h.members[i].behind = behind
}

// sweep drops the parts whose locks have ended, by no answer to us, while the quorum is gathered.
func (h *hold) sweep() {
	var buf [9]*part
	h.mu.Lock()
	parts := buf[:0]
	for i := range h.members {
		if h.phase == gathering {
			parts = append(parts, h.members[i].part)
		}
	}
	h.mu.Unlock()
	for i, p := range parts {
		if p == nil || p.lock.Err() == nil { // without the mutex: it may run callbacks
			continue
		}
		h.mu.Lock()
		h.drop(&h.members[i], p, errEnded)
		h.mu.Unlock()
		go p.giveBack(h.ctx)
	}
}
