package keylock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// pair is a master behind a proxy, and its replica.
type pair struct {
	master, replica *redistest.Server
	proxy           *faultproxy.Proxy
}

func startPair(t *testing.T) pair {
	t.Helper()
	master := redistest.Start(t, redistest.Options{Args: []string{"--repl-ping-replica-period", "3600"}})
	return pair{master, redistest.StartReplica(t, master, master.Addr()), faultproxy.Start(t, master.Addr())}
}

// wantFree waits until the master has no such key.
func (p pair) wantFree(t *testing.T, key string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); p.master.MustCommand(t, "EXISTS", key) != int64(0); {
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", key)
		}
	}
}

// offset is how much the master has written so far.
func (p pair) offset(t *testing.T) (n int64) {
	t.Helper()
	info, _ := p.master.MustCommand(t, "INFO", "replication").(string)
	_, after, _ := strings.Cut(info, "master_repl_offset:")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFrozenReplica runs each strategy on each client against a replica that is stopped by SIGSTOP.
func TestFrozenReplica(t *testing.T) {
	t.Parallel()
	for i, c := range clients.All {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if i > 0 {
				effort.NeedFull(t)
			}
			p := startPair(t)
			drv := c.Open(t, p.proxy.Addr())
			for _, s := range strategies {
				p.frozenReplica(t, s.name, locker.Must(s.new(drv, settings{replicas: 1, attempt: 2 * time.Second, within: 100 * time.Millisecond})),
					locker.Must(s.new(drv, settings{replicas: 1, attempt: 20 * time.Second, within: 10 * time.Second})))
			}
		})
	}
}

// TestEachRenewalWrites demands it of one for less than what is left too: else no WAIT behind it
// can speak for it. A WAIT would write itself, so there is none here, nor a fence counter.
func TestEachRenewalWrites(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	drv := clients.All[0].Open(t, p.master.Addr())
	for _, s := range strategies {
		lock, err := locker.Must(s.new(drv, settings{})).Acquire(t.Context(), locker.Request{Name: s.name, TTL: time.Minute})
		wantNone(t, err)
		before := p.offset(t)
		wantNone(t, lock.Renew(t.Context(), 3*time.Millisecond))
		if p.offset(t) == before {
			t.Errorf("%s: a renewal wrote nothing", s.name)
		}
		wantNone(t, lock.Release(t.Context()))
	}
}

// frozenReplica is for a Locker that is soon through with waiting, and one that is not.
func (p pair) frozenReplica(t *testing.T, name string, hasty, patient locker.Locker) {
	t.Helper()
	ctx := t.Context()
	freeze := func() { t.Helper(); wantNone(t, p.replica.Freeze()) }
	thaw := func() { t.Helper(); wantNone(t, p.replica.Thaw()) }
	lock, err := patient.Acquire(ctx, locker.Request{Name: name + ".held", TTL: time.Minute})
	if err != nil {
		t.Fatalf("%s: acquire: %v", name, err)
	}
	if got := p.replica.MustCommand(t, "EXISTS", name+".held"); got != int64(1) {
		t.Errorf("%s: acquired, but the replica has no key", name)
	}
	wantNone(t, lock.Release(ctx))

	renewed := locker.Request{Name: name + ".renewed", TTL: time.Minute}
	for tries := 1; ; tries++ { // on a busy machine the replica may be too late for the hasty one
		if lock, err = hasty.Acquire(ctx, renewed); err == nil {
			break
		}
		if wantShortfall(t, err); tries == 20 {
			t.Fatalf("%s: acquire: %v", name, err)
		}
		p.wantFree(t, renewed.Name)
	}
	freeze()
	deadline := lock.Deadline()
	wantShortfall(t, lock.Renew(ctx, 0))
	if lock.Err() != nil || !lock.Deadline().Equal(deadline) {
		t.Errorf("%s: after a renewal: %v, Deadline moved by %v", name, lock.Err(), lock.Deadline().Sub(deadline))
	}
	_, err = locker.Resume(ctx, hasty, lock.Handle())
	wantShortfall(t, err)

	for _, fenced := range []bool{false, true} {
		free := fmt.Sprint(name, ".free.", fenced)
		_, err = hasty.Acquire(ctx, locker.Request{Name: free, TTL: time.Minute, Fenced: fenced})
		wantShortfall(t, err)
		p.wantFree(t, free)

		trap := p.proxy.Add(faultproxy.Rule{Match: faultproxy.Contains(free), Fault: faultproxy.Cut})
		_, err = hasty.Acquire(ctx, locker.Request{Name: free, TTL: time.Minute, Fenced: fenced})
		<-trap.Hit()
		wantShortfall(t, err)
		p.wantFree(t, free)
	}
	thaw()
	for deadline := time.Now().Add(10 * time.Second); lock.Renew(ctx, 0) != nil; { // the resume is undone, and the replica back
		if time.Now().After(deadline) {
			t.Fatalf("%s: no renewal succeeds", name)
		}
	}
	wantNone(t, lock.Release(ctx))

	trap := p.proxy.Add(faultproxy.Rule{Match: faultproxy.Contains(name + ".again"), Fault: faultproxy.Cut})
	lock, err = patient.Acquire(ctx, locker.Request{Name: name + ".again", TTL: time.Minute})
	<-trap.Hit()
	wantNone(t, err)
	wantNone(t, lock.Release(ctx))
}
