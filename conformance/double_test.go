package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// Why a case does not run on the in-memory Locker of package lockertest.
const (
	aboutCommands = "it loses, delays or counts commands on their way to a server"
	aboutKeys     = "it reads or writes keys or listens to channels that only a server has"
	aboutServers  = "it restarts, reconfigures or closes what only a server has"
	asSingle      = "a hold can be resumed for another owner, as one of single"
	aboutDrift    = "one clock has no drift: the Deadline is the end of the lease"
)

// notOfDouble are the cases that the in-memory Locker does not run, and why.
var notOfDouble = map[string]string{
	"a hold that ended stays ended beside others":         aboutCommands,
	"only the last of several releases is published":      aboutKeys,
	"no operation shortens a lease":                       aboutKeys,
	"no operation shortens the counter's life":            aboutKeys,
	"a counter without a number fails only what needs it": aboutKeys,
	"a refused upgrade stays refused":                     aboutCommands,
	"conversions go on after a resume":                    aboutCommands,
	"a refused upgrade names the other reader":            aboutKeys,
	"a resume can change the note":                        asSingle,
	"only a downgrade is published":                       aboutKeys,

	"permits whose reply is lost count once":                   aboutCommands,
	"a release of permits whose reply is lost counts once":     aboutCommands,
	"a Break whose reply is lost leaves the next holder alone": aboutCommands,
	"a change of the note whose reply is lost succeeds":        aboutCommands,
	"a change of the note that nobody answers loses nothing":   aboutCommands,
	"a lost lock gets no note":                                 aboutCommands,
	"Watch outlives an outage":                                 aboutCommands,
	"Watch sends nothing but polls":                            aboutCommands,
	"a release wakes the first waiter alone":                   aboutKeys,
	"nobody waits and nobody is told":                          aboutKeys,
	"nobody passes the waiters of a fair lock":                 aboutKeys,
	"several names in one slot are acquired or none":           aboutKeys,
	"several names whose reply is lost are acquired once":      aboutCommands,
	"two limits are an error":                                  aboutServers,
	"a release wakes all who fit":                              aboutKeys,

	"a conversion whose reply is lost is done once":             aboutCommands,
	"a conversion that runs late changes nothing":               aboutCommands,
	"an acquire never leaves a key without an expiry":           aboutCommands,
	"the error of another acquire is not taken for the outcome": aboutCommands,
	"a lost lock stays lost":                                    aboutCommands,
	"Done closes with the server frozen":                        aboutCommands,
	"a lock past its Deadline is lost":                          aboutCommands,
	"Do ends its work with the lease":                           aboutCommands,
	"Do distinguishes an unknown release from a loss":           aboutCommands,
	"a release that keeps the name is resolved":                 aboutCommands,
	"an acquire that was given up keeps no name":                aboutCommands,
	"a shared acquire whose reply is lost counts once":          aboutCommands,
	"bad names are refused":                                     aboutCommands,
	"bad requests are refused":                                  aboutCommands,
	"an ended context acquires nothing":                         aboutCommands,
	"an acquire is one command":                                 aboutCommands,
	"an acquire whose reply is lost succeeds":                   aboutCommands,
	"an acquire that never arrived succeeds":                    aboutCommands,
	"a slow reply is waited for":                                aboutCommands,
	"a contended acquire whose reply is lost is refused":        aboutCommands,
	"an outage is not contention":                               aboutCommands,
	"an acquire that does not wait is bounded":                  aboutCommands,
	"a refused acquire has a known outcome":                     aboutCommands,
	"an unknown server error leaves the outcome unknown":        aboutCommands,
	"TRYAGAIN is transient":                                     aboutCommands,
	"a release whose reply is lost succeeds":                    aboutCommands,
	"a release that never arrived succeeds":                     aboutCommands,
	"a release from a frozen server is bounded":                 aboutCommands,
	"a release of unknown outcome is resent":                    aboutCommands,
	"a refused release is resent":                               aboutCommands,
	"a refused renewal changes nothing":                         aboutCommands,
	"a renewal whose reply is lost succeeds":                    aboutCommands,
	"a renewal of unknown outcome changes nothing":              aboutCommands,
	"a cancelled acquire that runs late leaves no key":          aboutCommands,
	"the clean-up wakes waiters":                                aboutCommands,
	"close waits for the clean-up":                              aboutCommands,
	"an acquire that was never sent has a known outcome":        aboutCommands,
	"the clean-up leaves the next holder alone":                 aboutCommands,
	"a resume whose reply is lost succeeds":                     aboutCommands,
	"an abandoned resume is undone":                             aboutCommands,
	"a release by handle whose reply is lost succeeds":          aboutCommands,
	"an undone acquire wakes nobody":                            aboutCommands,
	"a release before the subscription is not missed":           aboutCommands,

	"a refused acquire mints nothing":                 aboutKeys,
	"a token is raised while the lock is held":        aboutKeys,
	"fencing tokens outlive their counter":            aboutKeys,
	"a counter ahead of the clock keeps counting":     aboutKeys,
	"the counter outlives the lock by a day":          aboutKeys,
	"the stored value is compared whole":              aboutKeys,
	"a foreign holder contends":                       aboutKeys,
	"a foreign value is no clock":                     aboutKeys,
	"names are keys":                                  aboutKeys,
	"a resume compares the whole value":               aboutKeys,
	"a release is published":                          aboutKeys,
	"a foreign release is found by polling":           aboutKeys,
	"a waiter gives up when its time is over":         aboutKeys,
	"foreign libraries contend beside the queue":      aboutKeys,
	"a key of another type is an error":               aboutKeys,
	"a key that changed its type is a lost lock":      aboutKeys,
	"a huge foreign value is not read":                aboutKeys,
	"a fence key without a number is an error":        aboutKeys,
	"a fence key that changed its type is left alone": aboutKeys,

	"a closed driver ends the use of its locks":            aboutServers,
	"scripts may be flushed while a lock is held":          aboutServers,
	"connections may be killed while a lock is held":       aboutServers,
	"a server that restarts empty loses its locks":         aboutServers,
	"a server that restarts with its data keeps its locks": aboutServers,
	"a frozen server leaves no key":                        aboutServers,
	"a release that may not publish still releases":        aboutServers,
	"a user who may not subscribe polls":                   aboutServers,
	"waiters outlive the move of a slot":                   aboutServers,

	"the TTL is set as asked": aboutDrift,
}

// doubleDriver is a driver through which nothing is sent.
type doubleDriver struct{ driver.Driver }

func (doubleDriver) Info() driver.Info { return driver.Info{Client: "memory"} }
func (doubleDriver) Close() error      { return nil }

// Delivery is that of the Locker's own channels.
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

// do answers the commands that cases send around the driver.
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

// harness is that of a lock, or of a semaphore of so many permits.
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

// The in-memory Locker passes the suite, in fake time, but for the cases that take a server.
func TestDouble(t *testing.T) {
	t.Parallel()
	for permits, name := range []string{"lock", "semaphore of one permit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range (double{}).harness(permits).suite().Cases {
				if notOfDouble[c.Name] != "" {
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
	for name := range notOfDouble {
		if !slices.ContainsFunc(cases, func(c testCase) bool { return c.name == name }) {
			t.Errorf("there is no case %q", name)
		}
	}
}
