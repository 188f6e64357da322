package workload

import "time"

// Name is a lock. Its fencing tokens are asked for always, or never.
type Name struct {
	Name   string
	Fenced bool
}

// Turn is one hold, from the acquire, or resume, to the release.
type Turn struct {
	Resume  bool          // what was passed on last, if anything was, rather than acquire
	Pause   time.Duration // before it
	Name    int
	Shared  bool
	Owner   string
	TTL     time.Duration
	Timeout time.Duration // of the acquire's context
	Cancel  bool          // the context is cancelled, rather than reach a deadline
	MaxWait time.Duration // instead of both
	NoWait  bool
	Steps   []Step
	End     End
}

// Action is what a holder does.
type Action string

// The actions.
const (
	Look      Action = "look"
	Write     Action = "write"
	Renew     Action = "renew"
	Downgrade Action = "downgrade"
	Upgrade   Action = "upgrade"
	Nest      Action = "nest"   // acquire again, as the same owner
	Pass      Action = "pass"   // let others resume the hold, and go on
	Resume    Action = "resume" // by another client, and go on with that
)

// Step is one of them.
type Step struct {
	Pause   time.Duration // before it
	Do      Action
	TTL     time.Duration // of Renew
	Timeout time.Duration // of its context; 0: none
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
	Hasty    End = "hasty"    // a release under a context that is cancelled already
	Overstay End = "overstay" // wait for the end of the lease, then write and release
	Abandon  End = "abandon"  // let the lease end
)
