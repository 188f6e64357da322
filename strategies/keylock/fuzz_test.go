package keylock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// hostile is a driver over a stream of RESP replies: each command gets the next one, whatever is
// sent. An error reply is a ServerError. A reply outside the form of a script is an error, as from
// any adapter. At the end of the stream the server is gone.
type hostile struct {
	adapter.Base
	replies *resp.Reader
	last    driver.Reply // to the last script
	lastErr error
	set     bool // SET was answered with OK last
	open    bool // a reply was lost
	sent    int
	behind  []func(context.Context)
}

func (d *hostile) next() (any, error) {
	d.sent++
	v, err := d.replies.Read()
	if err != nil {
		return nil, driver.NotSent(io.EOF)
	}
	switch v := v.Any().(type) {
	case resp.Error:
		return nil, &driver.ServerError{Text: string(v), Err: v}
	case float64:
		return nil, errCut
	default:
		return v, nil
	}
}

func (d *hostile) SetNX(context.Context, string, string, time.Duration) (bool, error) {
	d.last, d.lastErr = driver.Reply{}, nil
	v, err := d.next()
	d.set = err == nil && v == "OK"
	d.open = d.open || err != nil && !driver.NotExecuted(err)
	return d.set, err
}

func (d *hostile) Eval(context.Context, *driver.Script, []string, []string) (driver.Reply, error) {
	d.set = false
	v, err := d.next()
	if err == nil {
		d.last, err = driver.NewReply(v)
	}
	if d.lastErr = err; err != nil {
		d.last = driver.Reply{}
		d.open = d.open || !driver.NotExecuted(err)
	}
	return d.last, err
}

// Background defers f to the end, so that each reply goes to a command of the test.
func (d *hostile) Background(f func(context.Context)) bool {
	d.behind = append(d.behind, f)
	return true
}

func (d *hostile) Subscribe(context.Context, string) (driver.Subscription, error) {
	return nil, errors.ErrUnsupported
}

func (d *hostile) Info() driver.Info { return driver.Info{Client: "hostile"} }
func (d *hostile) Close() error      { return d.Shutdown(nil) }

var errCut = errors.New("connection cut")

// is reports whether the last reply begins with one of these numbers.
func (d *hostile) is(status ...int64) bool {
	got, err := d.last.Int(0)
	return d.lastErr == nil && err == nil && slices.Contains(status, got)
}

// text and number report whether the last reply has such a value at i.
func (d *hostile) text(i int) bool   { _, err := d.last.Text(i); return err == nil }
func (d *hostile) number(i int) bool { _, err := d.last.Int(i); return err == nil }

// fence is the fencing token in the last reply, -1 without one.
func (d *hostile) fence() int64 {
	text, _ := d.last.Text(1)
	if fence, err := strconv.ParseInt(text, 10, 64); err == nil {
		return max(fence, -1)
	}
	return -1
}

// conversions is the hold's number of conversions by the last reply, -1 without one.
func (d *hostile) conversions() int64 {
	n, err := d.last.Int(2)
	if err != nil {
		return -1
	}
	return n
}

