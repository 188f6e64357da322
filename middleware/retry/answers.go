package retry

import "time"

// answers are the results of a queue's attempts, and the time without an answer.
type answers struct {
	latest      outcome       // the newest: of an attempt, or of an acquire or a release here
	refusals    int           // number of refused attempts
	fastest     time.Duration // duration of the fastest refused attempt; the first may have dialed
	inFlight    int           // attempts in flight
	silentSince time.Time     // begin of the oldest unanswered attempt, or the latest answer if later
	silence     time.Duration // unanswered time of attempts before those in flight
}

// begin records the begin of an attempt at now.
func (a *answers) begin(now time.Time) {
	if a.inFlight == 0 {
		a.silentSince = now
	}
	a.inFlight++
}

// cutOff records the end of w's attempt, if one is in flight, without an answer. A time below
// fastest adds no silence: no answer was due.
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

// answered records an answer to w's attempt, or to one outside the queue if w is nil. The silence
// begins anew at now; it grows only while an attempt is in flight.
func (a *answers) answered(w *waiter, now time.Time) {
	if w != nil && w.attempt != noAttempt {
		w.attempt = noAttempt
		a.inFlight--
	}
	a.silence, a.silentSince = 0, now
}

// addRefusal adds a refused attempt and its duration.
func (a *answers) addRefusal(took time.Duration) {
	if a.refusals == 0 || took < a.fastest {
		a.fastest = took
	}
	a.refusals++
}

// tooLate reports whether an attempt from at, of n times the fastest duration, would end after end.
// It is false for a zero end, and before two refusals: the first attempt may have dialed.
func (a answers) tooLate(at, end time.Time, n int) bool {
	return !end.IsZero() && a.refusals > 1 && at.Add(time.Duration(n)*a.fastest).After(end)
}

// outage returns the length of the silence, or zero if it is too short for an outage. It is zero too if
// o, the outcome known before, is an error or a hold of this process: o then stays valid.
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
