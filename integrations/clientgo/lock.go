package clientgo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Config configures a Lock. Name is required.
type Config struct {
	// Name is the name of the lock: 1 to 1024 bytes, as locker.Request.Name. The candidates of one
	// name elect one leader.
	Name string
	// Identity names this candidate to the others, as the owner and the note of the hold. It must
	// be unique among the candidates. At most 1024 bytes. Default: the host name and a random text.
	Identity string
	// RecordEvent is called with "became leader" and "stopped leading", for example to record an
	// event of a Pod. It delays the LeaderElector until it returns. Default: none.
	RecordEvent func(event string)
}

// stoppedLeading is the event of a LeaderElector at the end of its term.
const stoppedLeading = "stopped leading"

var errStopped = errors.New("the LeaderElector stopped without a release")

// Lock is a Holdfast lock as a LeaderElector uses it. It serves one LeaderElector at a time. Held
// and Lead may be called from any goroutine.
type Lock struct {
	locker locker.Locker
	cfg    Config
	turn   chan struct{} // has a value while the work of a Lead runs, and during a release

	mu   sync.Mutex
	term term
}

// term begins with an acquire, and ends when the LeaderElector has stopped.
type term struct {
	hold     *locker.Lock                      // it may have ended; nil: there is no term
	record   resourcelock.LeaderElectionRecord // of the last successful Create or Update
	stopping context.Context                   // ends when the LeaderElector stops
	stop     context.CancelFunc
}

var _ resourcelock.Interface = (*Lock)(nil)

// New returns a Lock over l. It sends nothing. A bare strategy is enough, such as
// strategies/single: a LeaderElector repeats its attempts and renews by itself. The chain of
// holdfast.New works too.
//
// The error matches locker.ErrInvalid if l is nil, a semaphore of more than one permit, or has no
// locker.Inspector, or if a field of cfg is out of its range.
func New(l locker.Locker, cfg Config) (*Lock, error) {
	if l == nil {
		return nil, &locker.InvalidError{What: "clientgo.New locker", Got: "nil", Allowed: "a Locker"}
	}
	if permits := lease.TraitsOf(l).Permits; permits > 1 {
		return nil, &locker.InvalidError{
			What: "clientgo.New locker", Got: fmt.Sprintf("a semaphore of %d permits", permits),
			Allowed: "a lock that one holds at a time",
		}
	}
	if _, ok := lease.Find[locker.Inspector](l); !ok {
		return nil, &locker.InvalidError{
			What: "clientgo.New locker", Got: "one without an Inspector",
			Allowed: "a strategy of Holdfast, with any middleware",
		}
	}
	if cfg.Identity == "" {
		host, _ := os.Hostname() // without it the random text is enough
		cfg.Identity = host + "_" + lease.NewToken()
	}
	if err := cfg.request(0).Validate(); err != nil {
		return nil, err
	}
	return &Lock{locker: l, cfg: cfg, turn: make(chan struct{}, 1)}, nil
}

// request returns the Request of a campaign.
func (c Config) request(ttl time.Duration) locker.Request {
	return locker.Request{Name: c.Name, TTL: ttl, NoWait: true, Fenced: true, Owner: c.Identity, Note: c.Identity}
}

// Lead returns an OnStartedLeading callback. It calls work with the number of the term: the fencing
// token of the hold. The ctx of work ends when the LeaderElector stops, and when the lease is lost;
// then context.Cause is a [locker.LostError]. work should return soon after that.
//
// The lock is released only once work has returned. If work has not returned within RenewDeadline,
// the lock is not released, and others wait for the end of the lease. Work of a later term begins
// when that of an earlier one has returned.
func (l *Lock) Lead(work func(ctx context.Context, term int64)) func(context.Context) {
	return func(ctx context.Context) {
		t := l.current()
		if t.hold == nil {
			return // it is over
		}
		ctx, cancel := t.hold.Context(ctx)
		defer cancel()
		defer context.AfterFunc(t.stopping, cancel)()
		if err := l.takeTurn(ctx); err != nil {
			return
		}
		defer l.passTurn()
		if ctx.Err() == nil {
			work(ctx, t.hold.Fence())
		}
	}
}

// takeTurn waits until no work runs and nothing is being released, or until ctx ends.
func (l *Lock) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	default: // the end of ctx matters only during a wait
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return lease.ContextErr(ctx)
	}
}

func (l *Lock) passTurn() { <-l.turn }

