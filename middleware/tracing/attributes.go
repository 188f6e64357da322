package tracing

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// The attributes without a convention of OpenTelemetry. Durations are in seconds.
const (
	keyName      = attribute.Key("holdfast.lock.name")
	keyMode      = attribute.Key("holdfast.lock.mode")
	keyTTL       = attribute.Key("holdfast.lock.ttl")
	keyMinHold   = attribute.Key("holdfast.lock.min_hold")
	keyFence     = attribute.Key("holdfast.lock.fence")
	keyOwner     = attribute.Key("holdfast.lock.owner")
	keyOutcome   = attribute.Key("holdfast.outcome")
	keyAttempts  = attribute.Key("holdfast.attempts")
	keyContended = attribute.Key("holdfast.contended")
	keyWaited    = attribute.Key("holdfast.waited")
	keyRenewals  = attribute.Key("holdfast.renewals")
	keyStrategy  = attribute.Key("holdfast.strategy")
	keyProvider  = attribute.Key("holdfast.provider")

	keyHolderOwner = attribute.Key("holdfast.holder.owner")
	keyHolderNote  = attribute.Key("holdfast.holder.note")
	keyPart        = attribute.Key("holdfast.attempt.part")
	keySends       = attribute.Key("holdfast.attempt.sends")
	keyElapsed     = attribute.Key("holdfast.attempt.elapsed")
	keyQueued      = attribute.Key("holdfast.wait.queued")
	keySubscribed  = attribute.Key("holdfast.wait.subscribed")
	keyFor         = attribute.Key("holdfast.wait.for")
	keyBy          = attribute.Key("holdfast.woken.by")
	keyLink        = attribute.Key("holdfast.link")
)

// named returns an attribute for a string of any bytes.
func named(k attribute.Key, s string) attribute.KeyValue { return k.String(telemetry.Printable(s)) }

func seconds(k attribute.Key, d time.Duration) attribute.KeyValue { return k.Float64(d.Seconds()) }

// ofRequest are the attributes known before anything is sent. A sampler sees them.
func (t *tracer) ofRequest(req locker.Request) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 5+len(t.cfg.Attributes))
	attrs = append(attrs, named(keyName, req.Name), keyMode.String(req.Mode.String()))
	if req.TTL > 0 {
		attrs = append(attrs, seconds(keyTTL, req.TTL))
	}
	if req.MinHold > 0 {
		attrs = append(attrs, seconds(keyMinHold, req.MinHold))
	}
	if req.Owner != "" && t.cfg.ShowOwner {
		attrs = append(attrs, named(keyOwner, req.Owner))
	}
	return append(attrs, t.cfg.Attributes...)
}

// ofLock are the attributes of a hold.
func (t *tracer) ofLock(lock *locker.Lock) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 10+len(t.cfg.Attributes))
	attrs = append(attrs, named(keyName, lock.Name()), keyMode.String(lock.Mode().String()),
		seconds(keyTTL, lock.TTL()))
	if fence := lock.Fence(); fence != 0 {
		attrs = append(attrs, keyFence.Int64(fence))
	}
	if t.cfg.ShowOwner {
		attrs = append(attrs, named(keyOwner, lock.Owner()))
	}
	return append(t.ofSource(attrs, lock.Hold().Source()), t.cfg.Attributes...)
}

// ofSource appends the source of an event, except for keys in Config.Attributes.
func (t *tracer) ofSource(attrs []attribute.KeyValue, s locktrace.Source) []attribute.KeyValue {
	before := len(attrs)
	if s.Strategy != "" {
		attrs = append(attrs, keyStrategy.String(s.Strategy))
	}
	if s.Client != "" {
		attrs = append(attrs, keyProvider.String(s.Client))
		if s.Client != memory {
			attrs = append(attrs, semconv.DBSystemNameRedis)
		}
	}
	host, port, err := net.SplitHostPort(s.Address)
	number, err2 := strconv.Atoi(port)
	switch {
	case s.Address == "":
	case err != nil || err2 != nil || strings.Contains(s.Address, ","): // a socket, or several servers
		attrs = append(attrs, semconv.ServerAddress(s.Address))
	default:
		attrs = append(attrs, semconv.ServerAddress(host), semconv.ServerPort(number))
	}
	if len(t.cfg.Attributes) == 0 {
		return attrs
	}
	kept := slices.DeleteFunc(attrs[before:], func(a attribute.KeyValue) bool {
		return slices.ContainsFunc(t.cfg.Attributes, func(given attribute.KeyValue) bool { return given.Key == a.Key })
	})
	return attrs[:before+len(kept)]
}

// memory is the client of locker/lockertest: it has no Redis.
const memory = "memory"

// ofError are the attributes of a failure.
func ofError(attrs []attribute.KeyValue, err error) []attribute.KeyValue {
	attrs = append(attrs, semconv.ErrorTypeKey.String(telemetry.ErrorType(err)))
	if code := driver.CodeOf(err); code != "" {
		attrs = append(attrs, semconv.DBResponseStatusCode(code))
	}
	return attrs
}

// ofHolder are the attributes of a refusal.
func ofHolder(attrs []attribute.KeyValue, held *locker.ContentionError) []attribute.KeyValue {
	if held.Owner != "" {
		attrs = append(attrs, named(keyHolderOwner, held.Owner))
	}
	if held.Note != "" {
		attrs = append(attrs, named(keyHolderNote, held.Note))
	}
	return attrs
}

// internal is the kind of all spans: an instrumented client adds its own.
var internal = trace.WithSpanKind(trace.SpanKindInternal)

func with(attrs []attribute.KeyValue) trace.SpanStartEventOption {
	return trace.WithAttributes(attrs...)
}
