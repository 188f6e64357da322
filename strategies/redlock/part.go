package redlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// part is what a hold has at one node. It wraps the lease of the node's lock.
type part struct {
	locker.Lease
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

// Do implements locker.Lease.
func (p *part) Do(ctx context.Context, op locker.Op) (term locker.Term, err error) {
	p.node.beginCall(ctx, p.patience)
	defer p.node.endCall(ctx, &err, p.patience)
	if op.Kind == locker.OpRelease && p.quiet.Load() {
		term, err := p.Lease.Do(ctx, locker.Op{Kind: locker.OpGiveBack})
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
	for lease := p.Lease; lease != nil; {
		if _, ok := lease.(*hold); ok {
			return true
		}
		wrapper, ok := lease.(interface{ Unwrap() locker.Lease })
		if !ok {
			return false
		}
		lease = wrapper.Unwrap()
	}
	return false
}

// Unwrap lets what else the node's lease can do be found.
func (p *part) Unwrap() locker.Lease { return p.Lease }

// Source implements locker.Sourced.
func (p *part) Source() (source locker.Source) {
	var err error
	defer recovered(&err)
	if s, ok := p.Lease.(locker.Sourced); ok {
		source = s.Source()
	}
	return source
}