// Held returns the hold of the current term, and nil if there is no term. It is for programs that
// cannot use Lead: its Context ends when the lease is lost, possibly before the ctx of
// OnStartedLeading ends. The methods of a nil *locker.Lock can be called: its Context has ended,
// and its Fence is 0.
//
// Once the hold has ended, Held returns it until the LeaderElector has stopped. Do not release it:
// the LeaderElector does so.
func (l *Lock) Held() *locker.Lock { return l.current().hold }

func (l *Lock) current() term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

func (l *Lock) set(t term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = t
}

// Get implements resourcelock.Interface. It returns the record of this candidate without asking the
// server while the hold lasts, and else the record of the holder there. The error matches
// apierrors.IsNotFound if the lock is free.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	t := l.current()
	if t.hold.Err() == nil {
		return &t.record, raw(t.record), nil
	}
	state, err := locker.Inspect(ctx, l.locker, l.cfg.Name)
	lost := t.hold != nil // in this term; it must end before the next campaign
	switch {
	case lost && !state.Held: // or the server did not say
		state = locker.State{Held: true, Owner: l.cfg.Identity}
	case err != nil:
		return nil, nil, err
	case !state.Held:
		return nil, nil, &statusError{
			fmt.Errorf("lock %q: %w", l.cfg.Name, locker.ErrNotHeld), metav1.StatusReasonNotFound,
		}
	}
	record := recordOf(state, l.cfg.Identity, time.Now())
	return &record, raw(record), nil
}

// Create implements resourcelock.Interface. It acquires the lock. The error matches
// locker.ErrNotAcquired and apierrors.IsAlreadyExists if another holds it.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.put(ctx, record, metav1.StatusReasonAlreadyExists)
}

// Update implements resourcelock.Interface. It renews the hold of the term. Without one it acquires
// the lock; the error matches locker.ErrNotAcquired and apierrors.IsConflict if another holds it.
// If record has no HolderIdentity, Update waits for the work of Lead and releases the lock.
//
// If the hold was lost, Update returns a locker.LostError until the LeaderElector has stopped.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		return l.release(ctx)
	}
	return l.put(ctx, record, metav1.StatusReasonConflict)
}

// release ends the work of the term, waits for it, and releases the lock.
func (l *Lock) release(ctx context.Context) error {
	t := l.current()
	if t.hold == nil {
		return fmt.Errorf("lock %q: %w", l.cfg.Name, locker.ErrNotHeld)
	}
	t.stop()
	if err := l.takeTurn(ctx); err != nil {
		return fmt.Errorf("lock %q is not released, because the work under it still runs: %w", l.cfg.Name, err)
	}
	defer l.passTurn()
	return t.hold.Release(ctx)
}

// put renews the hold of the term, or acquires the lock and so begins a term.
func (l *Lock) put(ctx context.Context, record resourcelock.LeaderElectionRecord, refused metav1.StatusReason) error {
	ttl := time.Duration(record.LeaseDurationSeconds) * time.Second
	switch {
	case record.HolderIdentity != l.cfg.Identity:
		return &locker.InvalidError{
			What: "LeaderElectionRecord.HolderIdentity", Got: fmt.Sprintf("%.40q", record.HolderIdentity),
			Allowed: fmt.Sprintf("%.40q", l.cfg.Identity),
		}
	case ttl <= 0:
		return &locker.InvalidError{
			What: "LeaderElectionConfig.LeaseDuration", Got: "less than a second",
			Allowed: "1s or more; client-go passes on whole seconds",
		}
	}
	var err error
	t := l.current()
	if t.hold != nil {
		err = t.hold.Renew(ctx, ttl)
	} else {
		t.hold, err = l.locker.Acquire(ctx, l.cfg.request(ttl))
	}
	switch {
	case errors.Is(err, locker.ErrNotAcquired):
		return &statusError{err, refused}
	case err != nil:
		return err
	}
	if t.stop == nil {
		t.stopping, t.stop = context.WithCancel(context.Background())
	}
	t.record = record
	l.set(t)
	return nil
}

// RecordEvent implements resourcelock.Interface. A LeaderElector calls it when a term begins and
// when it has ended. A hold not released by then ends here too: its lease is no longer renewed.
func (l *Lock) RecordEvent(event string) {
	if t := l.current(); event == stoppedLeading && t.hold != nil {
		l.set(term{})
		t.stop()
		t.hold.Hold().MarkLost(errStopped) // unless it has ended before
	}
	if l.cfg.RecordEvent != nil {
		l.cfg.RecordEvent(event)
	}
}

// Identity implements resourcelock.Interface.
func (l *Lock) Identity() string { return l.cfg.Identity }

// Describe implements resourcelock.Interface. It returns the name of the lock.
func (l *Lock) Describe() string { return l.cfg.Name }
