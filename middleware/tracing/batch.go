package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// traced is a Locker whose acquisitions are traced.
type traced struct {
	locker.Locker
	tracer *tracer
}

// Unwrap returns the Locker that traces.
func (t *traced) Unwrap() locker.Locker { return t.Locker }

// AcquireBatch implements locker.BatchAcquirer. The locks are acquired before their spans begin, so
// their notes have the context of the caller's span.
func (t *traced) AcquireBatch(ctx context.Context, reqs []locker.Request) (locker.Batch, error) {
	acquirer, ok := t.Locker.(locker.BatchAcquirer)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	b := &batch{notes: make(map[string]string, len(reqs))}
	sent := make([]locker.Request, len(reqs))
	for i, req := range reqs {
		if sc := trace.SpanContextFromContext(ctx); !t.tracer.cfg.NoLink && sc.IsSampled() {
			req.Note, _ = telemetry.JoinNote(req.Note, traceparent(sc), locker.MaxNameLen)
		}
		sent[i], b.notes[req.Name] = req, req.Note
	}
	var err error
	if b.Batch, err = acquirer.AcquireBatch(ctx, sent); b.Batch == nil {
		return nil, err
	}
	return b, err
}

// batch is a Batch whose requests have notes with the context of a span added.
type batch struct {
	locker.Batch
	notes map[string]string // by name
}

type batchKey struct{}

// Context implements locker.Batch.
func (b *batch) Context(parent context.Context) context.Context {
	return context.WithValue(b.Batch.Context(parent), batchKey{}, b)
}

// batchNote returns the note that a batch in ctx sent for req.
func batchNote(ctx context.Context, req locker.Request) (note string, ok bool) {
	if !req.NoWait {
		return "", false
	}
	if b, found := ctx.Value(batchKey{}).(*batch); found {
		note, ok = b.notes[req.Name]
	}
	return note, ok
}