// Whatever a server answers, nothing panics or hangs, and a caller can tell every error. Nothing is
// held, renewed, converted, raised, seen or released except by a reply that says so.
func FuzzReplies(f *testing.F) {
	const (
		grant   = "*3\r\n:1\r\n$1\r\n5\r\n:0\r\n"
		plain   = "*3\r\n:1\r\n$1\r\n0\r\n:0\r\n"
		yes, no = ":1\r\n", ":0\r\n"
		refusal = "*4\r\n:0\r\n$1\r\no\r\n$1\r\nn\r\n:7\r\n"
		cut     = ",1\r\n"
	)
	// Numbers outside every script's replies, and fencing tokens where none or another is due.
	senseless := []struct {
		flags        uint8
		ops, replies string
	}{
		{1, "", plain}, {0, "", grant}, {1, "", "*3\r\n:1\r\n$1\r\n5\r\n:-1\r\n"}, {1, "", grant + ":4\r\n"},
		{1, "r", grant + ":2\r\n"}, {1, "f", grant + "*2\r\n:2\r\n$1\r\n9\r\n"}, {1, "f", grant + "*2\r\n:1\r\n$1\r\n5\r\n"},
		{3, "u", grant + "*2\r\n:1\r\n$1\r\n0\r\n"}, {1, "i", grant + "*2\r\n:1\r\n$1\r\nv\r\n"},
		{1, "i", grant + "*5\r\n:1\r\n$1\r\no\r\n$0\r\n\r\n:1\r\n:1\r\n"},
		{1, "i", grant + "*6\r\n:2\r\n$1\r\no\r\n$0\r\n\r\n:1\r\n:1\r\n:0\r\n"},
		{1, "i", grant + "*6\r\n:1\r\n$1\r\no\r\n$0\r\n\r\n:1\r\n:-1\r\n:0\r\n"},
	}
	for strategy := range uint8(len(strategies)) {
		for _, s := range senseless {
			f.Add(strategy, s.flags, s.ops, []byte(s.replies))
		}
		f.Add(strategy, uint8(0), "", []byte(refusal))
		f.Add(strategy, uint8(0), "", []byte("*3\r\n:0\r\n$1\r\nx\r\n:-1\r\n"))
		f.Add(strategy, uint8(0), "r", []byte("+OK\r\n"+yes+yes))
		f.Add(strategy, uint8(1), "rfirud", []byte(grant+yes+grant+"*6\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n:9\r\n:1\r\n:1\r\n"+yes+plain+grant+yes))
		f.Add(strategy, uint8(2), "ud", []byte(plain+plain+refusal+plain+no))
		f.Add(strategy, uint8(4), "i", []byte(plain+"*5\r\n:1\r\n$1\r\nx\r\n:-1\r\n:1\r\n:0\r\n"+yes))
		f.Add(strategy, uint8(0), "", []byte(plain+":2\r\n"))
		f.Add(strategy, uint8(1), "", []byte(grant+":3\r\n"))
		f.Add(strategy, uint8(0), "", []byte(plain+":4\r\n"))
		f.Add(strategy, uint8(5), "rr", []byte(cut+cut+grant+cut+yes+":2\r\n"+cut+no))
		f.Add(strategy, uint8(1), "fri", []byte(grant+"-ERR no\r\n-WRONGTYPE no\r\n*2\r\n:-1\r\n$1\r\nx\r\n-OOM no\r\n-MOVED 1 x\r\n-LOADING\r\n"))
	}
	addSemaphoreReplies(f, uint8(len(strategies)-1))
	f.Fuzz(func(t *testing.T, strategy, flags uint8, ops string, stream []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := &hostile{replies: resp.NewReader(bytes.NewReader(stream))}
			s := strategies[int(strategy)%len(strategies)]
			v := &victim{T: t, hostile: d, l: locker.Must(s.new(d, settings{})), rw: s.name == "rwhash"}
			if v.hash = s.name != "single" && s.name != "semaphore"; s.name == "semaphore" {
				v.permits = 1
			}
			v.run(flags, ops)
		})
	})
}

// addSemaphoreReplies adds the replies of a semaphore, with its limit and its permits.
func addSemaphoreReplies(f *testing.F, strategy uint8) {
	const (
		grant   = "*2\r\n:1\r\n$1\r\n5\r\n"
		plain   = "*2\r\n:1\r\n$1\r\n0\r\n"
		again   = "*2\r\n:2\r\n$1\r\n0\r\n"
		yes, no = ":1\r\n", ":0\r\n"
		cut     = ",1\r\n"
		value   = "0123456789abcdefABCDE_ 2 1:o"
		refusal = "*4\r\n:0\r\n$28\r\n" + value + "\r\n:7\r\n:5\r\n"
		kept    = "*4\r\n:0\r\n$29\r\n~" + value + "\r\n:7\r\n:5\r\n"
		first   = "*4\r\n:0\r\n$1\r\n~\r\n:-1\r\n:2000\r\n"
		other   = "*2\r\n:5\r\n:4\r\n"
		state   = "*7\r\n:1\r\n$28\r\n" + value + "\r\n:9\r\n:1\r\n:0\r\n:3\r\n:2\r\n"
		left    = "*7\r\n:1\r\n$29\r\n~" + value + "\r\n:9\r\n:0\r\n:0\r\n:3\r\n:4\r\n"
	)
	for _, reply := range []string{refusal, kept, first, other, plain + no, plain + ":2\r\n", plain + ":5\r\n", again + yes, "*1\r\n:5\r\n", "*2\r\n:5\r\n$1\r\n4\r\n"} {
		f.Add(strategy, uint8(0), "", []byte(reply))
	}
	f.Add(strategy, uint8(8), "", []byte("*1\r\n:0\r\n"+plain+yes))
	f.Add(strategy, uint8(8), "i", []byte(state+plain+left+yes))
	f.Add(strategy, uint8(1), "rfiud", []byte(grant+yes+grant+state+yes))
	f.Add(strategy, uint8(4), "i", []byte(plain+"*5\r\n:1\r\n$1\r\nx\r\n:-1\r\n:1\r\n:0\r\n"+yes))
	f.Add(strategy, uint8(16), "r", []byte(plain+yes+yes))
	f.Add(strategy, uint8(17), "rr", []byte(cut+grant+cut+yes+cut+cut+no))
	f.Add(strategy, uint8(5), "rr", []byte(cut+cut+grant+cut+yes+":2\r\n"+cut+no))
	f.Add(strategy, uint8(1), "fri", []byte(grant+"-ERR no\r\n-WRONGTYPE no\r\n*2\r\n:-1\r\n$1\r\nx\r\n-OOM no\r\n-MOVED 1 x\r\n-LOADING\r\n"))
}

