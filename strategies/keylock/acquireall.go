package keylock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

//go:embed lua/acquire_all.lua
var acquireAllLua string

// checksEnd is the line of an Acquire script ahead of which all checks are, and behind which it
// writes.
const checksEnd = "-- The checks end here.\n"

// AcquireAllLua returns the Lua of a Spec's AcquireAll. Put it behind the functions that the
// Acquire script needs. acquire is the text of Acquire itself, with the line
// "-- The checks end here." between the checks and the writes. AcquireAllLua panics if there is no
// such line.
func AcquireAllLua(acquire string) string {
	check, write, ok := strings.Cut(acquire, checksEnd)
	if !ok {
		panic("keylock: no line " + strings.TrimSpace(checksEnd))
	}
	return "local function attempt(KEYS, ARGV)\n" + check + "return nil, function()\n" + write + "\nend\nend\n" +
		acquireAllLua
}

// keyBatch is one attempt to acquire several locks with one script, with all its sends. It is a
// locker.Batch.
type keyBatch struct {
	l          *Locker
	sends      resolve.Sends
	keys, args []string
	reply      driver.Reply

	attempts []*keyAttempt
	asked    []locker.Request // of each, without how long it waits
	owners   []string         // which ctx carried for each name
	failed   int              // the index of the attempt that err is about
	err      error            // nil: all were acquired

	mu      sync.Mutex
	claimed []bool // by an Acquire
	ended   func() // tells the driver; nil: it was called
	report  func() // of a failure that no Acquire claims; nil: there is none
}

// AcquireBatch implements locker.BatchAcquirer. It is for a strategy with an AcquireAll script,
// without MinReplicas, and for keys in one slot or at one server.
func (l *Locker) AcquireBatch(ctx context.Context, reqs []locker.Request) (locker.Batch, error) {
	b, err := l.newBatch(ctx, reqs)
	if err != nil {
		return nil, err
	}
	if b.ended, err = l.drv.BeginAcquire(); err != nil {
		return nil, err
	}
	acquired := false
	defer func() {
		if !acquired { // also if the driver panics
			b.endAcquire()
		}
	}()
	b.err = b.run(ctx)
	if acquired = b.err == nil; acquired {
		return b, nil
	}
	b.err = b.attempts[b.failed].describe(b.err)
	b.report = func() { b.reportFailure(ctx) }
	return b, &locker.OpError{Op: "acquire", Name: reqs[b.failed].Name, Err: b.err}
}

// newBatch prepares an attempt on behalf of reqs. Errors: errors.ErrUnsupported and those of check.
func (l *Locker) newBatch(ctx context.Context, reqs []locker.Request) (*keyBatch, error) {
	if l.spec.AcquireAll == nil || l.cfg.MinReplicas > 0 || len(reqs) == 0 {
		return nil, fmt.Errorf("%s: several locks with one script: %w", l.spec.Name, errors.ErrUnsupported)
	}
	n := len(reqs)
	b := &keyBatch{
		l: l, attempts: make([]*keyAttempt, n), asked: make([]locker.Request, n), owners: make([]string, n),
		claimed: make([]bool, n),
	}
	for i, req := range reqs {
		switch {
		case !req.Resume.IsZero():
			return nil, fmt.Errorf("a resume with other acquires: %w", errors.ErrUnsupported)
		case i > 0 && req.Name <= reqs[i-1].Name:
			return nil, driver.Invalid("AcquireBatch requests",
				fmt.Sprintf("%.64q behind %.64q", req.Name, reqs[i-1].Name), "ones in ascending order of their names")
		}
		b.asked[i] = withoutWait(req)
		b.owners[i], _ = lease.OwnerFrom(ctx, req.Name)
		if end, bounded := ctx.Deadline(); bounded && !req.NoWait {
			req.MaxWait = max(time.Until(end), 1) // it may take that long
		}
		req.NoWait, req.Owner = true, l.ownerOf(ctx, req)
		key, err := l.check(ctx, req)
		if err != nil {
			return nil, err
		}
		b.attempts[i] = l.newAttempt(lease.WithoutWaiting(ctx), key, req)
	}
	if !b.colocated() {
		return nil, fmt.Errorf("names in several slots of a cluster: %w", errors.ErrUnsupported)
	}
	b.prepare()
	return b, nil
}

