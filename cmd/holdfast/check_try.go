package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// strategiesToTry returns the chosen strategy, or all.
func (o *options) strategiesToTry() ([]string, error) {
	if o.strategy == "" {
		return []string{"single", "reentrant", "rwhash", "semaphore:1"}, nil
	}
	_, _, err := parseStrategy(o.strategy, false)
	return []string{o.strategy}, err
}

// tryStrategies acquires and releases locks at node i, over the chosen client.
func (o *options) tryStrategies(ctx context.Context, i int, strategies []string, begin string) []finding {
	cred, err := o.credentials()
	if err != nil {
		return nil
	}
	where := strings.Join(cred[i].addrs, ",")
	c, err := o.connectTo(cred[i : i+1])
	if err != nil {
		return []finding{problem("connection", "", "over the client %s: %s", o.client, trimPrefix(err)).at(where)}
	}
	defer c.close()
	var found []finding
	for _, strategy := range strategies {
		t := trial{
			c: c, cred: cred[i], strategy: strategy, prefix: o.prefix, begin: begin,
			chosen: o.strategy != "" || strategy == "single",
		}
		for _, f := range t.run(ctx) {
			found = append(found, f.at(where))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return found
}

// trial tries the operations of one strategy at one server.
type trial struct {
	c                       connection
	cred                    credentials // of c
	strategy, prefix, begin string
	chosen                  bool // by --strategy, or the default

	permits int
	bare    locker.Locker
}

// run returns one finding if everything works, else one for each failed part.
func (t *trial) run(ctx context.Context) []finding {
	check := "strategy " + t.strategy
	name, permits, err := parseStrategy(t.strategy, false)
	if err == nil {
		t.permits = max(permits, 1)
		t.bare, err = t.c.strategy(name, permits, t.prefix)
	}
	if err != nil {
		return []finding{problem(check, "", "%s", trimPrefix(err))}
	}
	if err := t.withName(ctx, t.lock); err != nil {
		return []finding{t.failed(check, "locks do not work", err)}
	}
	var found []finding
	if err := t.withName(ctx, t.fence); err != nil {
		found = append(found, t.failed(check, "locks work, but not fencing tokens", err))
	}
	var took time.Duration
	err = t.withName(ctx, func(ctx context.Context, name string) (err error) {
		took, err = t.wake(ctx, name)
		return err
	})
	var slow *notWokenError
	switch {
	case errors.As(err, &slow):
		found = append(found, warning(check, aclAdvice, "locks work, but %s", slow.why))
	case err != nil:
		found = append(found, t.failed(check, "locks work, but not waiting for them", err))
	}
	if len(found) == 0 {
		found = []finding{passed(check, "locks and fencing tokens work, and a release wakes the next one within %s", rounded(took))}
	}
	return found
}

const aclAdvice = "Give the user the ACL rule of the strategy in SECURITY.md, for the keys and channels of your names; ACL LOG says what was refused."

// clusterAdvice returns the advice for the URL of one server if it is a node of a Cluster.
func (cred credentials) clusterAdvice() string {
	scheme := "redis+cluster"
	if cred.tls {
		scheme = "rediss+cluster"
	}
	return "The server is a node of a Cluster: use " + scheme + ":// in the URL."
}

// failed returns the finding about a failed part.
func (t *trial) failed(check, what string, err error) finding {
	advice := ""
	switch code := driver.CodeOf(err); {
	case code == "NOPERM":
		advice = aclAdvice
	case strings.Contains(err.Error(), "unknown command"):
		advice = "The server, or a proxy in front of it, must allow scripts (EVAL and EVALSHA) and publish/subscribe."
	case code == "MOVED" && t.cred.kind == oneServer:
		advice = t.cred.clusterAdvice()
	case code == "OOM":
		advice = "The server's memory is full."
	case code == "READONLY":
		advice = "Name the master in the URL."
	case code == "NOREPLICAS":
		advice = "Fewer replicas are connected than min-replicas-to-write."
	}
	f := problem(check, advice, "%s: %s", what, trimPrefix(err))
	if !t.chosen {
		f.Level = levelWarning
	}
	return f
}

// withName calls f with a name of its own, and then removes all of its keys.
func (t *trial) withName(ctx context.Context, f func(ctx context.Context, name string) error) error {
	ctx, cancel := context.WithTimeout(ctx, 3*answerTimeout)
	defer cancel()
	name := throwaway(t.begin)
	err := f(ctx, name)
	var counter string // has no TTL
	if t.strategy == "redisson" {
		counter = redissonSiblings.FenceKey(t.prefix + name)
	}
	return errors.Join(err, removeKeys(t.c, t.prefix+name, counter))
}

// request asks for the whole lock of a name.
func (t *trial) request(name string) locker.Request {
	return locker.Request{Name: name, TTL: throwawayTTL, Permits: t.permits, Note: "holdfast check"}
}

// lock acquires, contends, renews and releases.
func (t *trial) lock(ctx context.Context, name string) error {
	lock, err := t.bare.Acquire(ctx, t.request(name))
	if err != nil {
		return err
	}
	defer lock.Release(ctx) //nolint:errcheck // after an error; the TTL ends it otherwise
	if second, err := t.bare.Acquire(ctx, t.request(name)); err == nil {
		_ = second.Release(ctx)
		return errors.New("the server granted a lock twice")
	} else if !errors.Is(err, locker.ErrNotAcquired) {
		return err
	}
	if err := lock.Renew(ctx, 0); err != nil {
		return err
	}
	if err := lock.SetNote(ctx, "holdfast check, renewed"); err != nil {
		return err
	}
	if err := lock.Release(ctx); err != nil {
		return err
	}
	if !strings.HasPrefix(t.strategy, "rwhash") {
		return nil
	}
	shared := t.request(name)
	shared.Mode = locker.Shared
	lock, err = t.bare.Acquire(ctx, shared)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// fence acquires with a fencing token, and inspects the lock.
func (t *trial) fence(ctx context.Context, name string) error {
	req := t.request(name)
	req.Fenced = true
	lock, err := t.bare.Acquire(ctx, req)
	if err != nil {
		return err
	}
	defer lock.Release(ctx) //nolint:errcheck // after an error; the TTL ends it otherwise
	state, err := locker.Inspect(ctx, t.bare, name)
	if err != nil {
		return err
	}
	if !state.Held {
		return errors.New("the server does not have a lock that was just acquired")
	}
	return lock.Release(ctx)
}

// notWokenError says why a waiter was not woken by a release.
type notWokenError struct{ why string }

func (e *notWokenError) Error() string { return e.why }

// checkSubscribe subscribes to the releases of a held lock, as a waiter does.
func (t *trial) checkSubscribe(ctx context.Context, name string) error {
	_, err := t.bare.Acquire(ctx, t.request(name))
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok {
		return errors.Join(errors.New("a lock that is held is not reported as such"), err)
	}
	channel := held.Channel
	if held.Queue {
		channel = channel.For(lease.NewToken())
	}
	sub, err := channel.Subscribe(ctx)
	if err != nil {
		return &notWokenError{fmt.Sprintf("waiters cannot subscribe to releases, so they poll: %s", trimPrefix(err))}
	}
	return sub.Close()
}

// wake returns how long after a release its waiter has the lock. The waiter does not poll, but tries
// once more when it has subscribed, and when the server says. If the first of these attempts acquires
// the lock just after the release, it is not known whether the release would have woken the waiter,
// and wake tries again.
func (t *trial) wake(ctx context.Context, name string) (time.Duration, error) {
	const tries = 10
	for try := 1; ; try++ {
		took, by, err := t.handOver(ctx, name)
		if err != nil || by == locktrace.ByRelease {
			return took, err
		}
		if by != locktrace.BySubscription || try == tries {
			return 0, &notWokenError{fmt.Sprintf("a release does not wake the waiter, which got the lock %s later", rounded(took))}
		}
	}
}

func noPolls() backoff.BackOff { return backoff.NewConstantBackOff(answerTimeout) }

// handOver releases a lock with a waiter. It returns the time until the waiter has the lock, and
// the reason of its last wake-up.
func (t *trial) handOver(ctx context.Context, name string) (time.Duration, locktrace.WakeReason, error) {
	waiting, err := holdfast.Wrap(t.bare, holdfast.Config{Retry: retry.Config{Policy: noPolls}})
	if err != nil {
		return 0, "", err
	}
	first, err := t.bare.Acquire(ctx, t.request(name))
	if err != nil {
		return 0, "", err
	}
	defer first.Release(ctx) //nolint:errcheck // after an error; the TTL ends it otherwise

	if err := t.checkSubscribe(ctx, name); err != nil {
		return 0, "", err
	}
	req := t.request(name)
	req.MaxWait = answerTimeout
	w := startWaiter(ctx, waiting, req)
	listens, err := w.awaitSubscription(answerTimeout)
	if err != nil {
		return 0, "", err
	}
	released := time.Now()
	if err := first.Release(ctx); err != nil {
		return 0, "", err
	}
	r := <-w.got
	took := time.Since(released)
	switch {
	case errors.Is(r.err, locker.ErrNotAcquired):
		return 0, "", &notWokenError{"the waiter did not learn of a release in time: publish or subscribe does not work"}
	case r.err != nil:
		return 0, "", r.err
	}
	if err := r.lock.Release(ctx); err != nil {
		return 0, "", err
	}
	if !listens {
		return 0, "", &notWokenError{"the waiter is not subscribed to releases, so it polls"}
	}
	return took, w.by, nil
}
