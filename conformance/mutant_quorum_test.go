//realtime:ok mutants run in bubbles

package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// smallQuorum is a quorum in few lines. Without a flaw it is sound, as far as the cases go that
// catch the flaws.
type smallQuorum struct {
	nodes []locker.Locker
	need  int

	asking *asking

	minority      bool // one node less than a majority wins
	forgetsTime   bool // the lease counts from when the quorum was won
	latest        bool // it ends with the latest of the nodes' leases
	waitsForAll   bool // an operation ends when the last node has answered
	keepsOnLoss   bool // an attempt that lost leaves what it had won
	wakesOnLoss   bool // it gives that back like a release
	keepsLate     bool // a node that wins late keeps its key
	lateIsShort   bool // a node that wins late keeps the lease of the acquire until the next renewal
	refusesItself bool // what an attempt that lost has under way refuses the next one
	forgetsLate   bool // a release is sent where the lock was won at first
	noWriteBack   bool // the highest token is not told to the other nodes
	outageIsHeld  bool // a node that fails counts as one that refuses
	oneRenews     bool // a renewal at one node will do
	neverRestores bool // a node that lost its key is not asked again
	namesNone     bool // an error says how many nodes failed, and not which
}

// asking are the acquires that are under way, by node; those of attempts that lost until what they
// won is given back.
type asking struct {
	mu    chanMutex
	calls map[int][]chan struct{} // closed when they are over
}

func (a *asking) begin(i int) (over chan struct{}, earlier []chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	over, earlier = make(chan struct{}), slices.Clone(a.calls[i])
	if a.calls == nil {
		a.calls = map[int][]chan struct{}{}
	}
	a.calls[i] = append(a.calls[i], over)
	return over, earlier
}

// smallHold is an attempt, and then the lease.
type smallHold struct {
	smallQuorum
	req locker.Request

	mu    chanMutex
	won   bool
	over  bool
	quiet bool // what comes back wakes nobody
	fence int64

	renewed time.Duration // by the last renewal; zero: there was none
	parts   []*smallPart  // by node
}

// smallPart is what is held at a node.
type smallPart struct {
	lease.Lease
	lock        *locker.Lock
	late, quiet bool
}

func (p *smallPart) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if op.Kind == lease.OpRelease && p.quiet {
		op.Kind = lease.OpUndo
	}
	return p.Lease.Do(ctx, op)
}

func (q smallQuorum) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if q.minority {
		q.need--
	}
	req.TTL = cmp.Or(req.TTL, locker.DefaultTTL)
	h := &smallHold{smallQuorum: q, req: req, parts: make([]*smallPart, len(q.nodes))}
	won, refused, failed := h.each(q.need, locker.ErrNotAcquired, h.ask)
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	deadline := h.deadline()
	switch {
	case won < q.need && (q.outageIsHeld || refused > 0 && (failed == nil || won+refused >= q.need)):
		err = &locker.ContentionError{Name: req.Name}
	case won < q.need:
		err = errors.Join(fmt.Errorf("%d of %d nodes gave the lock", won, len(q.nodes)), failed)
	case time.Until(deadline) < req.TTL/10:
		err = fmt.Errorf("%w: too little was left", locker.ErrLost)
	case req.Fenced:
		err = h.writeBack()
	}
	if err != nil {
		h.over, h.quiet = true, !q.wakesOnLoss
		for _, p := range h.parts {
			if p != nil && !q.keepsOnLoss {
				p.quiet = h.quiet
				go p.lock.Release(context.WithoutCancel(ctx)) //nolint:errcheck // it ends by itself
			}
		}
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: err}
	}
	h.won = true
	return locker.NewLock(ctx, lease.Grant{Name: req.Name, Token: lease.NewToken(), TTL: req.TTL, Deadline: deadline, Fence: h.fence}, h), nil
}

// each calls f for each node at once, and counts what came of it until need did it, or cannot any
// more. To refuse is to say no.
func (h *smallHold) each(need int, no error, f func(ctx context.Context, i int) error) (done, refused int, failed error) {
	answers := make(chan error, len(h.nodes))
	for i := range h.nodes {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 3*attemptTimeout)
			defer cancel()
			err := f(ctx, i)
			if op, ok := errors.AsType[*locker.OpError](err); ok {
				err = op.Err // the operation is the quorum's
			}
			if err != nil {
				err = fmt.Errorf("node %d: %w", i, err)
			}
			answers <- err
		}()
	}
	for asked := len(h.nodes); asked > 0 && (h.waitsForAll || done < need && done+asked >= need); asked-- {
		switch err := <-answers; {
		case err == nil:
			done++
		case errors.Is(err, no):
			refused++
		case h.namesNone:
			failed = errors.New("nodes failed")
		default:
			failed = errors.Join(failed, err)
		}
	}
	return done, refused, failed
}