// withoutWait returns req without how long it waits.
func withoutWait(req locker.Request) locker.Request {
	req.NoWait, req.MaxWait = false, 0
	return req
}

// colocated reports whether one script may have all the keys.
func (b *keyBatch) colocated() bool {
	first := b.attempts[0]
	if b.l.drv.Delivery(first.channel()) == driver.DeliveryCounted {
		return true // there is one server
	}
	for _, a := range b.attempts[1:] {
		if !driver.SameSlot(first.key, a.key) {
			return false
		}
	}
	return true
}

// prepare sets what is sent, and for how long.
func (b *keyBatch) prepare() {
	b.sends.UntilClose = b.l.drv.UntilClose() //nolint:fatcontext // not derived from another
	b.sends.Timeout, b.sends.Limit = b.attempts[0].sends.Timeout, b.attempts[0].sends.Limit
	for i, a := range b.attempts {
		b.sends.Timeout, b.sends.Limit = min(b.sends.Timeout, a.sends.Timeout), min(b.sends.Limit, a.sends.Limit)
		call := a.acquireCall()
		if i == 0 {
			b.args = append(make([]string, 0, 1+len(b.attempts)*(1+len(call.args))), strconv.Itoa(len(call.args)))
		}
		b.keys = append(b.keys, call.keys...)
		b.args = append(append(b.args, strconv.Itoa(len(call.keys))), call.args...)
	}
}

// run makes the attempt. Unless it acquires all locks, it leaves nothing behind, or cleans up in
// the background.
func (b *keyBatch) run(ctx context.Context) error {
	err := b.sends.Resolve(ctx, b)
	for _, a := range b.attempts {
		a.sends.N, a.sends.First = b.sends.N, b.sends.First
		a.openUntil = a.last.Add(resolve.OpenFor(a.ttl))
	}
	if err == nil {
		err = b.read()
	}
	acquired := err == nil
	for i := 0; i < len(b.attempts) && err == nil; i++ {
		if err = b.attempts[i].confirm(ctx); err != nil {
			b.failed = i
		}
	}
	if err == nil && b.sends.UntilClose.Err() != nil {
		err = driver.ErrClosed
	}
	if err == nil {
		return nil
	}
	for _, a := range b.attempts {
		switch {
		case acquired, driver.Interrupted(err), errors.Is(err, errMalformed):
			a.giveBack(a.abort(a.channel()))
		case !a.unanswered.Settled():
			a.cleanUp(a.unanswered, a.abort(a.channel()))
		}
	}
	return err
}

// Send implements resolve.Command. While the slot of the keys moves, it gives up: single locks need
// fewer keys.
func (b *keyBatch) Send(ctx context.Context) (err error) {
	for _, a := range b.attempts {
		a.mark(b.sends.Last)
	}
	b.reply, err = b.l.drv.Eval(ctx, b.l.spec.AcquireAll, b.keys, b.args)
	if driver.CodeOf(err) == "TRYAGAIN" {
		return driver.NotSent(errors.New(err.Error()))
	}
	return err
}

// RecordOpen implements resolve.OpenRecorder: each lock has an Unanswered of its own.
func (b *keyBatch) RecordOpen(err error) {
	n := len(b.attempts)
	for i, a := range b.attempts {
		if a.unanswered == nil {
			a.unanswered = new(resolve.Unanswered)
		}
		a.unanswered.Add(err, func(v any) resolve.Verdict { return readLatePart(v, i, n) })
	}
}

// readLatePart returns what a late reply to a batch of n shows about attempt i.
func readLatePart(v any, i, n int) resolve.Verdict {
	reply, ok := v.(driver.Reply)
	if !ok {
		return resolve.Unclear
	}
	switch failed, parts, err := splitReply(reply, n); {
	case err != nil:
		return resolve.Unclear
	case failed >= 0:
		return resolve.Refused
	default:
		return verdictOf(parts[i])
	}
}

