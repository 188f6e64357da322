package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// notOfDouble lists the cases not run on the in-memory Locker of package lockertest, by reason.
var notOfDouble = map[string][]string{
	"it loses, delays or counts commands on their way to a server": {
		"a Break whose reply is lost leaves the next holder alone",
		"a cancelled acquire that runs late leaves no key", "a change of the note that nobody answers loses nothing",
		"a change of the note whose reply is lost succeeds", "a contended acquire whose reply is lost is refused",
		"a conversion that runs late changes nothing", "a conversion whose reply is lost is done once",
		"a hold that ended stays ended beside others", "a lock past its Deadline is lost",
		"a lost lock gets no note", "a lost lock stays lost", "a refused acquire has a known outcome",
		"a refused release is resent", "a refused renewal changes nothing", "a refused upgrade stays refused",
		"a release before the subscription is not missed", "a release by handle whose reply is lost succeeds",
		"a release from a frozen server is bounded", "a release of permits whose reply is lost counts once",
		"a release of unknown outcome is resent", "a release that could not be sent is resent",
		"a release that keeps the name is resolved",
		"a release that never arrived succeeds", "a release whose reply is lost succeeds",
		"a renewal of unknown outcome changes nothing", "a renewal whose reply is lost succeeds",
		"a resume whose reply is lost succeeds", "a shared acquire whose reply is lost counts once",
		"a slow reply is waited for", "an abandoned resume is undone", "an acquire is one command",
		"an acquire never leaves a key without an expiry", "an acquire that does not wait is bounded",
		"an acquire that never arrived succeeds", "an acquire that was given up keeps no name",
		"an acquire that was never sent has a known outcome", "an acquire whose reply is lost succeeds",
		"an ended context acquires nothing", "an outage is not contention", "an undone acquire wakes nobody",
		"an unknown server error leaves the outcome unknown", "bad names are refused", "bad requests are refused",
		"close waits for the clean-up", "conversions go on after a resume",
		"Do distinguishes an unknown release from a loss", "Do ends its work with the lease",
		"Done closes with the server frozen", "permits whose reply is lost count once",
		"several names whose reply is lost are acquired once", "the clean-up leaves the next holder alone",
		"the clean-up wakes waiters", "the error of another acquire is not taken for the outcome",
		"TRYAGAIN is transient", "Watch outlives an outage", "Watch sends nothing but polls",
	},
	"it reads or writes keys or listens to channels that only a server has": {
		"a counter ahead of the clock keeps counting", "a counter without a number fails only what needs it",
		"a fence key that changed its type is left alone", "a fence key without a number is an error",
		"a foreign holder contends", "a foreign release is found by polling", "a foreign value is no clock",
		"a huge foreign value is not read", "a key of another type is an error",
		"a key that changed its type is a lost lock", "a refused acquire mints nothing",
		"a refused upgrade names the other reader", "a release is published", "a release wakes all who fit",
		"a release wakes the first waiter alone", "a resume compares the whole value",
		"a token is raised while the lock is held", "a waiter gives up when its time is over",
		"fencing tokens outlive their counter", "foreign libraries contend beside the queue", "names are keys",
		"no operation shortens a lease", "no operation shortens the counter's life",
		"nobody passes the waiters of a fair lock", "nobody waits and nobody is told",
		"only a downgrade is published", "only the last of several releases is published",
		"several names in one slot are acquired or none", "the counter outlives the lock by a day",
		"the stored value is compared whole",
	},
	"a hold can be resumed for another owner, as one of single": {
		"a resume can change the note",
	},
	"it restarts, reconfigures or closes what only a server has": {
		"a closed driver ends the use of its locks", "a frozen server leaves no key",
		"a release that may not publish still releases", "a server that restarts empty loses its locks",
		"a server that restarts with its data keeps its locks", "a user who may not subscribe polls",
		"connections may be killed while a lock is held", "scripts may be flushed while a lock is held",
		"an acquire in flight when the driver closes fails", "close ends the wait for a lock",
		"close waits until several locks are released",
		"a full server refuses those who wait too", "two limits are an error", "waiters outlive the move of a slot",
	},
	"a message within a process is not lost": {
		"a deaf waiter does not stall others",
	},
	"one clock has no drift: the Deadline is the end of the lease": {
		"the TTL is set as asked",
	},
}

