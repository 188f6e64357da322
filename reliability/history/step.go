package history

import "fmt"

// op is an event, or an act of the server, as the model judges it.
type op struct {
	Event
	number       int  // of the hold
	act          act  // of the server; fromEvent: it is an event
	mayPrecede   bool // of Acquire: its owner may hold already, by an unanswered call
	lossMayRaise bool // a resume of a perhaps lost hold, left out of the model, may have raised the tenure's token
	afterLoss    bool // it returned after a loss of state
	lease        *lease
	resumeContext
}

// act is an act of the server without a call.
type act byte

const (
	fromEvent   act = iota
	expires         // it ends a hold
	keepsName       // it may execute an unanswered release and keep the hold
	endsMinHold     // it ends a kept hold
)

// byServer is step for an act of the server.
func (r Rules) byServer(s state, o *op) (bool, state) {
	switch o.act {
	case expires:
		return s.find(o.number) >= 0, s.without(o.number)
	case keepsName:
		return true, s.keep(o.number)
	}
	if s.find(o.number) < 0 {
		return o.lease.resumedBy != nil, s // its release found it taken over
	}
	return !s.has(o.number), s.without(o.number)
}

// step reports whether a correct lock in state s could do o, and returns its state after it.
func (r Rules) step(s state, o *op) (bool, state) {
	if o.act != fromEvent {
		return r.byServer(s, o)
	}
	switch o.Kind {
	case Acquire:
		return r.acquire(s, o)
	case Held:
		return s.has(o.number) && (o.Shared || s.writes(o.number)), s
	case Renew:
		return matchesHold(s, o), s
	case Release:
		legal := matchesHold(s, o) || o.Outcome == OK && o.lease.resumedBy != nil
		if o.lease.keeps() {
			return legal, s.keep(o.number)
		}
		return legal, s.without(o.number)
	case Resume:
		return r.resume(s, o)
	case Downgrade, Upgrade:
		return r.convert(s, o)
	case Write:
		return r.write(s, o)
	}
	return true, s
}

// matchesHold reports whether o's answer agrees with the existence of its hold.
func matchesHold(s state, o *op) bool {
	switch o.Outcome {
	case OK:
		return s.has(o.number)
	case Lost:
		return !s.has(o.number)
	}
	return true
}

// admits reports whether the hold of o may begin beside the existing ones.
func (r Rules) admits(s state, o *op) bool {
	switch r.Model {
	case Reentrant:
		return s.holds == "" || s.owner == o.Owner && (s.live() || o.mayPrecede)
	case ReadWrite:
		return s.holds == "" || o.Shared && !s.exclusive()
	case Semaphore:
		return s.permits()+o.permits() <= r.Permits
	}
	return s.holds == ""
}

// permits returns how many permits o requests.
func (o *op) permits() int {
	if o.lease != nil {
		return o.lease.permits
	}
	return max(o.Permits, 1)
}

// mode returns the mode of o's new hold.
func (r Rules) mode(o *op, shared bool) byte {
	if r.Model == Semaphore {
		return '0' + byte(o.permits())
	}
	return modeOf(shared)
}

func (r Rules) acquire(s state, o *op) (bool, state) {
	if o.Outcome == Refused {
		return !r.admits(s, o), s
	}
	if o.lease.handedOver() {
		if !s.has(o.lease.predecessor.number) {
			return false, s
		}
		s = s.without(o.lease.predecessor.number)
	}
	if !r.admits(s, o) || o.Fence != 0 && !r.follows(s, o) {
		return false, s
	}
	next := s.with(o.number, r.mode(o, o.Shared && r.Model == ReadWrite))
	next.owner = o.Owner
	if o.Fence != 0 {
		next.fence, next.tenure = r.highest(s, o), r.tenure(s, o)
	}
	return true, next
}

// highest returns the highest token handed out once o has one. A resend for a semaphore mints
// again: holds acquired since the first send have lower tokens.
func (r Rules) highest(s state, o *op) int64 {
	if r.Model == Semaphore && r.mayHaveResent(o.Event) {
		return s.fence
	}
	return max(s.fence, o.Fence)
}

// follows reports whether the fencing token of o may follow the earlier ones.
func (r Rules) follows(s state, o *op) bool {
	switch r.Model {
	case ReadWrite:
		if o.Shared { // the last writer's
			return o.Fence >= s.fence || o.afterLoss
		}
	case Reentrant:
		if s.tenure != 0 {
			return o.Fence == s.tenure || (r.Crowd || o.resumeMayRaise || o.lossMayRaise) && o.Fence > s.tenure // it may be acquired at other nodes
		}
		if o.mayPrecede && s.owner == o.Owner {
			return o.Fence >= s.fence
		}
	}
	return o.Fence > s.fence
}

// convert is step for conversions. After an unanswered one the client counts as a reader, whatever
// the server did. The difference shows only in refusals of others, explained by leftovers.
func (r Rules) convert(s state, o *op) (bool, state) {
	if o.Outcome == Refused {
		return s.has(o.number) && s.count() > 1, s
	}
	late := o.late() || o.Outcome == Lost && o.lease.duringFailedResume(o.Event) // it may have been executed before
	if !late && !matchesHold(s, o) {
		return false, s
	}
	if o.Outcome == Lost && !late || !s.has(o.number) {
		return true, s
	}
	if o.Kind == Downgrade {
		return true, s.without(o.number).with(o.number, reader)
	}
	if o.Outcome != OK || s.writes(o.number) {
		return true, s
	}
	same := o.lease.downgradeUnsettled && o.Fence == s.fence // the downgrade never arrived: it is the same tenure
	if s.count() > 1 || o.Fence != 0 && o.Fence <= s.fence && !same {
		return false, s
	}
	next := s.without(o.number).with(o.number, sole)
	next.fence = max(s.fence, o.Fence)
	return true, next
}

func (r Rules) write(s state, o *op) (bool, state) {
	switch o.Outcome {
	case OK:
		if o.Fence < s.written {
			return false, s
		}
		s.written, s.maybe = o.Fence, max(s.maybe, o.Fence)
		return true, s
	case Refused:
		nested := r.Model == Reentrant && (r.Crowd && o.Fence < s.fence || o.Fence < s.tenure || o.lossMayRaise) || r.Model == Semaphore // a nested, parallel or resumed hold may have a higher token
		return o.Fence < s.maybe && (o.lease.mayBeLostAt(o.Return) || nested || !s.writes(o.number)), s
	}
	s.maybe = max(s.maybe, o.Fence)
	return true, s
}

func (o *op) String() string {
	who := fmt.Sprintf("#%d", o.number)
	switch o.act {
	case expires:
		return "lease of " + who + " ends"
	case keepsName:
		return "MinHold of " + who + " keeps the name"
	case endsMinHold:
		return "MinHold of " + who + " ends"
	}
	text := fmt.Sprintf("%s %s", o.Kind, who)
	if o.number < 0 {
		text = string(o.Kind)
	}
	if o.Shared {
		text += " shared"
	}
	if o.Permits > 1 {
		text += fmt.Sprintf(" of %d permits", o.Permits)
	}
	if o.Fence != 0 {
		text += fmt.Sprintf(" fence %d", o.Fence)
	}
	if o.lease.handedOver() && o.Kind == Acquire {
		text += fmt.Sprintf(" handed over by #%d", o.lease.predecessor.number)
	}
	text += ": " + string(o.Outcome)
	if o.Error != "" {
		text += " (" + o.Error + ")"
	}
	return text
}
