package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// Config configures the tracing. The zero Config works.
type Config struct {
	// TracerProvider makes the spans. Default: the global one (otel.SetTracerProvider), also where
	// that is set later.
	TracerProvider trace.TracerProvider
	// Attributes are put on every span, such as server.address where the client does not report it.
	// Default: none.
	Attributes []attribute.KeyValue
	// NoLink keeps the trace context out of the Request's Note. Then those who are refused because
	// of a lock that was taken through this Middleware cannot link to its span; links to other
	// holders, who do send theirs, are still made. Default: false, the trace context of a sampled
	// span is sent.
	NoLink bool
	// ShowOwner puts owners, one's own and the holder's, into spans. On a reentrant lock, whoever
	// knows the owner can enter. Default: false. The token of a hold is never shown.
	ShowOwner bool
}

// New returns a Middleware that traces. It may wrap several Lockers.
func New(cfg Config) locker.Middleware {
	return telemetry.Middleware("tracing", newTracer(cfg).acquire)
}
