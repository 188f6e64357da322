package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

var connectCases = []testCase{
	{
		name: "TLS", on: suite.OnlySingle, own: true, needs: []Feature{FeatureTLS},
		why: "locks must work over an encrypted connection, subscriptions too",
		run: func(t *caseT) { t.lockAt(suite.StartReal(t.TB, redistest.Options{TLS: redistest.ServerTLS})) },
	},
	{
		name: "TLS with a client certificate", on: suite.OnlySingle, own: true, needs: []Feature{FeatureTLS},
		why: "servers that require one refuse everybody else",
		run: func(t *caseT) {
			t.lockAt(suite.StartReal(t.TB, redistest.Options{TLS: redistest.MutualTLS, Password: "sesame"}))
		},
	},
	{
		name: "a password", on: suite.OnlySingle, own: true,
		why: "each connection must log in, that of the subscriptions too",
		run: func(t *caseT) { t.lockAt(suite.StartReal(t.TB, redistest.Options{Password: "sesame"})) },
	},
	{
		name: "a user with few rights", on: suite.OnlySingle, own: true,
		why: "a user with only the rights that locks need must be able to lock",
		run: userWithFewRights,
	},
	{
		name: "a cluster with TLS and a password", on: suite.OnlyCluster, own: true, needs: []Feature{FeatureTLS},
		why: "redirections must be followed over the same kind of connection as the first",
		run: func(t *caseT) {
			opts := redistest.Options{TLS: redistest.ServerTLS, Password: "sesame"}
			c := redistest.StartCluster(t.TB, suite.ClusterSize, opts)
			node := c.Nodes()[0]
			t.lockAt(&suite.Server{Cluster: c, Target: suite.Target{
				Kind: Cluster, Addrs: c.Addrs(), Password: node.Password(), TLS: node.TLSConfig(true),
			}})
		},
	},
	{
		name: "a failover is followed", on: []Kind{Sentinel}, own: true,
		why: "the new master knows no scripts and has the locks that were copied; the client must find it by itself",
		run: failoverIsFollowed,
	},
}

// long is a TTL longer than any case.
const long = time.Minute

// locker makes a lock of strategies/single over drv.
func (t *caseT) locker(drv driver.Driver) locker.Locker {
	t.Helper()
	l, err := single.New(drv, single.Config{AttemptTimeout: 10 * time.Second})
	t.OK(err, "single.New")
	return l
}

// acquire acquires a fenced lock or fails the case.
func (t *caseT) acquire(l locker.Locker, name string) *locker.Lock {
	t.Helper()
	lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long, Fenced: true})
	t.OK(err, "Acquire")
	return lock
}

// contended demands that another holds the lock.
func (t *caseT) contended(l locker.Locker, name string) *locker.ContentionError {
	t.Helper()
	_, err := l.Acquire(t.Ctx, locker.Request{Name: name})
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok {
		t.Fatalf("Acquire of a lock that another holds: got %v, want a *locker.ContentionError", err)
	}
	return held
}

// lockAt acquires, contends, waits and releases at a server, over several clients.
func (t *caseT) lockAt(srv *suite.Server) {
	t.Helper()
	t.Server = srv
	for range 4 {
		t.lockAs(srv.Target)
	}
}

// lockAs tries all operations of a lock at a target.
func (t *caseT) lockAs(target suite.Target) {
	t.Helper()
	first, second := t.locker(t.Dial(target)), t.locker(t.Dial(target))
	name := t.Key()
	lock := t.acquire(first, name)
	held := t.contended(second, name)
	t.OK(lock.Renew(t.Ctx, 0), "Renew")
	if t.Lacks(FeatureSubscribe) {
		t.OK(lock.Release(t.Ctx), "Release")
	} else {
		sub, err := held.Channel.Subscribe(t.Ctx)
		t.OK(err, "Subscribe")
		defer sub.Close()
		t.Do(name, "PING")
		t.KeepWaiting(name, func() { t.contended(second, name) }) // again: the first may have expired
		suite.Drain(sub)
		t.OK(lock.Release(t.Ctx), "Release")
		t.Woken(sub, "Release")
	}
	t.OK(t.acquire(second, name).Release(t.Ctx), "Release")
}

func userWithFewRights(t *caseT) {
	t.lockAs(t.User("locks", "~conformance.*", "~{conformance.*", "resetchannels", "&{conformance.*",
		"-@all", "+@connection", "+@scripting", "+set", "+get", "+pttl", "+pexpire", "+del", "+time", "+publish",
		"+subscribe", "+unsubscribe",
		"+hset", "+hget", "+hgetall", "+hdel", "+hlen", "+hmget", "+hexists", "+exists", "+type", "+zadd", "+zrange",
		"+zrank", "+zrem", "+zscore"))
}

// awaitReplicas waits until both replicas have all earlier writes.
func (t *caseT) awaitReplicas() {
	t.Helper()
	conn, err := t.Server.Real.Dial(t.Ctx)
	t.OK(err, "connect to the master")
	defer conn.Close()
	_, err = conn.Do("SET", "replicated", 1) // WAIT is for writes of its connection
	t.OK(err, "SET")
	if n, err := conn.Do("WAIT", 2, 60_000); n != int64(2) || err != nil {
		t.Fatalf("%v replicas have the lock, want 2: %v", n, err)
	}
}

func failoverIsFollowed(t *caseT) {
	l, name := t.locker(t.Driver()), t.Key()
	lock := t.acquire(l, name)
	t.awaitReplicas()
	_, err := t.Server.Sentinel.Failover(t.Ctx)
	t.OK(err, "failover")
	renewed := false
	for deadline := time.Now().Add(2 * t.Limit); !renewed; {
		ctx, cancel := context.WithTimeout(t.Ctx, 10*time.Second)
		err := lock.Renew(ctx, 0)
		cancel()
		if errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("Renew in a failover: %v", err)
		}
		if renewed = err == nil; !renewed && time.Now().After(deadline) {
			t.Fatalf("Renew after a failover: %v", err)
		}
		t.Pause(suite.PollEvery)
	}
	t.contended(l, name)
	t.OK(lock.Release(t.Ctx), "Release")
	next := t.acquire(l, name)
	if next.Fence() <= lock.Fence() {
		t.Errorf("the fencing token went from %d to %d over a failover", lock.Fence(), next.Fence())
	}
	t.OK(next.Release(t.Ctx), "Release")
}
