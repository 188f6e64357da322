package workload

import "time"

// Name is the name of a lock. Its acquires are all fenced, or none is.
type Name struct {
	Name   string
	Fenced bool
}

// Turn is one hold, from the acquire or resume to the end.
type Turn struct {
	Resume  bool          // the last hold passed on, if there is one
	Pause   time.Duration // before the acquire
	Name    int           // the index of the Name
	Shared  bool
	Permits int // of a semaphore; 0: one
	Owner   string
	TTL     time.Duration
	MinHold time.Duration
	Timeout time.Duration // of the acquire's context
	Cancel  bool          // the context is cancelled after Timeout; it has no deadline
	MaxWait time.Duration // if not 0, the context does not end
	NoWait  bool
	Steps   []Step
	End     End
}

// Action is an operation of a holder.
type Action string

// The actions.
const (
	Look      Action = "look"
	Write     Action = "write"
	Renew     Action = "renew"
	Downgrade Action = "downgrade"
	Upgrade   Action = "upgrade"
	Nest      Action = "nest"   // acquire again, as the same owner
	Pass      Action = "pass"   // offer the hold to others, and go on
	Resume    Action = "resume" // resume one's own hold by another client, and go on with the result
)

// Step is one Action.
type Step struct {
	Pause   time.Duration // before it
	Do      Action
	TTL     time.Duration // of Renew
	Timeout time.Duration // of its context; 0: no deadline
	Inner   *Turn         // of Nest
	Swap    bool          // of Nest: release the outer hold first, and go on with the inner one
	Client  int           // of Resume
	Ask     bool          // of Resume: try to renew the old lock, too
}

// End is how a hold ends.
type End string

// The ends.
const (
	Release  End = "release"
	Hasty    End = "hasty"    // a release under a cancelled context
	Overstay End = "overstay" // wait for the end of the lease, then write and release
	Abandon  End = "abandon"  // do nothing: the lease ends
)
