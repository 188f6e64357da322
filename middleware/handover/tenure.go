package handover

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

const (
	// maxUnconfirmed and the TTL divided by confirmShare bound the time of hand-overs without an
	// answer of the server. maxUnconfirmed also bounds the time for which heirs wait for the answer
	// to a release.
	maxUnconfirmed = 50 * time.Millisecond
	confirmShare   = 10
	// checkEvery is the time between checks for heirs while nothing is handed over.
	checkEvery = time.Second
	// noopTTL is the TTL of a renewal without effect: it only asks whether the hold exists.
	noopTTL = time.Millisecond
	// minTokens is the minimum number of fencing tokens in one reservation.
	minTokens = 16
	// maxReserve bounds the reservation of tokens in a release; after that the release is sent.
	maxReserve = time.Second
	// minPause is the minimum pause of a leader after a tenure, for processes without a place in a
	// queue at the server. If the strategy keeps a queue, a pause begins no sooner than pauseEvery
	// after the latest one, for other libraries: they poll. No pause is longer than pauseEvery.
	minPause   = time.Millisecond
	pauseEvery = 100 * time.Millisecond
)

// tenure is one hold of a name at the server: from an acquire of this process, through hand-overs, to
// the release at the server. The mutex of the cohort guards the fields that change.
type tenure struct {
	line  *line
	lock  *locker.Lock // of the wrapped Locker; nil once the holder's Lock is forgotten
	hold  lease.Hold   // lock's
	began time.Time

	holder     lease.Hold // of the latest Lock; nil during a hand-over
	note       string     // the holder's
	noHandOver bool       // the next release is sent
	ended      time.Time  // when the hold was lost, or its release sent; zero: neither

	firstFence, fence, reservedFence int64 // fencing tokens: of the acquire, of the latest Lock, the last reserved

	confirmed   time.Time // begin of the latest command that found the hold, or of a later check
	checking    bool      // a check is in flight
	cancelCheck context.CancelFunc

	checks, holderRenewals atomic.Int32 // renewals in flight: of check, and of the holder
}

// beginTenure begins a tenure of h with lock, just acquired from the wrapped Locker.
func (a *acquisition) beginTenure(h *heir, lock *locker.Lock) {
	now, fence := time.Now(), lock.Fence()
	t := &tenure{
		line: h.line, lock: lock, hold: lock.Hold(), began: now, confirmed: now,
		firstFence: fence, fence: fence, reservedFence: fence,
	}
	a.mu.Lock()
	h.tenure, h.fence = t, fence
	if t.noHandOver = h.line.leader != h; !t.noHandOver { // else the driver is being closed
		h.line.leader, h.line.tenure = nil, t
	}
	a.mu.Unlock()
	t.hold.Trace(context.Background(), &locktrace.Trace{Renewed: t.renewed, Lost: t.lost})
}

// handOnResult is the result of handOn.
type handOnResult int

const (
	notHanded   handOnResult = iota // the release is to be sent
	handed                          // the first heir has it
	needsTokens                     // it may be handed over after reserve
)

// handOn gives t to the first heir, if it can. from is the previous holder. mu is held.
func (t *tenure) handOn(from lease.Hold, now time.Time) handOnResult {
	h := t.line.first
	if h == nil || !t.line.terms.serve(h.terms) || !t.mayHandOver(now) {
		return notHanded
	}
	t.holder = nil
	if h.terms.fenced && t.fence == t.reservedFence {
		return needsTokens
	}
	if h.terms.fenced {
		t.fence++
		h.fence = t.fence
	}
	t.line.remove(h)
	h.tenure, h.from = t, from
	close(h.ready)
	t.beginCheck(now)
	return handed
}

// mayHandOver reports whether t may be handed over at now. mu is held. The Err of the wrapped
// Locker's Lock calls no callback in this goroutine that could lock mu: see lockState.unlock.
func (t *tenure) mayHandOver(now time.Time) bool {
	c := t.line.cohort
	if t.noHandOver || !t.ended.IsZero() || c.closing || now.Sub(t.began) >= c.cfg.Tenure {
		return false
	}
	if t.checking && now.Sub(t.confirmed) > t.unconfirmedLimit() {
		return false
	}
	return t.hold.Err() == nil && t.hasLeft(t.hold.TTL()/4, now)
}

// hasLeft reports whether at least d of the lease is left.
func (t *tenure) hasLeft(d time.Duration, now time.Time) bool {
	end := t.hold.Deadline()
	return end.IsZero() || end.Sub(now) >= d
}

// unconfirmedLimit returns the maximum time of hand-overs without an answer of the server.
func (t *tenure) unconfirmedLimit() time.Duration {
	return min(maxUnconfirmed, t.hold.TTL()/confirmShare)
}

// beginCheck starts a check after a hand-over, unless the server answered a moment ago and half of the
// lease is left. mu is held.
func (t *tenure) beginCheck(now time.Time) {
	age := now.Sub(t.confirmed)
	if t.checking || age < t.unconfirmedLimit()/2 && t.hasLeft(t.hold.TTL()/2, now) {
		return
	}
	ttl := t.hold.TTL()
	if end := t.hold.Deadline(); !end.IsZero() {
		ttl = max(ttl, (end.Sub(now) + time.Millisecond - 1).Truncate(time.Millisecond))
	}
	t.startCheck(ttl, now)
}