// victim is a strategy over a hostile server.
type victim struct {
	*testing.T
	*hostile
	l        locker.Locker
	hash, rw bool
	permits  int64 // the limit of a semaphore
	fenced   bool
	lock     *locker.Lock
	lease    lease.Lease
}

// seesPermits reports whether Inspect returned the last reply's permits.
func (v *victim) seesPermits(state locker.State) bool {
	if !state.Held {
		return v.is(0) && state.Holds == 0 && int64(state.Permits) == v.permits && state.Free == state.Permits
	}
	holds, err1 := v.last.Int(3)
	limit, err2 := v.last.Int(5)
	used, err3 := v.last.Int(6)
	return errors.Join(err1, err2, err3) == nil && v.is(1) && v.text(1) && v.number(2) && v.number(4) && int64(state.Holds) == holds &&
		int64(state.Permits) == limit && int64(state.Free) == max(limit-used, 0)
}

// run acquires or resumes, performs ops on the lock, releases, and cleans up.
func (v *victim) run(flags uint8, ops string) {
	v.use(flags, ops[:min(len(ops), 8)])
	for len(v.behind) > 0 {
		clean := v.behind[0]
		v.behind = v.behind[1:]
		clean(v.Context())
	}
}

func (v *victim) use(flags uint8, ops string) {
	v.fenced = flags&1 != 0
	req := locker.Request{Name: name, Fenced: v.fenced}
	if v.rw && flags&2 != 0 {
		req.Mode = locker.Shared
	}
	if flags&4 != 0 {
		token := lease.NewToken()
		if v.permits > 0 {
			token += " 1 0:"
		}
		req.Resume = locker.NewLock(context.Background(), lease.HoldInfo{Name: name, Owner: "o", Token: token, Mode: req.Mode}, nil).Handle()
	} else if flags&16 != 0 {
		req.MinHold = time.Second
	}
	if flags&8 != 0 {
		v.inspect()
	}
	v.acquire(req)
	if v.lock == nil {
		return
	}
	for _, op := range ops {
		v.sent, v.lastErr, v.last, v.set = 0, nil, driver.Reply{}, false
		v.do(op)
	}
	v.release()
}

func (v *victim) acquire(req locker.Request) {
	lock, err := v.l.Acquire(v.Context(), req)
	if v.known("acquire", err); err != nil {
		if lock != nil {
			v.Errorf("a lock beside %v", err)
		}
		return
	}
	v.lock = lock
	v.lease = leaseOf(lock)
	switch fence := v.fence(); {
	case v.set && !v.fenced && req.Resume.IsZero() && lock.Fence() == 0:
	case !v.is(1, 2), fence < 0, fence > 0 != v.fenced, lock.Fence() != fence, v.rw && v.conversions() < 0:
		v.Errorf("held, with fence %d, by the reply %+v", lock.Fence(), v.last)
	}
}