// isOfDouble reports whether the in-memory Locker runs a case.
func isOfDouble(name string) bool {
	for _, names := range notOfDouble {
		if slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// doubleDriver is a driver that sends nothing.
type doubleDriver struct{ driver.Driver }

func (doubleDriver) Info() driver.Info { return driver.Info{Client: "memory"} }
func (doubleDriver) Close() error      { return nil }

// Delivery returns the delivery of the Locker's own channels.
func (doubleDriver) Delivery(string) driver.Delivery { return driver.DeliveryCounted }

// double is the server of a case: a Locker in memory for each limit of permits; 0 is a lock.
type double map[int]*lockertest.Locker

func (d double) of(permits int) *lockertest.Locker {
	l := d[permits]
	if l == nil {
		if l = lockertest.New(); permits > 0 {
			l = lockertest.NewSemaphore(permits)
		}
		d[permits] = l
	}
	return l
}

// do answers the commands of cases outside the driver.
func (d double) do(args ...any) (any, error) {
	switch args[0] {
	case "KEYS":
		return []any{}, nil
	case "PUBSUB":
		return []any{args[len(args)-1], int64(0)}, nil
	}
	name, _ := args[1].(string)
	var state locker.State
	var errs error
	for _, l := range d {
		found, err := l.Inspect(context.Background(), name)
		if errs = errors.Join(errs, err); found.Held {
			state = found
		}
	}
	switch {
	case errs != nil:
		return nil, errs
	case args[0] == "DEL":
		for _, l := range d {
			l.Forget(name)
		}
		return int64(1), nil
	case args[0] == "EXISTS" && state.Held:
		return int64(1), nil
	case args[0] == "EXISTS":
		return int64(0), nil
	case args[0] == "PTTL" && state.Held:
		return state.Left.Milliseconds(), nil
	case args[0] == "PTTL":
		return suite.NoKey.Milliseconds(), nil
	}
	return nil, fmt.Errorf("%v: %w", args[0], errors.ErrUnsupported)
}

// harness returns the harness of a lock, or of a semaphore of so many permits.
func (d double) harness(permits int) *Harness {
	h := &Harness{
		Name: "lockertest",
		Dial: func(testing.TB, drivertest.Target) (driver.Driver, error) { return doubleDriver{}, nil },
		New:  func(driver.Driver, Timeouts) (locker.Locker, error) { return d.of(permits), nil },
		Can:  Capabilities{Shared: true, Convert: true, MinHold: true},
	}
	if permits > 0 {
		h.Can = Capabilities{Fair: true, MinHold: true}
		h.NewSemaphore = func(_ driver.Driver, permits int, _ Timeouts) (locker.Locker, error) {
			return d.of(permits), nil
		}
	}
	return h
}

// The in-memory Locker passes the suite, in fake time, except for the cases with a server.
func TestDouble(t *testing.T) {
	t.Parallel()
	for permits, name := range []string{"lock", "semaphore of one permit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range (double{}).harness(permits).suite().Cases {
				if !isOfDouble(c.Name) {
					continue
				}
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						d := double{}
						s := d.harness(permits).suite()
						s.RunOn(t, s.Find(c.Name, c.On[0]), &suite.Server{Double: d.do})
					})
				})
			}
		})
	}
}

func TestCasesNotOfDoubleExist(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Concat(slices.Collect(maps.Values(notOfDouble))...) {
		if !slices.ContainsFunc(cases, func(c testCase) bool { return c.name == name }) {
			t.Errorf("there is no case %q", name)
		}
	}
}
