package effort_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/effort"
)

func TestOf(t *testing.T) {
	short := flag.Lookup("test.short").Value
	before := short.String()
	t.Cleanup(func() { _ = short.Set(before) }) // what it was cannot be wrong
	for _, tc := range []struct {
		mode  string
		short bool
		want  string
	}{
		{"", true, "short"},
		{"full", true, "short"},
		{"", false, "usual"},
		{"pairwise", false, "usual"},
		{"full", false, "full"},
	} {
		t.Setenv("HOLDFAST_TEST", tc.mode)
		if err := short.Set(fmt.Sprint(tc.short)); err != nil {
			t.Fatal(err)
		}
		if got := effort.Of("short", "usual", "full"); got != tc.want {
			t.Errorf("HOLDFAST_TEST=%q, -short=%v: %s, want %s", tc.mode, tc.short, got, tc.want)
		}
	}
}

func TestNeedFull(t *testing.T) {
	for mode, want := range map[string]bool{"": true, "pairwise": true, "full": false} {
		t.Run(mode, func(t *testing.T) {
			t.Setenv("HOLDFAST_TEST", mode)
			defer func() {
				if got := t.Skipped(); got != want {
					t.Errorf("skipped: %v, want %v", got, want)
				}
			}()
			effort.NeedFull(t)
		})
	}
}

func TestUnknownMode(t *testing.T) {
	t.Setenv("HOLDFAST_TEST", "quick")
	defer func() {
		const want = `HOLDFAST_TEST="quick": want pairwise, the default, or full`
		if got := recover(); got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	effort.Full()
}
