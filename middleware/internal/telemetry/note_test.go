package telemetry_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

const valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestJoinNote(t *testing.T) {
	t.Parallel()
	room := locker.MaxNameLen - len(" traceparent="+valid)
	type test struct {
		note, want string
		ok         bool
	}
	check.Each(t, map[string]test{
		"none":            {"", "traceparent=" + valid, true},
		"one":             {"nightly run", "nightly run traceparent=" + valid, true},
		"not UTF-8":       {"\xff\x00", "\xff\x00 traceparent=" + valid, true},
		"ends in a space": {"a ", "a  traceparent=" + valid, true},
		"just fits":       {strings.Repeat("n", room), strings.Repeat("n", room) + " traceparent=" + valid, true},
		"too long":        {strings.Repeat("n", room+1), strings.Repeat("n", room+1), false},
		"has one already": {"a traceparent=" + valid, "a traceparent=" + valid, false},
	}, func(t *testing.T, tt test) {
		got, ok := telemetry.JoinNote(tt.note, valid, locker.MaxNameLen)
		if got != tt.want || ok != tt.ok || len(got) > max(locker.MaxNameLen, len(tt.note)) {
			t.Fatalf("joined %q, %v; want %q, %v", got, ok, tt.want, tt.ok)
		}
		if user, found := telemetry.SplitNote(got); tt.ok && (user != tt.note || found != valid) {
			t.Errorf("split %q, %q", user, found)
		}
	})
}

// A note that is not exactly in our form belongs to the user.
func TestSplitNoteOfOthers(t *testing.T) {
	t.Parallel()
	for name, note := range map[string]string{
		"empty":                 "",
		"a user's":              "nightly",
		"no mark":               valid,
		"another mark":          "tracestate=" + valid,
		"upper case":            "traceparent=" + strings.ToUpper(valid),
		"version 01":            "traceparent=01" + valid[2:],
		"version ff":            "traceparent=ff" + valid[2:],
		"no trace ID":           "traceparent=00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"no span ID":            "traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"no flags":              "traceparent=" + valid[:len(valid)-3],
		"flags of the future":   "traceparent=" + valid[:len(valid)-2] + "04",
		"flags of one digit":    "traceparent=" + valid[:len(valid)-1],
		"more behind":           "traceparent=" + valid + " x",
		"line break behind":     "traceparent=" + valid + "\n",
		"glued":                 "nightlytraceparent=" + valid,
		"a space and no note":   " traceparent=" + valid,
		"no hex":                "traceparent=00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
		"dashes elsewhere":      "traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736a-0f067aa0ba902b7-01",
		"a dash in the IDs":     "traceparent=00-4bf92f3577b34da6-3ce929d0e0e4736-00f067aa0ba902b7-01",
		"escaped":               "traceparent%3D" + valid,
		"multi-byte characters": "traceparent=00-４bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	} {
		if user, found := telemetry.SplitNote(note); user != note || found != "" {
			t.Errorf("%s: %q is split into %q and %q", name, note, user, found)
		}
	}
}

// OpenTelemetry accepts every traceparent found in a note, and nothing of the note is lost.
func FuzzSplitNote(f *testing.F) {
	for _, seed := range []string{
		"", "nightly", "traceparent=" + valid, "a b traceparent=" + valid, "traceparent=" + valid + " traceparent=" + valid,
		"traceparent=" + strings.ToUpper(valid), " traceparent=" + valid, "traceparent=ff" + valid[2:], "\xff traceparent=" + valid,
		"traceparent=00-00000000000000000000000000000000-00f067aa0ba902b7-01", "x" + strings.Repeat(" traceparent="+valid, 20),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, note string) {
		user, found := telemetry.SplitNote(note)
		if found == "" {
			if user != note {
				t.Fatalf("%q became %q", note, user)
			}
			return
		}
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": found})
		sc := trace.SpanContextFromContext(ctx)
		if !sc.IsValid() || found[3:35] != sc.TraceID().String() || found[36:52] != sc.SpanID().String() {
			t.Fatalf("%q: found %q, which OpenTelemetry reads as %v", note, found, sc)
		}
		if rejoined, ok := telemetry.JoinNote(user, found, len(note)); ok && rejoined != note {
			t.Fatalf("%q: split into %q and %q, rejoined to %q", note, user, found, rejoined)
		}
	})
}
