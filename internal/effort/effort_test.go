package effort_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
)

func TestOf(t *testing.T) {
	short := flag.Lookup("test.short").Value
	before := short.String()
	t.Cleanup(func() { _ = short.Set(before) }) // the old value cannot be wrong
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
		check.Must(t, short.Set(fmt.Sprint(tc.short)))
		check.Equal(t, fmt.Sprintf("HOLDFAST_TEST=%q, -short=%v", tc.mode, tc.short), effort.Of("short", "usual", "full"), tc.want)
	}
}

func TestNeedFull(t *testing.T) {
	for mode, want := range map[string]bool{"": true, "pairwise": true, "full": false} {
		t.Run(mode, func(t *testing.T) {
			t.Setenv("HOLDFAST_TEST", mode)
			defer func() {
				check.Equal(t, "skipped", t.Skipped(), want)
			}()
			effort.NeedFull(t)
		})
	}
}

func TestUnknownMode(t *testing.T) {
	t.Setenv("HOLDFAST_TEST", "quick")
	defer func() {
		const want = `HOLDFAST_TEST="quick": want pairwise, the default, or full`
		check.Equal(t, "panic", recover(), want)
	}()
	effort.Full()
}
