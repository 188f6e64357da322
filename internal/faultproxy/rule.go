package faultproxy

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Match reports whether a request, given by its words, is meant.
type Match func(args []string) bool

// Any matches every request.
func Any(args []string) bool { return true }

// Command matches a command by name, in upper or lower case, if each contained text occurs in one
// of its arguments: Command("EVALSHA", digest, key).
func Command(name string, contained ...string) Match {
	return func(args []string) bool {
		return len(args) > 0 && strings.EqualFold(args[0], name) && containsAll(args[1:], contained)
	}
}

// Contains matches a request if each contained text occurs in its name or in one of its arguments.
func Contains(contained ...string) Match {
	return func(args []string) bool { return containsAll(args, contained) }
}

func containsAll(args, contained []string) bool {
	for _, c := range contained {
		found := false
		for _, a := range args {
			found = found || strings.Contains(a, c)
		}
		if !found {
			return false
		}
	}
	return true
}

// Fault is a disturbance of a request or its reply.
type Fault uint8

const (
	// Watch disturbs nothing: the Trap's events are all. Hit: the request is sent on.
	Watch Fault = iota

	// DropReply lets the server execute the request and loses the reply, and all later ones on this
	// connection. It stays open. Hit: the reply is lost.
	DropReply

	// Cut lets the server execute the request and closes the connection instead
	// of passing on the reply. Hit: the connection is closed.
	Cut

	// CutWithin is Cut in the middle of the reply.
	CutWithin

	// CutBefore closes the connection before the request reaches the server.
	// Earlier requests of the connection were sent on, their replies may be lost.
	// Hit: the connection is closed.
	CutBefore

	// Stall lets the server execute the request and withholds the reply, and all later ones, until
	// Release. Hit: the reply has come and is withheld.
	Stall

	// StallRequest holds the request back, and all later ones on the connection, until Release;
	// then the server gets them even if the client has gone away meanwhile: the command executes
	// late. Hit: the request is held back. CutAll and Close discard it.
	StallRequest

	// Delay lets the server execute the request and passes on the reply, and all later ones, after
	// Rule.By. Hit: the reply has come and is withheld.
	Delay

	faults // their number
)

// Rule chooses a request and its fault. A request is disturbed by one rule at most: rules are tried
// in the order of their Add, and a request taken by an earlier rule is not counted by the later
// ones.
type Rule struct {
	Match Match         // required
	Nth   int           // number of the matching request since Add, over all connections; 0: the first
	Every bool          // and all matching requests after it
	Fault Fault         // default Watch
	By    time.Duration // of Delay
}

// Trap is a rule at work. Its channels are closed at the first request disturbed by the rule.
type Trap struct {
	rule Rule
	seen int // matching requests so far, guarded by Proxy.mu

	hit, executed, gone, released event
}

func newTrap(r Rule) *Trap {
	switch {
	case r.Match == nil:
		panic("faultproxy: Rule.Match is nil; Any matches every request")
	case r.Nth < 0:
		panic(fmt.Sprintf("faultproxy: Rule.Nth is %d; the first request has number 1", r.Nth))
	case r.Fault >= faults:
		panic(fmt.Sprintf("faultproxy: Rule.Fault is %d; there is no such fault", r.Fault))
	case (r.By > 0) != (r.Fault == Delay) || r.By < 0:
		panic(fmt.Sprintf("faultproxy: Rule.By is %v; Delay needs a positive one, and no other fault has one", r.By))
	}
	return &Trap{rule: r, hit: newEvent(), executed: newEvent(), gone: newEvent(), released: newEvent()}
}

// takes counts a request and reports whether the rule is to disturb it. Proxy.mu is held.
func (t *Trap) takes(args []string) bool {
	if t.released.fired() || !t.rule.Match(args) {
		return false
	}
	t.seen++
	nth := max(t.rule.Nth, 1)
	return t.seen == nth || t.rule.Every && t.seen > nth
}

// Hit is closed when the fault happened, as defined for each Fault.
func (t *Trap) Hit() <-chan struct{} { return t.hit.ch }

// Executed is closed when the server has answered the request, whatever becomes
// of the answer.
func (t *Trap) Executed() <-chan struct{} { return t.executed.ch }

// Gone is closed when the connection of the request has ended on the client's side.
func (t *Trap) Gone() <-chan struct{} { return t.gone.ch }

// Release lets stalled or delayed messages pass, and ends the rule: no other request is disturbed
// by it.
func (t *Trap) Release() { t.released.fire() }

// event is a channel, closed once.
type event struct {
	ch   chan struct{}
	once *sync.Once
}

func newEvent() event { return event{ch: make(chan struct{}), once: new(sync.Once)} }

func (e event) fire() { e.once.Do(func() { close(e.ch) }) }

func (e event) fired() bool {
	select {
	case <-e.ch:
		return true
	default:
		return false
	}
}
