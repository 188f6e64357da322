package security_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// replicated are the strategies that wait for a replica.
var replicated = map[string]func(driver.Driver) (locker.Locker, error){
	"single": func(drv driver.Driver) (locker.Locker, error) {
		return single.New(drv, single.Config{MinReplicas: 1, AttemptTimeout: attemptTimeout})
	},
	"reentrant": func(drv driver.Driver) (locker.Locker, error) {
		return reentrant.New(drv, reentrant.Config{MinReplicas: 1, AttemptTimeout: attemptTimeout})
	},
	"rwhash": func(drv driver.Driver) (locker.Locker, error) {
		return rwhash.New(drv, rwhash.Config{MinReplicas: 1, AttemptTimeout: attemptTimeout})
	},
	"redisson": func(drv driver.Driver) (locker.Locker, error) {
		return redisson.New(drv, redisson.Config{MinReplicas: 1, AttemptTimeout: attemptTimeout})
	},
	"semaphore": func(drv driver.Driver) (locker.Locker, error) {
		return semaphore.New(drv, semaphore.Config{Permits: 2, MinReplicas: 1, AttemptTimeout: attemptTimeout})
	},
}

// A wait for replicas needs permission for one more command. Without it no lock is held, and no key
// left.
func TestACLOfMinReplicas(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	text, err := os.ReadFile(document)
	if err != nil || !strings.Contains(string(text), "`MinReplicas`, add `+wait`") {
		t.Fatalf("%s does not say what MinReplicas needs (%v)", document, err)
	}
	server := redistest.Start(t, redistest.Options{})
	redistest.StartReplica(t, server, server.Addr())
	for name, newLocker := range replicated {
		for _, client := range clients.WithFork {
			try := func(rule []string) (driver.Driver, error) {
				setUser(t, server, name, rule)
				drv, err := dial(t, client, name, alone(server))
				check.Must(t, err)
				lock, err := locker.Must(newLocker(drv)).Acquire(t.Context(), locker.Request{Name: "lock:" + client.Name + name, Fenced: true})
				if err != nil {
					return drv, err
				}
				errs := []error{lock.Renew(t.Context(), time.Minute)}
				if name == "rwhash" {
					errs = append(errs, lock.Downgrade(t.Context()), lock.Upgrade(t.Context()))
				}
				resumed, err := locker.Resume(t.Context(), locker.Must(newLocker(drv)), lock.Handle())
				return drv, errors.Join(append(errs, err, resumed.Release(t.Context()))...)
			}
			rule := append(rule(t, name), alsoNeeded(t, client.Name, drivertest.Single)...)
			check.Error(t, name+", "+client.Name, check.ErrOf(try(append(slices.Clone(rule), "+wait"))))
			server.MustCommand(t, "ACL", "LOG", "RESET")
			drv, err := try(rule)
			if driver.CodeOf(err) != "NOPERM" || !errors.Is(err, locker.ErrUnknownOutcome) || driver.Transient(err) {
				t.Errorf("%s, %s: without +wait: %v; want NOPERM and an unknown outcome, which does not pass", name, client.Name, err)
			}
			check.Equal(t, name+", "+client.Name+": the ACL log names WAIT", slices.Contains(denied(t, server), "command wait"), true)
			if err := drv.Close(); err != nil { // it waits for the undo
				t.Error(err)
			}
			left := server.MustCommand(t, "EXISTS", "lock:"+client.Name+name)
			check.Equal[any](t, name+", "+client.Name+": keys that stay", left, int64(0))
		}
	}
}
