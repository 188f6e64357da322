//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// algorithm is a way to lock. A mutant differs from a sound one in the flaw alone; the sound one
// passes the cases failed by the mutant.
type algorithm struct {
	acquire, renew, release string // Lua, see mutant_lua_test.go

	// take, if not nil, sends an acquire in place of the script.
	take func(ctx context.Context, h *mutableHold) (driver.Reply, error)

	token          func(req locker.Request) string // default: a fresh one
	outageIsHeld   bool                            // no answer counts as "held by another"
	rawCause       bool                            // whatever ended the ctx matches
	doubts         bool                            // a command not sent counts as perhaps executed
	onceOnly       bool                            // nothing is sent again
	carelessly     bool                            // ignores the answer to a release
	obedient       bool                            // a cancelled ctx stops a release
	fromLast       bool                            // the lease counts from the last send
	noCleanUp      bool                            // a cancelled acquire is left to itself
	cleanUpOnce    bool                            // one look is enough
	ignoresClosing bool                            // Close does not wait for the clean-up

	keepsInUndo         bool // a given up acquire is released like a hold
	leaseIgnoresMinHold bool // it is the default

	forgetsFences bool // does not store a raised fencing token
}

// mutable locks by an algorithm.
type mutable struct {
	drv     driver.Driver
	alg     algorithm
	attempt time.Duration // bounds each send
	skew    time.Duration // of its clock
}

type mutableHold struct {
	*mutable
	key, token string
	args       []string // of every script: token, TTL, mode, owner, fenced
	ttl        time.Duration
	minHold    time.Duration
	keepUntil  time.Time // of its release
	until      *atomic.Pointer[time.Time]
}

func (m *mutable) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := m.acquire(ctx, req)
	if err != nil {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: err}
	}
	return lock, nil
}

func (m *mutable) acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.Resume.Info().MinHold > 0 {
		return nil, errors.ErrUnsupported
	}
	owner := req.Owner
	if owner == "" {
		owner, _ = lease.OwnerFrom(ctx, req.Name)
	}
	h := &mutableHold{mutable: m, key: req.Name, ttl: req.TTL, token: lease.NewToken(), until: new(atomic.Pointer[time.Time])}
	if m.alg.token != nil {
		h.token = m.alg.token(req)
	}
	if h.ttl == 0 {
		h.ttl = locker.DefaultTTL
	}
	if h.minHold = req.MinHold; !m.alg.leaseIgnoresMinHold {
		h.ttl = max(h.ttl, h.minHold)
	}
	h.args = []string{h.token, "", req.Mode.String(), owner, strconv.FormatBool(req.Fenced)}

	var first, last time.Time
	var reply driver.Reply
	err := h.resolve(ctx, ctx, func(ctx context.Context) (err error) {
		last = time.Now()
		if first.IsZero() {
			first = last
		}
		if m.alg.take != nil {
			reply, err = m.alg.take(ctx, h)
		} else {
			reply, err = h.eval(ctx, m.alg.acquire, h.ttl)
		}
		return err
	})
	if err != nil {
		if !driver.NotExecuted(err) && !m.alg.noCleanUp {
			h.cleanUp()
		}
		if m.alg.outageIsHeld {
			return nil, &locker.ContentionError{Name: req.Name}
		}
		return nil, err
	}
	status, err := reply.Int(0)
	if err != nil {
		return nil, err
	}
	if status == 0 {
		left, err := reply.Int(1)
		if err != nil {
			return nil, err
		}
		wake, _ := sibling.Of(h.key, sibling.WakeSuffix)
		return nil, &locker.ContentionError{
			Released: strings.HasPrefix(text(reply, 2), "~"),
			Name:     req.Name, Left: time.Duration(max(left, 0)) * time.Millisecond,
			Hint: lease.Hint{RetryAfter: time.Duration(max(left, 0)) * time.Millisecond, Channel: driver.NewChannel(m.drv, wake)},
		}
	}
	won := last
	if status == 2 && !m.alg.fromLast {
		won = first
	}
	fence, err := strconv.ParseInt(text(reply, 1), 10, 64)
	if err != nil {
		return nil, err
	}
	until := h.deadline(won, h.ttl)
	h.until.Store(&until)
	g := lease.HoldInfo{Name: req.Name, Owner: owner, Token: h.token, Mode: req.Mode, TTL: h.ttl, Deadline: until, Fence: fence, MinHold: req.MinHold}
	return locker.NewLock(ctx, g, h), nil
}

func text(r driver.Reply, i int) string {
	s, _ := r.Text(i)
	return s
}

func (h *mutableHold) deadline(from time.Time, ttl time.Duration) time.Time {
	return from.Add(ttl - ttl/100 - 2*time.Millisecond)
}