// startCheck starts a check that renews the hold for ttl. mu is held.
func (t *tenure) startCheck(ttl time.Duration, now time.Time) {
	if now.Sub(t.confirmed) > t.unconfirmedLimit() { // the previous holder had the lock for long
		t.confirmed = now
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.checking, t.cancelCheck = true, cancel
	go t.check(ctx, t.lock, ttl)
}

// check renews the hold for ttl, to learn whether the server still has it. After a failed check the
// next release is sent.
func (t *tenure) check(ctx context.Context, lock *locker.Lock, ttl time.Duration) {
	mu, began := &t.line.cohort.mu, time.Now()
	t.checks.Add(1)
	err := lock.Renew(ctx, ttl)
	t.checks.Add(-1)
	mu.Lock()
	t.cancelCheck()
	t.checking = false
	if err == nil {
		t.confirmed = began
	} else {
		t.noHandOver = true
	}
	mu.Unlock()
}

// reserve reserves fencing tokens, hands t over to the heir then first, and reports whether it did. The
// calling release waits for it: after the last Release nothing is in flight, and the driver can be
// closed. The number of tokens is the microseconds since the acquire: no token is further ahead of the
// server's clock than the first one. minTokens is the exception.
func (t *tenure) reserve(ctx context.Context, from lease.Hold) bool {
	began := time.Now()
	last := max(t.fence+minTokens, t.firstFence+began.Sub(t.began).Microseconds())
	ctx, cancel := context.WithTimeout(ctx, min(t.hold.TTL()/4, maxReserve))
	defer cancel()
	result, err := t.hold.Lease().Do(ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: last})
	if err != nil || result.Fence != last { // another hold may have one of them
		return false
	}
	t.line.cohort.mu.Lock()
	defer t.line.cohort.mu.Unlock()
	t.reservedFence, t.confirmed = last, began
	return t.handOn(from, time.Now()) == handed
}

// passOrRelease reserves tokens or releases t, by the result of handOn, after an heir without a Lock.
func (t *tenure) passOrRelease(from lease.Hold, result handOnResult) {
	if result != needsTokens || !t.reserve(context.Background(), from) {
		_ = t.release(context.Background())
	}
}

// release sends the release, and then lets the next heir ask the wrapped Locker. If there is no
// answer for long, checkForHeirs does.
func (t *tenure) release(ctx context.Context) error {
	mu := &t.line.cohort.mu
	mu.Lock()
	t.ended = time.Now()
	if t.cancelCheck != nil {
		t.cancelCheck()
	}
	lock := t.lock
	t.line.checkRelease()
	mu.Unlock()
	defer func() { // even if a callback panics
		mu.Lock()
		t.end()
		mu.Unlock()
	}()
	if lock == nil {
		return nil // forgotten
	}
	return bare(lock.Release(ctx))
}

// end removes t, which has ended, from its line, if it is there. mu is held.
func (t *tenure) end() {
	l, now := t.line, time.Now()
	if l.tenure == t {
		l.tenure = nil
		if l.first != nil && (!l.cohort.serverQueue || now.Sub(l.pauseUntil) >= pauseEvery) {
			l.pauseUntil = now.Add(min(max(minPause, 4*now.Sub(t.ended)), pauseEvery))
		}
		l.advance()
	}
}

// undone ends t after its acquire was undone.
func (t *tenure) undone() {
	t.line.cohort.mu.Lock()
	defer t.line.cohort.mu.Unlock()
	t.ended = time.Now()
	t.end()
}

// lost ends t, and the holder's Lock, after the wrapped Locker's Lock was lost.
func (t *tenure) lost(context.Context, locktrace.LostInfo) {
	t.line.cohort.mu.Lock()
	t.ended = time.Now()
	t.end()
	holder := t.holder
	t.line.cohort.mu.Unlock()
	if holder != nil && holder.Err() == nil { // else it ended by its own clock
		holder.MarkLost(t.hold.Err())
	}
}

// renewed reports a renewal of the wrapped Locker's Lock, such as a watchdog's, to the holder's
// Lock, unless skipsRenewal. It releases the hold of a holder that has ended, and gives up the hold
// of a forgotten one.
func (t *tenure) renewed(_ context.Context, info locktrace.RenewedInfo) {
	t.line.cohort.mu.Lock()
	holder := t.holder
	t.line.cohort.mu.Unlock()
	if holder == nil || t.skipsRenewal(holder, info) {
		return
	}
	_ = holder.Renew(context.WithValue(context.Background(), renewedKey{}, &renewalResult{info.Deadline, bare(info.Err)}))
	switch {
	case holder.Forgotten():
		t.line.cohort.mu.Lock()
		t.lock = nil // makes a watchdog find it forgotten, too
		t.line.cohort.mu.Unlock()
	case holder.Err() != nil:
		t.releaseEnded(holder)
	}
}

// skipsRenewal reports whether a renewal is not reported to holder. A renewal by holder returns its
// result itself, and a check matters only if it extends the lease. While one of these is in flight,
// another renewal is taken for it, unless the lease of holder runs out.
func (t *tenure) skipsRenewal(holder lease.Hold, info locktrace.RenewedInfo) bool {
	end := holder.Deadline()
	left := time.Until(end)
	switch {
	case t.holderRenewals.Load() > 0:
		return end.IsZero() || left >= holder.TTL()/4
	case t.checks.Load() > 0:
		return end.IsZero() || left >= holder.TTL()/2 || info.Err != nil || !info.Deadline.After(end)
	default:
		return false
	}
}

// releaseEnded releases the hold if its holder ended by its own clock, without a release.
func (t *tenure) releaseEnded(holder lease.Hold) {
	t.line.cohort.mu.Lock()
	stale := t.holder == holder && t.ended.IsZero()
	t.line.cohort.mu.Unlock()
	if stale && holder.Err() != locker.ErrReleased { //nolint:errorlint // set by Release itself
		go func() { _ = t.release(context.Background()) }()
	}
}
