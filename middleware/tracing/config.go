package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// Config configures the tracing. The zero Config works.
type Config struct {
	// TracerProvider makes the spans. Default: the global one (otel.SetTracerProvider), even if it
	// is set later.
	TracerProvider trace.TracerProvider
	// Attributes are put on every span, such as a server.address not reported by the client.
	// Default: none.
	Attributes []attribute.KeyValue
	// NoLink keeps the trace context out of the Request's Note. Then a caller refused because of a
	// lock of this Middleware cannot link to the holder's span. This Middleware still links to
	// other holders that send theirs. Default: false, the trace context of a sampled span is sent.
	NoLink bool
	// ShowOwner puts owners, one's own and the holder's, into spans. On a reentrant lock, whoever
	// knows the owner can enter. Default: false. The token of a hold is never shown.
	ShowOwner bool
}

// New returns a Middleware that traces. It may wrap several Lockers.
func New(cfg Config) locker.Middleware {
	return telemetry.Middleware("tracing", newTracer(cfg).acquire)
}
