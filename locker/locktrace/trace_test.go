package locktrace_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// recorder is the names of the reported events.
type recorder []string

// trace is a Trace of r with a prefix in its events.
func (r *recorder) trace(prefix string) *locktrace.Trace {
	t := new(locktrace.Trace)
	eachEvent(t, func(name string, event reflect.Value) {
		event.Set(reflect.MakeFunc(event.Type(), func([]reflect.Value) []reflect.Value {
			*r = append(*r, prefix+name)
			return nil
		}))
	})
	return t
}

// eachEvent calls f with each field of t.
func eachEvent(t *locktrace.Trace, f func(name string, event reflect.Value)) {
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		f(v.Type().Field(i).Name, v.Field(i))
	}
}

func TestWithTrace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	check.Equal(t, "Trace in a ctx without", locktrace.From(ctx), nil)
	check.Equal(t, "ctx with a nil Trace", locktrace.With(ctx, nil), ctx)
	var r recorder
	one := locktrace.With(ctx, r.trace("1 "))
	both := locktrace.With(locktrace.With(one, nil), r.trace("2 "))
	three := locktrace.With(both, r.trace("3 "))
	for _, tt := range []struct {
		ctx   context.Context
		order []string // the newest first
	}{{one, []string{"1 "}}, {both, []string{"2 ", "1 "}}, {three, []string{"3 ", "2 ", "1 "}}} {
		r = nil
		var want []string
		eachEvent(locktrace.From(tt.ctx), func(name string, event reflect.Value) {
			event.Call([]reflect.Value{reflect.ValueOf(tt.ctx), reflect.Zero(event.Type().In(1))})
			for _, prefix := range tt.order {
				want = append(want, prefix+name)
			}
		})
		check.EqualSlices(t, "events", r, want)
	}
}

// If only one of two traces has an event's callback, it is called once; if none has, neither has
// the composed Trace.
func TestWithTraceOfParts(t *testing.T) {
	t.Parallel()
	var r recorder
	outer, inner := r.trace("o "), r.trace("i ")
	outer.Acquired, outer.Lost, inner.Released, inner.Lost = nil, nil, nil, nil
	got := locktrace.From(locktrace.With(locktrace.With(t.Context(), outer), inner))
	got.Acquired(t.Context(), locktrace.AcquiredInfo{})
	got.Released(t.Context(), locktrace.ReleasedInfo{})
	if want := []string{"i Acquired", "o Released"}; !slices.Equal(r, want) || got.Lost != nil {
		t.Errorf("events %v, Lost is there: %v; want %v and none", r, got.Lost != nil, want)
	}
	if outer.Acquired != nil || inner.Released != nil {
		t.Error("composing changed a Trace of the caller")
	}
}

func TestWithoutTrace(t *testing.T) {
	t.Parallel()
	type key struct{}
	plain := context.WithValue(t.Context(), key{}, "value")
	check.Equal(t, "ctx without a Trace", locktrace.Without(plain), plain)
	traced := locktrace.With(plain, &locktrace.Trace{})
	masked := locktrace.Without(traced)
	if locktrace.From(masked) != nil || masked.Value(key{}) != "value" {
		t.Errorf("Trace %v, value %v", locktrace.From(masked), masked.Value(key{}))
	}
	other := &locktrace.Trace{}
	check.Equal(t, "Trace after that", locktrace.From(locktrace.With(masked, other)), other)
}
