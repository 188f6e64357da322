package metrics

import (
	"cmp"
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// The attributes, each of few values.
const (
	keyOutcome   = attribute.Key("holdfast.outcome")
	keyContended = attribute.Key("holdfast.contended")
	keyHanded    = attribute.Key("holdfast.handed_over")
	keyMode      = attribute.Key("holdfast.lock.mode")
	keyGroup     = attribute.Key("holdfast.lock.group")
	keyStrategy  = attribute.Key("holdfast.strategy")
	keyProvider  = attribute.Key("holdfast.provider")
	keyNode      = attribute.Key("holdfast.node")
)

// meter records for one Middleware.
type meter struct {
	*instruments
	cfg      Config
	observer *telemetry.Observer[metric.MeasurementOption]
}

func newMeter(cfg Config, in *instruments) *meter {
	m := &meter{instruments: in, cfg: cfg}
	m.observer = telemetry.NewObserver(telemetry.Hooks[metric.MeasurementOption]{
		Waiters: func(a *telemetry.Acquisition[metric.MeasurementOption], change int64) {
			in.waiting.Add(a, change, a.Data)
		},
		NodeFailing:   func(ctx context.Context, info locktrace.NodeInfo) { m.node(ctx, info, 1) },
		NodeRecovered: func(ctx context.Context, info locktrace.NodeInfo) { m.node(ctx, info, 0) },
	})
	return m
}

// node records whether a node of a quorum fails. It is named as in the quorum's Config, by its
// address, or by its index.
func (m *meter) node(ctx context.Context, info locktrace.NodeInfo, failing int64) {
	m.nodesFailing.Record(ctx, failing, set(m.cfg.Attributes,
		keyStrategy.String(info.Strategy),
		keyNode.String(telemetry.Printable(cmp.Or(info.Name, info.Address, strconv.Itoa(info.Node))))))
}

// acquire acquires from inner, and measures the acquisition and its hold.
func (m *meter) acquire(ctx context.Context, inner locker.Locker, req locker.Request) (lock *locker.Lock, err error) {
	if !m.enabled(ctx) {
		return inner.Acquire(ctx, req)
	}
	base := m.base(req)
	watched, inside := m.observer.Begin(ctx)
	watched.Data = set(base)
	err = telemetry.ErrNoReturn
	defer func() { m.end(ctx, watched.End(lock, err), base, lock, err) }()
	lock, err = inner.Acquire(inside, req)
	return lock, err
}

// base are the attributes of all measurements of an acquisition and its hold.
func (m *meter) base(req locker.Request) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 6+len(m.cfg.Attributes))
	attrs = append(attrs, m.cfg.Attributes...)
	attrs = append(attrs, keyMode.String(req.Mode.String()))
	if m.cfg.Group != nil {
		if group := m.cfg.Group(req.Name); group != "" {
			attrs = append(attrs, keyGroup.String(telemetry.Printable(group)))
		}
	}
	return attrs
}

// set makes the option of base and more.
func set(base []attribute.KeyValue, more ...attribute.KeyValue) metric.MeasurementOption {
	all := make([]attribute.KeyValue, 0, len(base)+len(more))
	return metric.WithAttributeSet(attribute.NewSet(append(append(all, base...), more...)...))
}

func ofOutcome(outcome telemetry.Outcome, err error) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs, keyOutcome.String(string(outcome)))
	if outcome.Failed() {
		attrs = append(attrs, semconv.ErrorTypeKey.String(telemetry.ErrorType(err)))
	}
	return attrs
}

func (m *meter) end(ctx context.Context, r telemetry.Result, base []attribute.KeyValue, lock *locker.Lock, err error) {
	if r.Source.Strategy != "" {
		base = append(base, keyStrategy.String(r.Source.Strategy))
	}
	if r.Source.Client != "" {
		base = append(base, keyProvider.String(r.Source.Client))
	}
	result := append(ofOutcome(r.Outcome, err), keyContended.Bool(r.Contended))
	if r.HandedOver {
		result = append(result, keyHanded.Bool(true))
	}
	option := set(base, result...)
	m.wait.Record(ctx, r.Took.Seconds(), option)
	m.acquisitions.Add(ctx, 1, option)
	if r.Outcome != telemetry.Acquired || lock == nil || lock.Name() == "" { // the last: a test double's
		return
	}
	h := &hold{meter: m, base: base, plain: set(base), start: time.Now()}
	m.held.Add(ctx, 1, h.plain)
	m.losses.Add(ctx, 0, h.plain) // a series beginning at one shows no increase
	m.renewalFailures.Add(ctx, 0, h.plain)
	lock.Hold().Trace(ctx, &locktrace.Trace{Renewed: h.renewed, Released: h.released, Lost: h.lost})
}

// hold measures one hold, from any goroutine.
type hold struct {
	*meter
	base  []attribute.KeyValue
	plain metric.MeasurementOption
	start time.Time
	over  atomic.Bool
}

func (h *hold) renewed(ctx context.Context, info locktrace.RenewedInfo) {
	if telemetry.Overtaken(info.Err) {
		return
	}
	h.renewals.Add(ctx, 1, set(h.base, ofOutcome(telemetry.OfRenew(info.Err), info.Err)...))
	if info.Err != nil {
		h.renewalFailures.Add(ctx, 1, h.plain)
	}
}

func (h *hold) released(ctx context.Context, info locktrace.ReleasedInfo) {
	h.end(ctx, telemetry.OfRelease(info.Err), info.Err)
}

func (h *hold) lost(ctx context.Context, info locktrace.LostInfo) {
	h.end(ctx, telemetry.Lost, info.Err)
}

// end records the end of the hold, once: a lost lock may be released later.
func (h *hold) end(ctx context.Context, outcome telemetry.Outcome, err error) {
	if h.over.Swap(true) {
		return
	}
	h.held.Add(ctx, -1, h.plain)
	h.hold.Record(ctx, time.Since(h.start).Seconds(), set(h.base, ofOutcome(outcome, err)...))
	if outcome == telemetry.Lost {
		h.losses.Add(ctx, 1, h.plain)
	}
}