// ask acquires at a node; once more where an earlier attempt may have refused it.
func (h *smallHold) ask(ctx context.Context, i int) error {
	over, earlier := h.asking.begin(i)
	defer close(over)
	err := h.askOnce(ctx, i)
	if !errors.Is(err, locker.ErrNotAcquired) || len(earlier) == 0 || h.refusesItself {
		return err
	}
	for _, other := range earlier {
		select {
		case <-other:
		case <-ctx.Done():
			return err
		}
	}
	return h.askOnce(ctx, i)
}

func (h *smallHold) askOnce(ctx context.Context, i int) error {
	lock, err := h.nodes[i].Acquire(ctx, h.req)
	if err != nil {
		return err
	}
	p := &smallPart{lock: lock}
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		p.Lease = inner
		return p
	})
	h.mu.Lock()
	p.late, p.quiet = h.won, h.quiet
	if h.over && !h.keepsLate {
		h.mu.Unlock()
		_ = lock.Release(context.WithoutCancel(ctx)) // it ends by itself
		return nil
	}
	defer h.mu.Unlock()
	h.parts[i] = p
	if h.renewed > 0 && p.late && !h.lateIsShort {
		go lock.Renew(context.WithoutCancel(ctx), h.renewed) //nolint:errcheck // the next renewal tries again
	}
	return nil
}

