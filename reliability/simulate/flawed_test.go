//realtime:ok a Locker for simulations in bubbles

package simulate_test

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/reliability/workload"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// flaws are flawed locks, by name.
var flaws = map[string]workload.Opener{
	"delete":  func(drv driver.Driver) (locker.Locker, error) { return flaw{drv, del, false, true}, nil },
	"forever": func(drv driver.Driver) (locker.Locker, error) { return flaw{drv, compareAndDelete, true, true}, nil },
	"drift":   func(drv driver.Driver) (locker.Locker, error) { return flaw{drv, compareAndDelete, false, false}, nil },
	sharing:   newShares,
	tooMany: func(drv driver.Driver) (locker.Locker, error) {
		return semaphore.New(drv, semaphore.Config{Permits: workload.Permits + 1})
	},
	early: singleWith(func(l lease.Lease) lease.Lease { return releasesEarly{l} }),

	sameFence:  newSameFence,
	wholeLease: newWholeLease,
	twoHolders: newTwoHolders,
	unnoticed:  newUnnoticed,
}

const (
	tooMany = "too-many" // a semaphore grants a permit too many
	early   = "early"    // a release frees the name before MinHold has passed
	sharing = "sharing"  // a resume keeps the token
)

// singleWith returns an opener of single with wrapped leases.
func singleWith(wrap func(lease.Lease) lease.Lease) workload.Opener {
	return func(drv driver.Driver) (locker.Locker, error) {
		l, err := single.New(drv, single.Config{})
		return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if err == nil {
				lock.Hold().Wrap(wrap)
			}
			return lock, err
		}), err
	}
}

// releasesEarly is a lease whose release ignores MinHold.
type releasesEarly struct{ lease.Lease }

// Do implements lease.Lease.
func (l releasesEarly) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	op.KeepUntil = time.Time{}
	return l.Lease.Do(ctx, op)
}

var (
	del              = driver.NewScript(`return redis.call('DEL', KEYS[1])`)
	compareAndDelete = driver.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	setnx            = driver.NewScript(`return redis.call('SETNX', KEYS[1], ARGV[1])`)
	expire           = driver.NewScript(`return redis.call('PEXPIRE', KEYS[1], ARGV[1])`)
	extend           = driver.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
)

// patience is a flawed lock's wait for an answer. The wait is no flaw.
const patience = 3 * time.Second

// flaw is a lock with a common mistake.
type flaw struct {
	drv    driver.Driver
	end    *driver.Script // its release
	twice  bool           // SETNX, then EXPIRE
	before bool           // its lease counts from before the send, less the drift; else from the answer
}

// Acquire implements locker.Locker.
func (f flaw) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := f.acquire(ctx, req)
	if err != nil {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: err}
	}
	return lock, nil
}

func (f flaw) acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	token := lease.NewToken()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	from := time.Now()
	set, err := f.set(ctx, req, token)
	switch {
	case err != nil:
		return nil, err
	case !set:
		return nil, &locker.ContentionError{Name: req.Name}
	}
	if !f.before {
		from = time.Now()
	}
	g := lease.HoldInfo{Name: req.Name, Owner: req.Owner, Token: token, TTL: req.TTL, Deadline: f.deadline(from, req.TTL)}
	return locker.NewLock(ctx, g, flawedLease{f, req.Name, token}), nil
}

func (f flaw) set(ctx context.Context, req locker.Request, token string) (bool, error) {
	if !f.twice {
		return f.drv.SetNX(ctx, req.Name, token, req.TTL)
	}
	reply, err := f.drv.Eval(ctx, setnx, []string{req.Name}, []string{token})
	if err != nil {
		return false, err
	}
	if n, err := reply.Int(0); n != 1 || err != nil {
		return false, err
	}
	_, err = f.drv.Eval(ctx, expire, []string{req.Name}, []string{ms(req.TTL)})
	return true, err
}

func (f flaw) deadline(from time.Time, ttl time.Duration) time.Time {
	if f.before {
		ttl -= ttl/100 + 2*time.Millisecond
	}
	return from.Add(ttl)
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

type flawedLease struct {
	flaw
	name, token string
}

// Do implements lease.Lease.
func (l flawedLease) Do(ctx context.Context, op lease.Op) (result lease.Result, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	from := time.Now()
	var reply driver.Reply
	switch op.Kind {
	case lease.OpRenew:
		reply, err = l.drv.Eval(ctx, extend, []string{l.name}, []string{l.token, ms(op.TTL)})
		if !l.before {
			from = time.Now()
		}
		result.Deadline = l.deadline(from, op.TTL)
	case lease.OpRelease:
		reply, err = l.drv.Eval(ctx, l.end, []string{l.name}, []string{l.token})
	default:
		return result, errors.ErrUnsupported
	}
	if err != nil {
		return result, err
	}
	if n, err := reply.Int(0); n != 1 || err != nil {
		return result, errors.Join(locker.ErrLost, err)
	}
	return result, nil
}

func newShares(drv driver.Driver) (locker.Locker, error) {
	l, err := single.New(drv, single.Config{})
	return shares{l, flaw{drv, compareAndDelete, false, true}}, err
}

// shares is a lock whose resumed holds have the token of the old ones: these still work.
type shares struct {
	*single.Locker
	flaw flaw
}

// Acquire implements locker.Locker.
func (s shares) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if req.Resume.IsZero() {
		return s.Locker.Acquire(ctx, req)
	}
	g := req.Resume.Info()
	l := flawedLease{s.flaw, g.Name, g.Token}
	result, err := l.Do(ctx, lease.Op{Kind: lease.OpRenew, TTL: g.TTL})
	if errors.Is(err, locker.ErrLost) {
		err = locker.ErrNotHeld
	}
	if err == nil && !time.Now().Before(result.Deadline) {
		err = locker.ErrUnknownOutcome
	}
	if err != nil {
		return nil, &locker.OpError{Op: "resume", Name: g.Name, Err: err}
	}
	g.Deadline, g.Fence = result.Deadline, 0
	return locker.NewLock(ctx, g, l), nil
}