// read reads the reply.
func (b *keyBatch) read() error {
	failed, parts, err := splitReply(b.reply, len(b.attempts))
	if err != nil {
		return err
	}
	if failed >= 0 {
		b.failed = failed
		if text, err := parts[0].Text(0); err == nil {
			return &driver.ServerError{Text: text}
		}
		if err := b.attempts[failed].read(parts[0]); err != nil {
			return err
		}
		return malformed(errors.New("a lock that was acquired without the others"))
	}
	for i, a := range b.attempts {
		if err := a.read(parts[i]); err != nil {
			b.failed = i
			return malformed(err)
		}
	}
	return nil
}

// splitReply returns the replies of a batch of n attempts; or failed, the index of the one that
// failed, and its reply alone. failed is -1 if none did.
func splitReply(reply driver.Reply, n int) (failed int, parts []driver.Reply, err error) {
	number, err := reply.Int(0)
	switch {
	case err != nil:
		return 0, nil, malformed(err)
	case number < 0 || number > int64(n):
		return 0, nil, malformed(fmt.Errorf("lock %d of %d failed", number, n))
	case number > 0:
		part, err := reply.Part(1, reply.Len()-1)
		if err != nil {
			return 0, nil, malformed(err)
		}
		return int(number) - 1, []driver.Reply{part}, nil
	}
	at := 1
	for range n {
		length, err := reply.Int(at)
		if err != nil {
			return 0, nil, malformed(err)
		}
		part, err := reply.Part(at+1, int(length))
		if err != nil {
			return 0, nil, malformed(err)
		}
		parts, at = append(parts, part), at+1+int(length)
	}
	return -1, parts, nil
}

type batchKey struct{}

// Context implements locker.Batch.
func (b *keyBatch) Context(parent context.Context) context.Context {
	return context.WithValue(parent, batchKey{}, b)
}

// claimed returns the attempt that a batch in ctx made for req, and its error; nil if there is
// none.
func (l *Locker) claimed(ctx context.Context, req locker.Request) (*keyAttempt, error) {
	b, _ := ctx.Value(batchKey{}).(*keyBatch)
	if b == nil || b.l != l {
		return nil, nil
	}
	owner, _ := lease.OwnerFrom(ctx, req.Name)
	asked := withoutWait(req)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, a := range b.attempts {
		if b.asked[i] != asked || req.Owner == "" && b.owners[i] != owner || b.claimed[i] ||
			b.err != nil && b.failed != i {
			continue
		}
		b.claimed[i] = true
		return a, b.err
	}
	return nil, nil
}

// Unclaimed implements locker.Batch. While the driver closes, it cleans up the holds itself.
func (b *keyBatch) Unclaimed() (locks []*locker.Lock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, a := range b.attempts {
		if b.err != nil || b.claimed[i] {
			continue
		}
		b.claimed[i] = true
		if a.undoIfClosing(nil) == nil {
			locks = append(locks, locker.NewLock(context.Background(), a.grant(), a.keyHold))
		}
	}
	return locks
}

// End implements locker.Batch.
func (b *keyBatch) End() {
	b.endAcquire()
	b.mu.Lock()
	report, claimed := b.report, b.claimed[b.failed]
	b.report = nil
	b.mu.Unlock()
	if report != nil && !claimed {
		report()
	}
}

// endAcquire reports to the driver, once, that the batch is no longer in flight.
func (b *keyBatch) endAcquire() {
	b.mu.Lock()
	ended := b.ended
	b.ended = nil
	b.mu.Unlock()
	if ended != nil {
		ended()
	}
}

// reportFailure reports the lock that failed, or all if their outcome is unknown, to the Trace in
// ctx.
func (b *keyBatch) reportFailure(ctx context.Context) {
	t := locktrace.From(ctx)
	if t == nil || t.Attempt == nil {
		return
	}
	for i, a := range b.attempts {
		if i == b.failed || errors.Is(b.err, locker.ErrUnknownOutcome) {
			t.Attempt(ctx, a.info(b.err))
		}
	}
}