// deadline is until when need nodes hold. The mutex is held.
func (h *smallHold) deadline() time.Time {
	if h.forgetsTime {
		return time.Now().Add(h.req.TTL - h.req.TTL/100)
	}
	ends := make([]time.Time, len(h.nodes))
	for i, p := range h.parts {
		if p != nil {
			ends[i] = p.lock.Deadline()
		}
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	if h.latest {
		return ends[0]
	}
	return ends[h.need-1]
}

// writeBack raises the counters of the nodes that won to the highest token. The mutex is held.
func (h *smallHold) writeBack() error {
	for _, p := range h.parts {
		if p != nil {
			h.fence = max(h.fence, p.lock.Fence())
		}
	}
	for _, p := range h.parts {
		if p == nil || h.noWriteBack {
			continue
		}
		if _, err := p.Do(context.Background(), lease.Op{Kind: lease.OpRaiseFence, Fence: h.fence}); err != nil {
			return err
		}
	}
	return nil
}

func (h *smallHold) Do(_ context.Context, op lease.Op) (lease.Term, error) {
	switch op.Kind {
	case lease.OpRenew:
		return h.renew(op.TTL)
	case lease.OpRelease:
		return lease.Term{}, h.release()
	default:
		return lease.Term{}, errors.ErrUnsupported
	}
}

func (h *smallHold) renew(ttl time.Duration) (lease.Term, error) {
	need := h.need
	if h.oneRenews {
		need = 1
	}
	done, gone, failed := h.each(need, locker.ErrNotHeld, func(ctx context.Context, i int) error {
		p := h.part(i)
		if p == nil {
			return locker.ErrNotHeld
		}
		return p.lock.Renew(ctx, ttl)
	})
	switch {
	case gone > len(h.nodes)-need:
		return lease.Term{}, locker.ErrLost
	case done < need:
		return lease.Term{}, errors.Join(fmt.Errorf("%d of %d nodes renewed", done, len(h.nodes)), failed)
	}
	h.mu.Lock()
	h.renewed = ttl
	h.mu.Unlock()
	for i := range h.nodes {
		if p := h.part(i); !h.neverRestores && p != nil && p.lock.Err() != nil {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 3*attemptTimeout)
				defer cancel()
				_ = h.ask(ctx, i) // the next renewal tries again
			}()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return lease.Term{Deadline: h.deadline()}, nil
}

func (h *smallHold) part(i int) *smallPart {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parts[i]
}

func (h *smallHold) release() error {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	done, gone, failed := h.each(h.need, locker.ErrNotHeld, func(ctx context.Context, i int) error {
		p := h.part(i)
		if p == nil || h.forgetsLate && p.late {
			return locker.ErrNotHeld
		}
		return p.lock.Release(ctx)
	})
	if gone > len(h.nodes)-h.need {
		return locker.ErrLost
	}
	if done < h.need {
		return failed
	}
	return nil
}

func TestQuorumMutants(t *testing.T) {
	t.Parallel()
	harness := func(q smallQuorum) *Harness {
		return &Harness{Dial: plain, NewQuorum: func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error) {
			q := q
			q.nodes, q.need, q.asking = nodes, cmp.Or(need, len(nodes)/2+1), new(asking)
			return q, nil
		}}
	}
	var suspects []suspect
	for _, m := range []struct {
		name   string
		flawed smallQuorum
		caught []string
	}{
		{
			"a quorum of a minority", smallQuorum{minority: true},
			[]string{
				"a quorum excludes another quorum", "three of five nodes down are an outage",
				"a quorum of both deployments excludes the locks of either",
			},
		},
		{
			"a quorum that forgets the time it took", smallQuorum{forgetsTime: true},
			[]string{"the time that a quorum took counts", "a quorum's lease ends with its quorum-th latest"},
		},
		{
			"a quorum until its latest lease ends", smallQuorum{latest: true},
			[]string{"a quorum's lease ends with its quorum-th latest"},
		},
		{
			"a quorum that does not say which nodes failed", smallQuorum{namesNone: true},
			[]string{"a quorum's errors name each node"},
		},
		{
			"a quorum that waits for all nodes", smallQuorum{waitsForAll: true},
			[]string{"a hung node costs no time"},
		},
		{
			"a quorum that leaves what it had won", smallQuorum{keepsOnLoss: true},
			[]string{"a losing attempt leaves no key and wakes nobody", "three of five nodes down are an outage"},
		},
		{
			"a quorum that wakes others when it loses", smallQuorum{wakesOnLoss: true},
			[]string{"a losing attempt leaves no key and wakes nobody"},
		},
		{
			"a quorum that keeps what comes late", smallQuorum{keepsLate: true},
			[]string{"a late acquire of a quorum is undone"},
		},
		{
			"a quorum that leaves a late node its first lease", smallQuorum{lateIsShort: true},
			[]string{"a node that answers late holds as long as the lock"},
		},
		{
			"a quorum that its own attempts refuse", smallQuorum{refusesItself: true},
			[]string{"an attempt is not refused by the leftovers of the one before"},
		},
		{
			"a quorum that releases where it won at first", smallQuorum{forgetsLate: true},
			[]string{"a release reaches every node"},
		},
		{
			"a quorum that keeps its highest token to itself", smallQuorum{noWriteBack: true},
			[]string{"fencing tokens increase over quorums that share one node"},
		},
		{
			"a quorum that takes an outage for contention", smallQuorum{outageIsHeld: true},
			[]string{"three of five nodes down are an outage", "three of five nodes that hang are an outage"},
		},
		{
			"a quorum that one node renews", smallQuorum{oneRenews: true},
			[]string{"a renewal needs the quorum"},
		},
		{
			"a quorum that loses one node after the other", smallQuorum{neverRestores: true},
			[]string{"a renewal restores a missed node"},
		},
	} {
		suspects = append(suspects, suspect{m.name, harness(m.flawed), harness(smallQuorum{}), m.caught})
	}
	majorityOf := func(a algorithm) *Harness {
		h := a.harness(Capabilities{})
		h.NewQuorum = newRedlock
		return h
	}
	stealing := oneKey
	stealing.acquire = luaSteals
	everyNode := func(nodes []locker.Locker, _ int, bound Timeouts) (locker.Locker, error) {
		return newRedlock(nodes, len(nodes), bound)
	}
	convict(t, append(suspects,
		suspect{
			"a quorum of nodes that look at nothing", majorityOf(stealing), majorityOf(oneKey),
			[]string{"quorums that race exclude each other"},
		},
		suspect{
			"a quorum that needs every node", &Harness{Dial: plain, NewQuorum: everyNode}, &Harness{Dial: plain},
			[]string{"a quorum goes on with two of five nodes down"},
		},
	))
}

// chanMutex is a mutex that may be held while one waits in fake time.
type chanMutex struct {
	once sync.Once
	c    chan struct{}
}

func (m *chanMutex) Lock() {
	m.once.Do(func() { m.c = make(chan struct{}, 1) })
	m.c <- struct{}{}
}

func (m *chanMutex) Unlock() { <-m.c }
