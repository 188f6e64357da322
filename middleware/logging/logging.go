package logging

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// log logs for one Middleware.
type log struct {
	cfg      Config
	observer *telemetry.Observer[state]
	trace    *locktrace.Trace // of holds
}

// state is the state of an acquisition, and of its hold.
type state struct {
	name string
	mode locker.Mode
	slow *time.Timer // ends at SlowWait
	lost atomic.Bool // the loss was logged

	mu       sync.Mutex
	failures int       // renewals failed in a row
	failing  time.Time // since the first of them
}

type acquisition = telemetry.Acquisition[state]

func newLog(cfg Config) *log {
	l := &log{cfg: cfg}
	l.observer = telemetry.NewObserver(telemetry.Hooks[state]{
		Contended: l.contended, NodeFailing: l.nodeFailing, NodeRecovered: l.nodeRecovered,
	})
	l.trace = &locktrace.Trace{Renewed: l.renewed, Released: l.released, Lost: l.lost}
	return l
}

// acquire acquires from inner, and logs contention, slow waits and failures.
func (l *log) acquire(ctx context.Context, inner locker.Locker, req locker.Request) (lock *locker.Lock, err error) {
	watched, inside := l.observer.Begin(ctx)
	watched.Data.name, watched.Data.mode = req.Name, req.Mode
	watched.Data.slow = time.AfterFunc(l.cfg.SlowWait, func() { watched.Meanwhile(func() { l.slow(watched) }) })
	err = telemetry.ErrNoReturn
	defer func() { l.end(watched, lock, err) }()
	lock, err = inner.Acquire(inside, req)
	return lock, err
}

func (l *log) slow(a *acquisition) {
	l.log(a, l.cfg.SlowLevel, "lock wait is slow", append(requestAttrs(a), slog.Duration("waited", a.Age()))...)
}

func (l *log) contended(a *acquisition, refusal error, queued int) {
	attrs := requestAttrs(a)
	if queued > 0 {
		attrs = append(attrs, slog.Int("queued", queued))
	}
	l.log(a, l.cfg.ContendedLevel, "lock contended", l.holder(attrs, refusal)...)
}

// requestAttrs returns the attributes of the requested lock.
func requestAttrs(a *acquisition) []slog.Attr {
	attrs := make([]slog.Attr, 0, 9)
	return append(attrs, printable("lock", a.Data.name), slog.String("mode", a.Data.mode.String()))
}

// holder appends the attributes of the holder in a refusal.
func (l *log) holder(attrs []slog.Attr, err error) []slog.Attr {
	held := telemetry.Holder(err, l.cfg.ShowOwner)
	if held == nil {
		return attrs
	}
	attrs = appendHolder(attrs, held)
	if held.Left > 0 {
		attrs = append(attrs, slog.Duration("lease_left", held.Left))
	}
	return attrs
}

// appendHolder appends the owner and the note of a holder.
func appendHolder(attrs []slog.Attr, held *locker.ContentionError) []slog.Attr {
	if held.Owner != "" {
		attrs = append(attrs, printable("holder_owner", held.Owner))
	}
	if held.Note != "" {
		attrs = append(attrs, printable("holder_note", held.Note))
	}
	return attrs
}

func (l *log) end(a *acquisition, lock *locker.Lock, err error) {
	r := a.End(lock, err)
	a.Data.slow.Stop()
	if r.Took >= l.cfg.SlowWait {
		attrs := append(requestAttrs(a),
			slog.String("outcome", string(r.Outcome)), slog.Duration("waited", r.Took),
			slog.Int("attempts", r.Attempts))
		if errors.Is(err, locker.ErrNotAcquired) {
			attrs = l.holder(attrs, err)
		} else if held := telemetry.Holder(r.Refusal, l.cfg.ShowOwner); held != nil {
			attrs = appendHolder(attrs, held) // its lease is not known any more
		}
		if r.Outcome.Failed() {
			attrs = l.failure(attrs, err)
		}
		l.log(a, l.cfg.SlowLevel, "slow lock wait ended", attrs...)
	}
	if r.Outcome == telemetry.Acquired {
		lock.Hold().Trace(a, l.trace)
	}
}

func (l *log) lost(ctx context.Context, info locktrace.LostInfo) {
	if !l.observer.Of(ctx).Data.lost.Swap(true) {
		l.logEnd(ctx, "lock lost", info.Source, info.Name, info.Mode, info.Held, telemetry.Lost, info.Err)
	}
}

