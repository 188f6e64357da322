package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// phase is how far a hold has come.
type phase uint8

const (
	gathering phase = iota // the nodes are being asked
	holding                // the quorum was won
	lost                   // it is certain that it is gone; what is left is released with the Lock
	over                   // given back, or released
)

// hold is one lock: an attempt first, then the lease.Lease.
type hold struct {
	*Locker
	ctx     context.Context //nolint:containedctx // the values of the acquire's ctx, for what is sent behind; it never ends
	req     locker.Request  // what the nodes are asked for
	owner   string
	short   bool          // so many nodes have calls without an answer that there is no quorum of the others
	fresh   bool          // the owner is random, of this attempt alone
	tokens  []string      // by which it is resumed, by node; nil: it is acquired
	timeout time.Duration // AttemptTimeout
	began   time.Time
	decided chan struct{} // closed at the end of gathering
	fixed   chan struct{} // closed once the fence is known, or the attempt has come to nothing; nil: not fenced
	turn    chan struct{} // holds a value during an operation that changes what counts: a renewal, a conversion, a raise

	mu         sync.Mutex
	phase      phase
	err        error // why the attempt came to nothing
	members    []member
	asking     int           // members that the attempt is asking
	stop       func()        // ends the ctx of the attempt
	grace      *time.Timer   // of a verdict that would be hasty
	spare      int           // members that the attempt may still leave out
	back       int           // parts on their way back
	left       bool          // the caller left before it was decided
	gaveBack   chan struct{} // closed once an attempt that came to nothing leaves nothing more at the nodes that answer
	ended      chan struct{} // closed when phase becomes over; nil: nobody waits for that
	isLeftover bool          // it is among the Locker's leftovers
	quiet      bool          // late parts go back without waking anybody
	fence      int64
	mode       locker.Mode
	upgrading  bool         // the mode is being changed to exclusive
	took       bool         // a node gave its part
	late       error        // why the quorum that was won is no lock
	deadline   time.Time    // of the quorum, as last said
	renewed    time.Time    // when the last renewal began, if it won; zero: it did not, or is under way
	lock       *locker.Lock // nil until there is one
	alarm      *time.Timer  // runs where the quorum ends before deadline
}

// member is a node's part in the hold. The hold's mutex guards it.
type member struct {
	part   *part // nil: nothing is held there, as far as we know
	asking bool
	queued bool          // what is asked waits for earlier calls of the node; nothing was sent
	ending bool          // a release is under way of what it gave, the hold being over
	gone   chan struct{} // closed when neither is so any more; nil: nobody waits for that
	behind bool          // nobody waits for what it is asked; the node counts it
	asked  time.Time     // when it was asked last
	rounds []joiner      // that wait for what it was asked
	err    error         // why there is nothing, or why the fence of what is there was not raised
	taken  bool          // it said that it does not hold what a Handle names
	lapsed time.Time     // when what a Handle names ended there by the local clock: it may have been taken over before; zero: it did not
}

// Do implements lease.Lease.
func (h *hold) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	switch op.Kind {
	case lease.OpRenew:
		return h.renew(ctx, cmp.Or(op.TTL.Truncate(time.Millisecond), h.req.TTL))
	case lease.OpRelease, lease.OpGiveBack:
		return lease.Term{}, h.release(ctx, op.Kind == lease.OpGiveBack)
	case lease.OpConvert:
		return h.convert(ctx, op.Mode)
	case lease.OpRaiseFence:
		return h.raise(ctx, op.Fence)
	default:
		return lease.Term{}, fmt.Errorf("%v on a lock of redlock: %w", op.Kind, errors.ErrUnsupported)
	}
}

// Source implements lease.Sourced: the clients and addresses of the nodes that are known by now,
// with commas.
func (h *hold) Source() locktrace.Source {
	var clients, addresses []string
	for _, n := range h.nodes {
		if s := n.source.Load(); s != nil {
			if s.Client != "" && !slices.Contains(clients, s.Client) {
				clients = append(clients, s.Client)
			}
			if s.Address != "" {
				addresses = append(addresses, s.Address)
			}
		}
	}
	return locktrace.Source{Strategy: "redlock", Client: strings.Join(clients, ","), Address: strings.Join(addresses, ",")}
}

// Token implements lease.Tokened. Who has it can take over what it names.
func (h *hold) Token() string {
	tokens, locks := make([]string, len(h.members)), make([]*locker.Lock, len(h.members))
	h.mu.Lock()
	for i := range h.members {
		if p := h.members[i].part; p != nil {
			locks[i] = p.lock
			p.named = true
		}
	}
	h.mu.Unlock()
	for i, lock := range locks {
		if lock != nil {
			tokens[i] = lock.Handle().Grant().Token // without the mutex: a node is not ours
		}
	}
	return encodeToken(tokens, h.req.Note)
}

// accepts reports whether a part that was just granted joins the hold. Its mode may still be
// changed. The mutex is held.
func (h *hold) accepts() bool {
	switch h.phase {
	case gathering:
		return true
	case holding:
		return h.live()
	default:
		return false
	}
}

// live tells whether the Deadline has not passed. The mutex is held.
func (h *hold) live() bool { return h.deadline.IsZero() || time.Now().Before(h.deadline) }

// request is what a node is asked for.
func (h *hold) request(i int) locker.Request {
	req := h.req
	if h.tokens != nil {
		g := req.Resume.Grant()
		g.Token = h.tokens[i]
		req.Resume = locker.NewHandle(g)
	}
	return req
}
