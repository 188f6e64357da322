package conformance

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

var connectCases = []testCase{
	{
		name: "TLS", on: realOne, own: true, needs: []Feature{FeatureTLS},
		why: "locks must work over an encrypted connection, subscriptions too",
		run: func(t *caseT) { t.lockAt(startReal(t.TB, redistest.Options{TLS: redistest.ServerTLS})) },
	},
	{
		name: "TLS with a client certificate", on: realOne, own: true, needs: []Feature{FeatureTLS},
		why: "servers that ask for one let nobody else in",
		run: func(t *caseT) {
			t.lockAt(startReal(t.TB, redistest.Options{TLS: redistest.MutualTLS, Password: "sesame"}))
		},
	},
	{
		name: "a password", on: realOne, own: true,
		why: "each connection must log in, that of the subscriptions too",
		run: func(t *caseT) { t.lockAt(startReal(t.TB, redistest.Options{Password: "sesame"})) },
	},
	{
		name: "a user with few rights", on: realOne, own: true,
		why: "a user who may do no more than locking takes must be able to lock",
		run: userWithFewRights,
	},
	{
		name: "a cluster with TLS and a password", on: realCluster, own: true, needs: []Feature{FeatureTLS},
		why: "redirections must be followed the same way as the first connection was made",
		run: func(t *caseT) {
			opts := redistest.Options{TLS: redistest.ServerTLS, Password: "sesame"}
			c := redistest.StartCluster(t.TB, clusterSize, opts)
			node := c.Nodes()[0]
			t.lockAt(&server{cluster: c, target: Target{
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

// lockAt acquires, contends, waits and releases at a server.
func (t *caseT) lockAt(srv *server) {
	t.Helper()
	t.srv = srv
	for range 4 {
		t.lockAs(srv.target)
	}
}

// lockAs does all that a lock can at a target.
func (t *caseT) lockAs(target Target) {
	t.Helper()
	a, b := t.dial(target), t.dial(target)
	first, second := t.locker(a), t.locker(b)
	name := t.key()
	lock := t.acquire(first, locker.Request{Name: name, TTL: long, Fenced: true})
	t.contended(second, locker.Request{Name: name})
	t.ok(lock.Renew(t.ctx, 0), "Renew")
	if !t.h.lacks(FeatureSubscribe) {
		ce := t.contended(second, locker.Request{Name: name})
		sub, err := ce.Channel.Subscribe(t.ctx)
		t.ok(err, "Subscribe")
		defer sub.Close()
		t.do(name, "PING")
		drain(sub)
		t.ok(lock.Release(t.ctx), "Release")
		t.woken(sub, "Release")
	} else {
		t.ok(lock.Release(t.ctx), "Release")
	}
	t.ok(t.acquire(second, locker.Request{Name: name, TTL: long}).Release(t.ctx), "Release")
}

func userWithFewRights(t *caseT) {
	t.do("", "ACL", "SETUSER", "locks", "on", ">secret", "~conformance.*", "~{conformance.*", "&{conformance.*",
		"-@all", "+@connection", "+@scripting", "+set", "+get", "+pttl", "+pexpire", "+del", "+time", "+publish", "+subscribe", "+unsubscribe",
		"+hset", "+hget", "+hgetall", "+hdel", "+hlen", "+hmget", "+hexists", "+exists", "+type")
	target := t.srv.target
	target.Username, target.Password = "locks", "secret"
	t.lockAs(target)
}

func failoverIsFollowed(t *caseT) {
	l, name := t.direct(), t.key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
	t.do("", "WAIT", 1, 5000) // the copy has it
	_, err := t.srv.sentinel.Failover(t.ctx)
	t.ok(err, "failover")
	renewed := false
	for deadline := time.Now().Add(2 * t.patience); !renewed; {
		ctx, cancel := context.WithTimeout(t.ctx, time.Second)
		err := lock.Renew(ctx, 0)
		cancel()
		t.isNot(err, locker.ErrNotAcquired, "Renew in a failover")
		if renewed = err == nil; !renewed && time.Now().After(deadline) {
			t.Fatalf("Renew after a failover: %v", err)
		}
		t.pause(pollEvery)
	}
	t.contended(l, locker.Request{Name: name})
	t.ok(lock.Release(t.ctx), "Release")
	next := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
	if next.Fence() <= lock.Fence() {
		t.Errorf("the fencing token went from %d to %d over a failover", lock.Fence(), next.Fence())
	}
	t.ok(next.Release(t.ctx), "Release")
}
