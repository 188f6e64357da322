package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// acquires is middleware that acquires by f.
func acquires(f func(context.Context, locker.Request, locker.Locker) (*locker.Lock, error)) locker.Middleware {
	return func(inner locker.Locker) locker.Locker {
		return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) { return f(ctx, req, inner) })
	}
}

// corrects is middleware that changes requests silently.
func corrects(f func(*locker.Request)) locker.Middleware {
	return acquires(func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
		f(&req)
		return l.Acquire(ctx, req)
	})
}

// operates is Do of a lease with a flaw; l.Lease is without it.
type operates func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error)

// flawedLease does its operations by do. locker acquired it for req, as the lease of hold.
type flawedLease struct {
	lease.Lease
	hold   lease.Hold
	locker locker.Locker
	req    locker.Request
	do     operates
}

// Unwrap lets Handle find the token.
func (l *flawedLease) Unwrap() lease.Lease { return l.Lease }

func (l *flawedLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	return l.do(ctx, l, op)
}

// operating is middleware with do as Do of its leases.
func operating(do operates) locker.Middleware {
	return acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
		lock, err := inner.Acquire(ctx, req)
		if err == nil {
			h := lock.Hold()
			h.Wrap(func(l lease.Lease) lease.Lease { return &flawedLease{l, h, inner, req, do} })
		}
		return lock, err
	})
}

// converting does conversions by convert.
func converting(convert operates) operates {
	return func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		if op.Kind == lease.OpConvert {
			return convert(ctx, l, op)
		}
		return l.Lease.Do(ctx, op)
	}
}

// redated is middleware that changes the Deadline of Locks until they are renewed.
func redated(deadline func(ctx context.Context, lock *locker.Lock) time.Time) locker.Middleware {
	return acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
		lock, err := inner.Acquire(ctx, req)
		if err != nil {
			return nil, err
		}
		g := lock.Handle().Info()
		g.Deadline = deadline(ctx, lock)
		return locker.NewLock(ctx, g, lock.Hold().Lease()), nil
	})
}

func ownDeadline(_ context.Context, lock *locker.Lock) time.Time { return lock.Deadline() }

// fromReply is the Deadline of a lease counted from the answer.
func fromReply(_ context.Context, lock *locker.Lock) time.Time {
	return time.Now().Add(lock.TTL() - lock.TTL()/100)
}

// The mutants are strategies/single with middleware around it.
func TestMutantsAround(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	add := func(name string, around locker.Middleware, caught string) {
		m.add(name, &Harness{Dial: plain, Around: around}, sound, caught)
	}
	cut := func(text string) string { return text[:min(len(text), 1024)] }
	add("names in lower case", corrects(func(req *locker.Request) { req.Name = strings.ToLower(req.Name) }),
		"different names are different locks")
	add("a name that is cut", corrects(func(req *locker.Request) { req.Name = cut(req.Name) }), "bad names are refused")
	add("a request that is corrected", corrects(func(req *locker.Request) {
		req.TTL, req.MaxWait = min(max(req.TTL, 0), locker.MaxTTL), max(req.MaxWait, 0)
		req.Owner, req.Note = cut(req.Owner), cut(req.Note)
	}), "bad requests are refused")
	add("a TTL in whole seconds", corrects(func(req *locker.Request) { req.TTL = req.TTL.Truncate(time.Second) }),
		"the TTL is set as asked")
	add("an acquire that outlives its context",
		acquires(func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
			return l.Acquire(context.WithoutCancel(ctx), req)
		}), "an ended context acquires nothing")
	add("a refusal that names nobody", acquires(anonymous), "a refusal names the holder")
	redate := func(name string, deadline func(context.Context, *locker.Lock) time.Time, caught ...string) {
		dated := &Harness{Dial: plain, Around: redated(ownDeadline)}
		m.add(name, &Harness{Dial: plain, Around: redated(deadline)}, dated, caught...)
	}
	redate("a lease that counts from the answer", fromReply,
		"a slow reply is waited for", "an acquire whose reply is lost succeeds")
	redate("a lock without a Deadline", func(context.Context, *locker.Lock) time.Time { return time.Time{} },
		"Done closes with the server frozen", "a lease ends by itself", "a lock past its Deadline is lost",
		"Do ends its work with the lease")
	add("an undo that wakes", operating(releasing), "an undone acquire wakes nobody")
	add("a conversion that is not supported and succeeds",
		operating(converting(func(context.Context, *flawedLease, lease.Op) (lease.Result, error) {
			return lease.Result{}, nil
		})), "bad arguments leave a hold alone")
	add("the cause of a context taken for a loss",
		operating(func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
			if op.Kind == lease.OpRenew && ctx.Err() != nil {
				return lease.Result{}, context.Cause(ctx)
			}
			return l.Lease.Do(ctx, op)
		}), "the loss of one lock is not taken for that of another")
	m.add("a prefix before each key", &Harness{Dial: plain, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
		return single.New(drv, single.Config{Prefix: "lock:", AttemptTimeout: bound.Attempt})
	}}, sound, "names are keys")
	m.add("a fence counter in a slot of its own", &Harness{Dial: dialEval(
		func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			if len(keys) > 1 && strings.HasSuffix(keys[1], sibling.FenceSuffix) {
				keys = append([]string{keys[0], keys[0] + sibling.FenceSuffix}, keys[2:]...)
			}
			return d.Eval(ctx, s, keys, args)
		})}, sound, "names are keys")
	m.add("a release that waits as long as it likes", &Harness{
		Dial: plain, Can: Capabilities{ReleaseTimeout: true}, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			return single.New(drv, single.Config{AttemptTimeout: bound.Attempt})
		},
	}, sound, "a release waits for no longer than its timeout")
	m.convict()
}
