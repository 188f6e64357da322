package retry

import "time"

// answers is what the attempts of a queue have found out, and for how long none was answered.
type answers struct {
	latest  outcome       // of an attempt, an acquire or a release here that others may know of
	refused int           // how many attempts were
	fastest time.Duration // of them; the first one may have dialed
	asking  int           // attempts in flight
	since   time.Time     // when the first of them began, or the latest answer came
	silence time.Duration // the sum of the times that ended without an answer
}

// begin is for an attempt that begins at now.
func (a *answers) begin(now time.Time) {
	if a.asking == 0 {
		a.since = now
	}
	a.asking++
}

// cutOff is for w's attempt, if one is in flight, that ends without an answer. Less time than the
// fastest attempt takes does not count: no answer was due.
func (a *answers) cutOff(w *waiter, now time.Time) {
	if w.attempt == noAttempt {
		return
	}
	w.attempt = noAttempt
	if a.asking--; a.asking > 0 {
		return
	}
	if took := now.Sub(a.since); took >= a.fastest {
		a.silence += took
	}
}

// answered is for an answer, to w's attempt if w is not nil. For those in flight the silence begins
// anew; while none is in flight, nobody asks, and it does not grow.
func (a *answers) answered(w *waiter, now time.Time) {
	if w != nil && w.attempt != noAttempt {
		w.attempt = noAttempt
		a.asking--
	}
	a.silence, a.since = 0, now
}

// refusal adds how long an attempt took that was refused.
func (a *answers) refusal(took time.Duration) {
	if a.refused == 0 || took < a.fastest {
		a.fastest = took
	}
	a.refused++
}

// tooLate reports whether an attempt that begins at the time at, and takes times as long as the
// fastest, would end after end. The zero end is never reached.
func (a answers) tooLate(at, end time.Time, times int) bool {
	return !end.IsZero() && a.refused > 1 && at.Add(time.Duration(times)*a.fastest).After(end)
}

// outage returns for how long no attempt has been answered, if o is too old for that: zero if it is
// not, or if that is too short to be an outage.
func (a answers) outage(o outcome, now time.Time) time.Duration {
	silence := a.silence
	if a.asking > 0 {
		silence += now.Sub(a.since)
	}
	if o.err != nil || o.heldHere(now) || silence < max(time.Second, 2*a.fastest) {
		return 0
	}
	return silence
}
