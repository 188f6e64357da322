package clientgo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/holdfast-go/holdfast/integrations/clientgo"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		locker locker.Locker
		cfg    clientgo.Config
	}{
		"no Locker":            {nil, clientgo.Config{Name: "a"}},
		"a semaphore":          {lockertest.NewSemaphore(2), clientgo.Config{Name: "a"}},
		"no Inspector":         {locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return nil, nil }), clientgo.Config{Name: "a"}},
		"no name":              {lockertest.New(), clientgo.Config{}},
		"a name of the queue":  {lockertest.New(), clientgo.Config{Name: "a:waiters"}},
		"an identity too long": {lockertest.New(), clientgo.Config{Name: "a", Identity: strings.Repeat("x", 1025)}},
	} {
		check.Error(t, name, check.ErrOf(clientgo.New(tt.locker, tt.cfg)), locker.ErrInvalid)
	}
}

func TestDefaultIdentity(t *testing.T) {
	t.Parallel()
	a, b := newLock(t, lockertest.New(), ""), newLock(t, lockertest.New(), "")
	if a.Identity() == b.Identity() || len(a.Identity()) < 22 || a.Describe() != "controller" {
		t.Errorf("the identities are %q and %q, the description %q", a.Identity(), b.Identity(), a.Describe())
	}
}

// record is the record of a LeaderElector with a LeaseDuration of a minute, for Create and Update.
func record(identity string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: identity, LeaseDurationSeconds: 60}
}

// Each answer has the errors expected by client-go and by users of Holdfast.
func TestAnswers(t *testing.T) {
	t.Parallel()
	ctx, l := t.Context(), lockertest.New()
	a, b := newLock(t, l, "a"), newLock(t, l, "b")
	is := func(what string, err error, want error, status func(error) bool) {
		t.Helper()
		if !errors.Is(err, want) || status != nil && !status(err) {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	sees := func(who *clientgo.Lock, holder string) {
		t.Helper()
		got, raw, err := who.Get(ctx)
		if err != nil || got.HolderIdentity != holder || len(raw) == 0 {
			t.Errorf("%s sees %+v, %v; want the holder %q", who.Identity(), got, err, holder)
		}
	}
	_, _, err := a.Get(ctx)
	is("Get of a free lock", err, locker.ErrNotHeld, apierrors.IsNotFound)
	is("Update without a hold, to release", a.Update(ctx, record("")), locker.ErrNotHeld, nil)
	is("Create for another", a.Create(ctx, record("b")), locker.ErrInvalid, nil)
	is("Create for less than a second", a.Create(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "a"}), locker.ErrInvalid, nil)
	is("Create", a.Create(ctx, record("a")), nil, nil)
	sees(a, "a")
	sees(b, "a")
	is("Create of a held lock", b.Create(ctx, record("b")), locker.ErrNotAcquired, apierrors.IsAlreadyExists)
	is("Update of a held lock", b.Update(ctx, record("b")), locker.ErrNotAcquired, apierrors.IsConflict)
	is("Update by the holder", a.Update(ctx, record("a")), nil, nil)
	if b.Held() != nil || a.Held().Owner() != "a" || a.Held().Fence() != 1 || a.Held().TTL() != time.Minute {
		t.Errorf("a holds %v, b holds %v", a.Held(), b.Held())
	}

	is("Update to release", a.Update(ctx, record("")), nil, nil)
	sees(a, "") // nobody leads, and the term is not over yet
	is("Update after the release", a.Update(ctx, record("a")), locker.ErrReleased, nil)
	is("Create by another", b.Create(ctx, record("b")), nil, nil)
	sees(a, "b")
	a.RecordEvent("stopped leading")
	is("Update in the next campaign", a.Update(ctx, record("a")), locker.ErrNotAcquired, apierrors.IsConflict)
	if a.Held() != nil || b.Held().Fence() != 2 {
		t.Errorf("a holds %v, b holds %v", a.Held(), b.Held())
	}
}

// The error of a Get is not taken for a free lock.
func TestOutage(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	l.SetOutage(lockertest.Refused)
	if _, _, err := newLock(t, l, "a").Get(t.Context()); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("the error is %v", err)
	}
}

// A lost hold ends the term: it is not acquired again before the LeaderElector has stopped.
func TestLostHoldEndsTheTerm(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]func(*lockertest.Locker){
		"the lock is free":       func(*lockertest.Locker) {},
		"the server is silent":   func(l *lockertest.Locker) { l.SetOutage(lockertest.Refused) },
		"it has the owner's key": func(l *lockertest.Locker) { l.Hold(locker.Request{Name: "controller", Owner: "a"}) },
	}, func(t *testing.T, after func(*lockertest.Locker)) {
		ctx, l := t.Context(), lockertest.New()
		a := newLock(t, l, "a")
		check.Must(t, a.Create(ctx, record("a")))
		l.Forget("controller")
		check.Is(t, a.Update(ctx, record("a")), locker.ErrLost)
		after(l)
		if got, _, err := a.Get(ctx); err != nil || got.HolderIdentity != "" {
			t.Errorf("Get returns %+v, %v", got, err)
		}
		if err := a.Update(ctx, record("a")); !errors.Is(err, locker.ErrLost) || a.Held().Err() == nil {
			t.Errorf("the error of Update is %v, the hold %v", err, a.Held())
		}
	})
}

// A release is sent although its ctx has ended, if there is no work to wait for.
func TestReleaseWithoutTime(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		a := newLock(t, l, "a")
		check.Must(t, a.Create(t.Context(), record("a")))
		check.Must(t, a.Update(ended, record("")))
	}
}

func TestRecordEvent(t *testing.T) {
	t.Parallel()
	var events []string
	a := locker.Must(clientgo.New(lockertest.New(), clientgo.Config{Name: "a", RecordEvent: func(e string) { events = append(events, e) }}))
	a.RecordEvent("became leader")
	a.RecordEvent("stopped leading")
	check.Equal(t, "the events", strings.Join(events, ", "), "became leader, stopped leading")
}
