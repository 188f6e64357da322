package redlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// part is what a hold has at one node. It wraps the lease of the node's lock.
type part struct {
	lease.Lease
	node     *quorumNode
	patience time.Duration // the AttemptTimeout
	lock     *locker.Lock
	resumed  bool        // it was taken over
	quiet    atomic.Bool // a release is to wake nobody, and undoes a resume

	// The hold's mutex guards these.
	fence      int64         // what the node's counter is raised to at least
	exclusive  bool          // surely
	unsure     bool          // of being shared
	converting chan struct{} // closed when the conversion under way is done; nil: there is none
	named      bool          // a Handle that was handed out names it
	flight     *flight       // the renewal under way
	renewed    time.Time     // when the last renewal that it granted was sent
}

// Do implements lease.Lease.
func (p *part) Do(ctx context.Context, op lease.Op) (term lease.Term, err error) {
	p.node.beginCall(ctx, p.patience)
	defer p.node.endCall(ctx, &err, p.patience)
	if op.Kind == lease.OpRelease && p.quiet.Load() {
		term, err := p.Lease.Do(ctx, lease.Op{Kind: lease.OpGiveBack})
		if p.resumed || !errors.Is(err, errors.ErrUnsupported) {
			return term, err
		}
	}
	return p.Lease.Do(ctx, op)
}

// giveBack releases a part that nobody else knows of, waking nobody.
func (p *part) giveBack(ctx context.Context) {
	p.quiet.Store(true)
	_ = p.lock.Release(ctx) // at the worst it ends by itself
}

// ofQuorum tells whether the node is a quorum itself.
func (p *part) ofQuorum() bool {
	var err error
	defer recovered(&err)
	_, is := lease.Find[*hold](p.Lease)
	return is
}

// Unwrap lets what else the node's lease can do be found.
func (p *part) Unwrap() lease.Lease { return p.Lease }

// Source implements lease.Sourced.
func (p *part) Source() (source locktrace.Source) {
	var err error
	defer recovered(&err)
	if s, ok := p.Lease.(lease.Sourced); ok {
		source = s.Source()
	}
	return source
}