func (v *victim) do(op rune) {
	deadline, mode, fence := v.lock.Deadline(), v.lock.Mode(), v.lock.Fence()
	var err error
	switch op {
	case 'r':
		if err = v.lock.Renew(v.Context(), time.Hour); err == nil && !v.is(1) {
			v.Errorf("renewed by the reply %+v", v.last)
		}
	case 'u', 'd':
		to, convert := locker.Exclusive, v.lock.Upgrade
		if op == 'd' {
			to, convert = locker.Shared, v.lock.Downgrade
		}
		if err = convert(v.Context()); err == nil && (v.lock.Mode() != to || v.sent > 0 && (!v.is(1, 2) || v.fence() < 0)) {
			v.Errorf("now %v, by the reply %+v", v.lock.Mode(), v.last)
		}
		if err == nil && v.sent > 0 && to == locker.Exclusive && v.fence() > 0 != v.fenced {
			v.Errorf("upgraded, fenced: %v, by the reply %+v", v.fenced, v.last)
		}
		if err != nil && v.lock.Mode() != mode && (v.lock.Mode() == locker.Exclusive || !errors.Is(err, locker.ErrUnknownOutcome)) {
			v.Errorf("now %v, in spite of %v", v.lock.Mode(), err)
		}
	case 'f':
		var result lease.Result
		result, err = v.lease.Do(v.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: fence + 1})
		if err == nil && (!v.is(1) || v.fence() <= fence || result.Fence != v.fence()) {
			v.Errorf("raised over %d, to %d, by the reply %+v", fence, result.Fence, v.last)
		}
		return
	case 'i':
		v.inspect()
	}
	v.known(string(op), err)
	if err != nil && !v.lock.Deadline().Equal(deadline) {
		v.Errorf("the Deadline went from %v to %v in spite of %v", deadline, v.lock.Deadline(), err)
	}
}

func (v *victim) inspect() {
	state, err := v.l.(locker.Inspector).Inspect(v.Context(), name)
	v.known("inspect", err)
	var ok bool
	switch {
	case err != nil:
		ok = !state.Held
	case v.permits > 0:
		ok = v.seesPermits(state)
	case v.hash && state.Held:
		holds, _ := v.last.Int(4)
		ok = v.is(1) && v.text(1) && v.text(2) && v.number(3) && holds >= 0 && v.number(5)
	case state.Held:
		holds, _ := v.last.Int(3)
		ok = v.is(1) && v.text(1) && v.number(2) && holds >= 0 && v.number(4)
	default:
		ok = v.is(0)
	}
	if !ok || state.Left < 0 || v.permits == 0 && !state.Held && state.Holds > 0 {
		v.Errorf("%+v is seen in the reply %+v, %v", state, v.last, err)
	}
}

func (v *victim) release() {
	lost := v.lock.Err()
	v.open = false
	err := v.lock.Release(v.Context())
	v.known("release", err)
	gone := v.open && (v.is(0) || driver.CodeOf(v.lastErr) == "WRONGTYPE") // or somebody else's by now
	if err == nil && (lost != nil || !v.is(1, 2, 3) && !gone) {
		v.Errorf("released by the reply %+v", v.last)
	}
}

// known demands that a caller can tell the meaning of err.
func (v *victim) known(what string, err error) {
	if err == nil {
		return
	}
	if _, ok := errors.AsType[*locker.OpError](err); !ok {
		v.Errorf("%s: %v is no OpError", what, err)
	}
	if held, ok := errors.AsType[*locker.ContentionError](err); ok != errors.Is(err, locker.ErrNotAcquired) || ok && held.RetryAfter < 0 {
		v.Errorf("%s: %v: %+v", what, err, held)
	}
	refused := v.is(0, 3) && v.text(1) && (v.hash && v.text(2) && v.number(3) || !v.hash && v.number(2))
	if errors.Is(err, locker.ErrNotAcquired) && !refused {
		v.Errorf("%s: %v, by the reply %+v", what, err, v.last)
	}
	_, served := errors.AsType[*driver.ServerError](err)
	for _, class := range []error{
		locker.ErrNotAcquired, locker.ErrNotHeld, locker.ErrUnknownOutcome, driver.ErrPermanent, driver.ErrNotSent, errors.ErrUnsupported,
	} {
		served = served || errors.Is(err, class)
	}
	if !served && what != "inspect" {
		v.Errorf("%s: %v, of no class, by the reply %+v, %v", what, err, v.last, v.lastErr)
	}
}
