package lockertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Outage is a kind of outage of the server.
type Outage int

// The kinds of outages.
const (
	// NoOutage: the server answers.
	NoOutage Outage = iota
	// Refused: nobody listens at the server's address, as while it restarts. A call fails at once
	// and is not sent, so its outcome is known: the error matches driver.ErrNotSent and
	// syscall.ECONNREFUSED, and neither locker.ErrNotAcquired nor locker.ErrUnknownOutcome.
	Refused
	// Silent: the server is frozen, or the network drops packets. A call gets no reply, and waits:
	//   - an acquire until its ctx or MaxWait ends, but no longer than its TTL or 30 s, whichever
	//     is longer; with NoWait and no MaxWait, for one attempt timeout: a third of the TTL, at
	//     most 3 s
	//   - a renewal or a conversion until its ctx or the lease ends
	//   - a release for one attempt timeout if its ctx ends within that time, else for two
	//   - Inspect until its ctx ends, for one attempt timeout at most
	//
	// If the outage ends meanwhile, the call is executed. Otherwise the error matches
	// locker.ErrUnknownOutcome, and ctx's error if ctx ended the wait. Inspect changes nothing, so
	// its error does not match ErrUnknownOutcome.
	Silent
)

// String returns "no outage", "refused" or "silent".
func (o Outage) String() string {
	switch o {
	case NoOutage:
		return "no outage"
	case Refused:
		return "refused"
	case Silent:
		return "silent"
	default:
		return fmt.Sprintf("Outage(%d)", int(o))
	}
}

// SetOutage begins an outage, until SetOutage(NoOutage). During an outage no call has an effect.
// Leases end as always, so a lock that cannot be renewed is lost at its Deadline. A failed release
// is executed when the outage is over, if its lease has not ended by then, as the clean-up of a
// strategy does. A failed acquire leaves nothing behind.
//
// Fail, Hold, Expire and Forget work in an outage too. A failure set by a Fail method is for the
// next call that reaches the server.
func (l *Locker) SetOutage(o Outage) {
	if o < NoOutage || o > Silent {
		panic(argument.Invalid("lockertest outage", o.String(), "NoOutage, Refused or Silent"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if o == l.outage {
		return
	}
	l.outage = o
	if l.changed != nil {
		close(l.changed)
	}
	if l.changed = make(chan struct{}); o != NoOutage {
		return
	}
	l.changed = nil
	delayed := l.delayed
	l.delayed = nil
	for _, release := range delayed {
		release()
	}
	for channel := range l.channels { // as after a new subscription, waiters are to try again
		l.publish(channel)
	}
}

// reach waits until the server can be reached, for limit at most. If the error is nil, the mutex is
// held.
func (l *Locker) reach(ctx context.Context, limit time.Duration) error {
	l.mu.Lock()
	switch l.outage {
	case NoOutage:
		return nil
	case Refused:
		l.mu.Unlock()
		return driver.NotSent(&net.OpError{Op: "dial", Net: "tcp", Addr: address{},
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for l.outage != NoOutage { // a sent call waits on, even if Silent becomes Refused
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, lease.ContextErr(ctx))
		case <-timer.C:
			return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, context.DeadlineExceeded)
		}
		l.mu.Lock()
	}
	return nil
}

// reachToRelease is reach for the release of a hold with this TTL. The end of ctx does not stop it.
func (l *Locker) reachToRelease(ctx context.Context, ttl time.Duration) error {
	uncancelled := context.WithoutCancel(ctx)
	err := l.reach(uncancelled, attemptTimeout(ttl))
	switch {
	case !errors.Is(err, locker.ErrUnknownOutcome):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w: %w", locker.ErrUnknownOutcome, lease.ContextErr(ctx), context.DeadlineExceeded)
	}
	if err = l.reach(uncancelled, attemptTimeout(ttl)); err != nil && !errors.Is(err, locker.ErrUnknownOutcome) {
		err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err) // the first send may be executed
	}
	return err
}

// afterOutage executes release when the outage is over.
func (l *Locker) afterOutage(release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outage == NoOutage { // it has ended meanwhile
		release()
		return
	}
	l.delayed = append(l.delayed, release)
}

// attemptTimeout is the default of the strategies, for how long one send of a command waits.
func attemptTimeout(ttl time.Duration) time.Duration {
	if ttl == 0 {
		ttl = locker.DefaultTTL
	}
	return max(min(ttl/3, 3*time.Second), time.Millisecond)
}

// acquireLimit is for how long an acquire is sent again, if ctx does not end sooner.
func acquireLimit(req locker.Request) time.Duration {
	ttl := req.TTL
	if ttl == 0 {
		ttl = max(req.Resume.Info().TTL, locker.DefaultTTL)
	}
	if req.NoWait && req.MaxWait == 0 {
		return attemptTimeout(ttl)
	}
	return max(ttl, 30*time.Second)
}

// known removes ErrUnknownOutcome from the error of a call that changes nothing.
func known(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[1]
	}
	return err
}

// address is the server's address in errors.
type address struct{}

func (address) Network() string { return "tcp" }
func (address) String() string  { return "lockertest" }