// released logs a failed release, and a loss not yet logged.
func (l *log) released(ctx context.Context, info locktrace.ReleasedInfo) {
	switch outcome := telemetry.OfRelease(info.Err); outcome {
	case telemetry.Released:
	case telemetry.Lost:
		l.lost(ctx, locktrace.LostInfo{Source: info.Source, Name: info.Name, Mode: info.Mode, Held: info.Held,
			Err: info.Err})
	default:
		l.logEnd(ctx, "lock release failed", info.Source, info.Name, info.Mode, info.Held, outcome, info.Err)
	}
}

func (l *log) logEnd(
	ctx context.Context, message string, source locktrace.Source, name, mode string, held time.Duration,
	outcome telemetry.Outcome, err error,
) {
	attrs := append(holdAttrs(source, name, mode), slog.String("outcome", string(outcome)), slog.Duration("held", held))
	l.log(ctx, l.cfg.LostLevel, message, l.failure(attrs, err)...)
}

// renewed logs the first failure of a lock's renewals, and their recovery. A loss has a record of
// its own.
func (l *log) renewed(ctx context.Context, info locktrace.RenewedInfo) {
	if errors.Is(info.Err, locker.ErrNotHeld) || errors.Is(info.Err, locker.ErrInvalid) {
		return
	}
	a := l.observer.Of(ctx)
	failures, lasted := a.Data.count(info.Err != nil)
	attrs := holdAttrs(info.Source, info.Name, a.Data.mode.String())
	switch {
	case info.Err != nil && failures == 1:
		attrs = append(attrs, slog.Duration("left", time.Until(info.Deadline)))
		l.log(ctx, l.cfg.FailingLevel, "lock renewals fail", l.failure(attrs, info.Err)...)
	case info.Err == nil && failures > 0:
		attrs = append(attrs, slog.Int("failures", failures), slog.Duration("failed_for", lasted))
		l.log(ctx, l.cfg.RecoveredLevel, "lock renewals recovered", attrs...)
	}
}

// count counts a renewal, and returns how many failed in a row, and for how long. A success begins
// anew.
func (s *state) count(failed bool) (failures int, lasted time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures > 0 {
		lasted = time.Since(s.failing)
	}
	if !failed {
		failures, s.failures = s.failures, 0
		return failures, lasted
	}
	if s.failures == 0 {
		s.failing = time.Now()
	}
	s.failures++
	return s.failures, lasted
}

// nodeFailing logs the first failure of a node of a quorum.
func (l *log) nodeFailing(ctx context.Context, info locktrace.NodeInfo) {
	l.log(ctx, l.cfg.FailingLevel, "redlock node fails", l.failure(nodeAttrs(info), info.Err)...)
}

// nodeRecovered logs the first answer of a failing node.
func (l *log) nodeRecovered(ctx context.Context, info locktrace.NodeInfo) {
	l.log(ctx, l.cfg.RecoveredLevel, "redlock node recovered",
		append(nodeAttrs(info), slog.Duration("failed_for", info.For))...)
}

// nodeAttrs returns the attributes of a changed node of a quorum, and how many fail now.
func nodeAttrs(info locktrace.NodeInfo) []slog.Attr {
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.Int("node", info.Node))
	if info.Name != "" {
		attrs = append(attrs, printable("name", info.Name))
	}
	return append(attrs, slog.String("provider", info.Client), slog.String("address", info.Address),
		slog.Int("nodes", info.Nodes), slog.Int("failing", info.Failing))
}

// holdAttrs returns the attributes of a held lock and its source.
func holdAttrs(source locktrace.Source, name, mode string) []slog.Attr {
	attrs := make([]slog.Attr, 0, 9)
	return append(attrs, printable("lock", name), slog.String("mode", mode), slog.String("strategy", source.Strategy),
		slog.String("provider", source.Client), slog.String("address", source.Address))
}

func (l *log) failure(attrs []slog.Attr, err error) []slog.Attr {
	return append(attrs, slog.String("error_type", telemetry.ErrorType(err)),
		slog.String("error", telemetry.Text(err, l.cfg.ShowOwner)))
}

// printable returns an attribute for a string of any bytes.
func printable(key, value string) slog.Attr { return slog.String(key, telemetry.Printable(value)) }

func (l *log) log(ctx context.Context, level slog.Leveler, message string, attrs ...slog.Attr) {
	logger := l.cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(ctx, level.Level(), message, attrs...)
}
