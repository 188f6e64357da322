package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

const (
	defaultMinHold = 500 * time.Millisecond
	// How long Lock tries to get an answer: half of MinHold, within these limits.
	minTry, maxTry = time.Second, 30 * time.Second
	retryPause     = 100 * time.Millisecond
)

// Config configures a [Locker]. The zero Config works, for jobs with ticks a second or more apart.
type Config struct {
	// Prefix precedes the job's name in the name of the lock. Set one if other programs lock names
	// at the same server. Default: "".
	Prefix string
	// MinHold is the minimum time from a run's begin for which the job's name stays taken, even if the
	// run ends earlier. Set it to more than twice the difference of the replicas' clocks, so that a
	// tick runs once, and to less than the time between two ticks by that much, so that no tick is
	// skipped. If the ticks differ from replica to replica (a DurationJob without WithStartAt), set it
	// to nine tenths of the duration. Default: 500 ms. With 1 ms there is practically none.
	MinHold time.Duration
	// TTL is how long the lease lasts unless it is renewed: MinHold or longer. If a replica dies
	// during a run, no other replica runs the job until its lease has ended. Default: the strategy's,
	// 30 s, or MinHold if longer.
	TTL time.Duration
	// Fenced asks for a fencing token too: that of the lock from [Locker.Held].
	Fenced bool
	// Note describes this replica to others, in the errors of refused replicas. At most 1024 bytes.
	// Default: "".
	Note string
}

// Locker is a gocron.Locker: of all replicas that reach a job's tick, one runs it. Give it to
// gocron.WithDistributedLocker or, for jobs with another MinHold, to
// gocron.WithDistributedJobLocker. It is safe for concurrent use and needs no closing.
type Locker struct {
	locker locker.Locker
	prefix string
	req    locker.Request

	mu   sync.Mutex
	runs map[string]*locker.Lock // by key, until unlocked; nil: being acquired
}

// New returns a Locker over l. Use one that renews its locks, as holdfast.New's; over a bare
// strategy a lock is lost one TTL after it was acquired. The error matches locker.ErrInvalid if l
// is nil or a semaphore of more than one permit, or if a field of cfg is out of its range.
func New(l locker.Locker, cfg Config) (*Locker, error) {
	if l == nil {
		return nil, &locker.InvalidError{What: "gocronlock.New locker", Got: "nil", Allowed: "a Locker"}
	}
	if permits := lease.TraitsOf(l).Permits; permits > 1 {
		return nil, &locker.InvalidError{
			What: "gocronlock.New locker", Got: fmt.Sprintf("a semaphore of %d permits", permits),
			Allowed: "a lock that one holds at a time",
		}
	}
	if cfg.MinHold == 0 {
		cfg.MinHold = defaultMinHold
	}
	req := locker.Request{
		Name: cfg.Prefix + "job", TTL: cfg.TTL, MinHold: cfg.MinHold, NoWait: true, Fenced: cfg.Fenced, Note: cfg.Note,
	}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	return &Locker{locker: l, prefix: cfg.Prefix, req: req, runs: map[string]*locker.Lock{}}, nil
}

// Lock acquires the lock of key, the name of a job. It does not wait for another holder. In an
// outage it tries for half of MinHold, but for 1 s at least and for 30 s at most; ctx may end it
// sooner. A lock acquired later is released in the background.
//
// If Lock returns an error, gocron skips the run and calls its AfterLockError listeners with the
// error, a [locker.OpError]. It matches locker.ErrNotAcquired if another replica runs the job or
// has run it at this tick, or if an earlier run of this Locker has not ended. After any other
// error, the server could not be asked or refused the command.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	req := l.req
	req.Name = l.prefix + key
	req.Owner = lease.NewToken() // with the owner of ctx, strategies/reentrant would let two runs begin
	if ctx == nil {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: &locker.InvalidError{
			What: "Lock ctx", Got: "nil",
			Allowed: "a context; context.Background() where there is none",
		}}
	}
	if !l.begin(key) {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name,
			Err: fmt.Errorf("%w: an earlier run in this process has not ended", locker.ErrNotAcquired)}
	}
	r := &run{locker: l, key: key}
	defer func() {
		if r.lock == nil { // also if the Locker panics
			l.end(key)
		}
	}()
	lock, err := acquire(ctx, l.locker, req)
	if err != nil {
		return nil, err
	}
	r.lock = lock
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[key] = lock
	return r, nil
}

// acquire makes attempts until one is answered. Replicas may reach a tick at different times, and
// it must run once: no attempt may be executed after the first replica's MinHold.
func acquire(ctx context.Context, l locker.Locker, req locker.Request) (*locker.Lock, error) {
	end := time.Now().Add(min(max(req.MinHold/2, minTry), maxTry))
	for {
		req.MaxWait = max(time.Until(end), locker.MinTTL)
		lock, err := l.Acquire(ctx, req)
		if err == nil || errors.Is(err, locker.ErrNotAcquired) || !driver.Transient(err) || time.Until(end) <= retryPause {
			return lock, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Held returns the lock of the present run of key begun by this Locker, or nil if there is none. A
// run calls it first of all: gocron does not tell a job of the loss of its lock, but the ctx of
// Held(key).Context(ctx) ends then. It works with a nil Lock too; that ctx has ended already.
// gocron calls AfterJobRuns listeners before Unlock. In one, Held(key).Err() is nil if the run kept
// its lock until its end.
func (l *Locker) Held(key string) *locker.Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[key]
}

// begin reports whether no run of key is in progress, and records a new one.
func (l *Locker) begin(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, running := l.runs[key]; running {
		return false
	}
	l.runs[key] = nil
	return true
}

func (l *Locker) end(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, key)
}

// run is the gocron.Lock of one run.
type run struct {
	locker *Locker
	key    string
	lock   *locker.Lock
	once   sync.Once
}

// Unlock releases the lock. The job's name stays taken until MinHold has passed. gocron calls it
// when the run has ended, and drops its error; the end of ctx does not stop it. The errors are
// those of [locker.Lock.Release]; after locker.ErrLost another replica may have begun a run
// meanwhile.
func (r *run) Unlock(ctx context.Context) error {
	defer r.once.Do(func() { r.locker.end(r.key) })
	return r.lock.Release(ctx)
}