// eval runs a script of the algorithm.
func (h *mutableHold) eval(ctx context.Context, lua string, ttl time.Duration) (driver.Reply, error) {
	fence, _ := sibling.Of(h.key, sibling.FenceSuffix)
	wake, _ := sibling.Of(h.key, sibling.WakeSuffix)
	args := append([]string{}, h.args...)
	args[1] = strconv.FormatInt(ttl.Milliseconds(), 10)
	return h.drv.Eval(ctx, driver.NewScript(lua), []string{h.key, fence}, append(args, wake, strconv.FormatInt(h.keep().Milliseconds(), 10)))
}

// keep returns for how long a release keeps the name taken; 0: it does not.
func (h *mutableHold) keep() time.Duration {
	if h.keepUntil.IsZero() {
		return 0
	}
	return max(time.Until(h.keepUntil)+time.Millisecond-1, 0)
}

// resolve sends until there is an answer, while both contexts last; patience bounds only how long
// it goes on.
func (h *mutableHold) resolve(ctx, patience context.Context, send func(context.Context) error) error {
	open := false
	for {
		bound := bounded.New(ctx, h.attempt)
		err := send(bound)
		bound.Stop()
		if err == nil {
			return nil
		}
		if driver.NotExecuted(err) {
			if open || h.alg.doubts {
				err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
			}
			return err
		}
		open = true
		timer := time.NewTimer(suite.PollEvery)
		select {
		case <-timer.C:
			if h.alg.onceOnly {
				return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
			}
		case <-patience.Done():
			timer.Stop()
			ended := lease.ContextErr(patience)
			if h.alg.rawCause {
				ended = fmt.Errorf("%w: %w", patience.Err(), context.Cause(patience))
			}
			return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ended)
		}
	}
}

func (h *mutableHold) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	switch op.Kind {
	case lease.OpRenew:
		return h.renew(ctx, op.TTL)
	case lease.OpRelease, lease.OpUndo:
		releasing := *h
		releasing.keepUntil = op.KeepUntil
		err := releasing.release(ctx)
		if h.alg.carelessly {
			err = nil
		}
		return lease.Result{}, err
	case lease.OpRaiseFence:
		return h.raiseFence(ctx, op.Fence)
	default:
		return lease.Result{}, errors.ErrUnsupported
	}
}

func (h *mutableHold) raiseFence(ctx context.Context, fence int64) (lease.Result, error) {
	if h.alg.forgetsFences {
		return lease.Result{Deadline: *h.until.Load(), Fence: fence}, nil
	}
	key, _ := sibling.Of(h.key, sibling.FenceSuffix)
	_, err := h.drv.Eval(ctx, driver.NewScript("return redis.call('SET', KEYS[1], ARGV[1])"), []string{key}, []string{strconv.FormatInt(fence, 10)})
	return lease.Result{Deadline: *h.until.Load(), Fence: fence}, err
}

func (h *mutableHold) renew(ctx context.Context, ttl time.Duration) (lease.Result, error) {
	var reply driver.Reply
	var sent time.Time
	err := h.resolve(ctx, ctx, func(ctx context.Context) (err error) {
		sent = time.Now()
		reply, err = h.eval(ctx, h.alg.renew, ttl)
		return err
	})
	if err != nil {
		return lease.Result{}, err
	}
	if n, err := reply.Int(0); n == 0 {
		return lease.Result{}, errors.Join(err, locker.ErrLost)
	}
	until := h.deadline(sent, ttl)
	h.until.Store(&until)
	return lease.Result{Deadline: until}, nil
}

func (h *mutableHold) release(ctx context.Context) error {
	send := context.WithoutCancel(ctx)
	if h.alg.obedient {
		if send = ctx; ctx.Err() != nil {
			return ctx.Err()
		}
	}
	var reply driver.Reply
	sends := 0
	err := h.resolve(send, ctx, func(ctx context.Context) (err error) {
		sends++
		reply, err = h.eval(ctx, h.alg.release, h.ttl)
		return err
	})
	if err != nil {
		return err
	}
	if n, err := reply.Int(0); n == 0 && sends == 1 {
		return errors.Join(err, locker.ErrLost)
	}
	return nil
}

// cleanUp undoes a cancelled acquire, even one still to arrive.
func (h *mutableHold) cleanUp() {
	if h.alg.keepsInUndo && h.minHold > 0 {
		h.keepUntil = time.Now().Add(h.minHold)
	}
	work := func(closing context.Context) {
		for delay := 10 * time.Millisecond; ; delay *= 2 {
			bound := bounded.New(context.Background(), h.attempt)
			_, err := h.eval(bound, h.alg.release, h.ttl)
			bound.Stop()
			if errors.Is(err, driver.ErrClosed) || closing.Err() != nil || h.alg.cleanUpOnce || delay > 10*time.Second {
				return
			}
			timer := time.NewTimer(min(delay, time.Second))
			select {
			case <-timer.C:
			case <-closing.Done():
				timer.Stop()
			}
		}
	}
	if !h.alg.ignoresClosing {
		h.drv.Background(work)
		return
	}
	h.drv.Background(func(closing context.Context) {
		go work(context.WithoutCancel(closing))
	})
}
