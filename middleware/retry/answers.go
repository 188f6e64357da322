package retry

import "time"

// answers is what the attempts of a queue have found out, and for how long none was answered.
type answers struct {
	latest      outcome       // of an attempt, an acquire or a release here that others may know of
	refusals    int           // how many attempts were
	fastest     time.Duration // of them; the first one may have dialed
	inFlight    int           // attempts in flight
	silentSince time.Time     // when the first of them began, or the latest answer came
	silence     time.Duration // the sum of the times that ended without an answer
}

// begin is for an attempt that begins at now.
func (a *answers) begin(now time.Time) {
	if a.inFlight == 0 {
		a.silentSince = now
	}
	a.inFlight++
}

// cutOff is for w's attempt, if one is in flight, that ends without an answer. Less time than the
// fastest attempt takes does not count: no answer was due.
func (a *answers) cutOff(w *waiter, now time.Time) {
	if w.attempt == noAttempt {
		return
	}
	w.attempt = noAttempt
	if a.inFlight--; a.inFlight > 0 {
		return
	}
	if took := now.Sub(a.silentSince); took >= a.fastest {
		a.silence += took
	}
}

// answered is for an answer, to w's attempt if w is not nil. For those in flight the silence begins
// anew; while none is in flight, nobody asks, and it does not grow.
func (a *answers) answered(w *waiter, now time.Time) {
	if w != nil && w.attempt != noAttempt {
		w.attempt = noAttempt
		a.inFlight--
	}
	a.silence, a.silentSince = 0, now
}

// addRefusal adds how long an attempt took that was refused.
func (a *answers) addRefusal(took time.Duration) {
	if a.refusals == 0 || took < a.fastest {
		a.fastest = took
	}
	a.refusals++
}

// tooLate reports whether an attempt that begins at the time at, and takes times as long as the
// fastest, would end after end. The zero end is never reached.
func (a answers) tooLate(at, end time.Time, n int) bool {
	return !end.IsZero() && a.refusals > 1 && at.Add(time.Duration(n)*a.fastest).After(end)
}

// outage returns for how long no attempt has been answered, if o is too old for that: zero if it is
// not, or if that is too short to be an outage.
func (a answers) outage(o outcome, now time.Time) time.Duration {
	silence := a.silence
	if a.inFlight > 0 {
		silence += now.Sub(a.silentSince)
	}
	if o.err != nil || o.heldHere(now) || silence < max(time.Second, 2*a.fastest) {
		return 0
	}
	return silence
}
