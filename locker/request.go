package locker

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/internal/callchain"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker/internal/text"
)

// The limits of a Request.
const (
	MaxNameLen = 1024                // bytes of a name, an owner or a note
	MinTTL     = time.Millisecond    // Redis counts in milliseconds
	MaxTTL     = 24 * 24 * time.Hour // a Redis expiry fits 31 bits of milliseconds in every client
	DefaultTTL = 30 * time.Second    // of strategies, for a zero TTL
)

// Request describes an acquire.
type Request struct {
	_ struct{} // keyed literals only

	// Name is the name of the lock. Required: 1 to 1024 bytes, any bytes. On Redis the key is the
	// strategy's prefix and the name. Names with the end ":fence", ":wake" or ":waiters" are
	// refused, and so are the few without another key in the same cluster slot ("a}b", "{}x").
	//
	// "a" and "{a}" are two locks with one wake-up channel and one fence counter. A release of one
	// costs the waiters of the other an attempt; the fencing tokens of each still increase.
	Name string
	// Mode is Exclusive or Shared. The zero Mode is Exclusive.
	Mode Mode
	// TTL is how long the lease lasts unless renewed: 1 ms to 24 days, in whole milliseconds (a
	// fraction is dropped). The strategies on Redis refuse less than 3 ms. Zero: the strategy's
	// default (30 s).
	TTL time.Duration
	// MinHold is the minimum time for the name to stay taken, from the acquire on, even if the lock
	// is released earlier: 1 ms to 24 days, and at most TTL, if that is set. A Release ends the hold as
	// always, but nobody, not even the same Owner, can acquire the lock until MinHold has passed.
	// So a job of 20 ms runs once per tick on replicas with different clocks. See "Minimum hold" in
	// the package comment. With a zero TTL the lease lasts for the longer one of the strategy's
	// default and MinHold. With Resume, MinHold counts from the resume. In a semaphore the permits
	// of the hold stay taken. Default: 0, a release frees the lock.
	MinHold time.Duration
	// MaxWait is the maximum duration of Acquire, also with NoWait or Resume. It does not bound the
	// hold. If MaxWait ends an Acquire, the error matches ErrMaxWait. Zero: only ctx and the
	// configuration of the Locker bound Acquire.
	MaxWait time.Duration
	// NoWait asks for one attempt, whatever the middleware. Unless MaxWait bounds it, the
	// strategy's AttemptTimeout does (default: a third of the TTL, at most 3 s), or ctx if it ends
	// sooner: for a fast error from a silent server, set MaxWait too. Without an answer by then the
	// error matches ErrUnknownOutcome, and a possible hold is cleaned up in the background. The
	// AttemptTimeout of strategies/redlock is a tenth of the TTL, at most 1 s, and its clean-up may
	// take another one.
	NoWait bool
	// Fenced asks for a fencing token too, in the same round trip.
	Fenced bool
	// Owner is an identity, for re-entry only; at most 1024 bytes. Empty: the one in ctx
	// (WithOwner, Do), or else a fresh random one.
	Owner string
	// Note is for display and trace links: refused requests get it in their error. It is never an
	// identity. At most 1024 bytes.
	Note string
	// Permits is how many permits of a semaphore to acquire. Strategies other than semaphore refuse
	// more than one with errors.ErrUnsupported. Zero: one, or as many as the Handle of Resume has.
	Permits int
	// Resume takes over this hold instead of acquiring one. Name and Mode must be the handle's.
	Resume Handle
}

// Validate returns an *InvalidError if the Request breaks a rule of all strategies. Strategies call
// it first.
func (r Request) Validate() error {
	if err := validateName(r.Name); err != nil {
		return err
	}
	if r.Mode != Exclusive && r.Mode != Shared {
		return argument.Invalid("Request.Mode", r.Mode.String(), "Exclusive or Shared")
	}
	if err := validateTTL("Request.TTL", r.TTL); err != nil {
		return err
	}
	if err := r.validateMinHold(); err != nil {
		return err
	}
	if r.MaxWait < 0 {
		return argument.Invalid("Request.MaxWait", r.MaxWait.String(), "a positive duration, or 0 for no bound but ctx")
	}
	if err := cmp.Or(validateLen("Request.Owner", r.Owner), validateLen("Request.Note", r.Note)); err != nil {
		return err
	}
	if r.Permits < 0 {
		return argument.Invalid("Request.Permits", strconv.Itoa(r.Permits), "1 or more, or 0 for one")
	}
	return r.validateResume()
}

// validateMinHold refuses a MinHold longer than the lease: if the holder dies, the end of the lease
// frees the lock.
func (r Request) validateMinHold() error {
	switch {
	case r.MinHold != 0 && (r.MinHold < MinTTL || r.MinHold > MaxTTL):
		return argument.Invalid("Request.MinHold", r.MinHold.String(), "1ms to 576h (24 days), or 0 for none")
	case r.TTL != 0 && r.MinHold > r.TTL:
		return argument.Invalid("Request.MinHold", r.MinHold.String(),
			"at most Request.TTL, "+r.TTL.String()+", or a TTL of 0")
	}
	return nil
}

func (r Request) validateResume() error {
	switch h := r.Resume; {
	case h.IsZero():
		return nil
	case h.Name() != r.Name:
		return argument.Invalid("Request.Resume", "a handle of "+text.Quote(h.Name()), "a handle of "+text.Quote(r.Name))
	case h.Mode() != r.Mode:
		return argument.Invalid("Request.Resume", "a handle of mode "+h.Mode().String(),
			"a handle of mode "+r.Mode.String())
	}
	return nil
}

func validateName(name string) error {
	switch {
	case name == "":
		return argument.Invalid("Request.Name", "an empty string", "1 to 1024 bytes")
	case len(name) > MaxNameLen:
		return argument.Invalid("Request.Name", fmt.Sprintf("%d bytes, %s", len(name), text.Quote(name)),
			"1 to 1024 bytes")
	}
	return sibling.CheckKey("Request.Name", name)
}

// validateCall checks the first arguments of a function of this package.
func validateCall(ctx context.Context, l Locker, caller string) error {
	switch {
	case ctx == nil:
		return argument.NilContext(caller + " ctx")
	case l == nil:
		return argument.Invalid(caller+" locker", "nil", "a Locker")
	}
	return nil
}

func validateLen(what, value string) error {
	if len(value) > MaxNameLen {
		return argument.Invalid(what, fmt.Sprintf("%d bytes", len(value)), "at most 1024 bytes")
	}
	return nil
}

func validateTTL(what string, ttl time.Duration) error {
	if ttl != 0 && (ttl < MinTTL || ttl > MaxTTL) {
		return argument.Invalid(what, ttl.String(), "1ms to 576h (24 days), or 0 for the default")
	}
	return nil
}

// WithOwner returns a copy of ctx. Acquires under it are made by owner, whatever the name, unless the
// Request has an Owner. It is for reentrant locks: acquires of one owner re-enter, from any goroutine
// or process. An empty owner removes the one of ctx. If ctx carries holds of another owner, a new
// call chain begins: its acquires wait for these holds, and do not fail with [ErrNested].
func WithOwner(ctx context.Context, owner string) context.Context {
	return callchain.WithOwner(ctx, owner)
}
