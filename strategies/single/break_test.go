package single_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Break ends another library's lock too, even one that never expires. A value too long to be
// compared stays.
func TestBreakForeign(t *testing.T) {
	type test struct {
		value string
		want  error
	}
	eachRun(t, single.Config{}, map[string]test{
		"a value of another library": {value: "bXkgdG9rZW4="},
		"a value of any bytes":       {value: "\x00\xff~"},
		"a value that is too long":   {value: strings.Repeat("x", 1<<16), want: errors.ErrUnsupported},
	}, func(t *testing.T, b bench, tt test) {
		check.Must(t, b.m.Set("a", tt.value))
		state, err := locker.Break(t.Context(), b, "a")
		if !errors.Is(err, tt.want) || state.Held != (tt.want == nil) || state.Owner != "" || state.Left != 0 {
			t.Errorf("Break: %+v, %v; want %v", state, err, tt.want)
		}
		check.Equal(t, "the key is still there", b.m.Exists("a"), tt.want != nil)
	})
}

// A Break without an answer leaves a later lock of another library alone, even one of the same value.
func TestBreakForeignOnce(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		for _, lost := range []fault{{Lose: true}, {Hang: true}} {
			check.Must(t, b.m.Set(name, "1"))
			b.drv.Then(fault{}, lost)
			check.Is(t, check.ErrOf(locker.Break(t.Context(), b, name)), locker.ErrUnknownOutcome)
			check.Must(t, b.m.Set(name, "1"))
			sleep(time.Minute)
			check.Equal(t, "commands", b.drv.Sent(), 2)
		}
	})
}
