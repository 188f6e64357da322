package resolve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Each story lists the events of an acquire's sends, in order: "send" without an answer that can
// still come, "wait" with one; "late refused", "late won" and "late lost" answers; "found" executed
// by a later send or a try; "absent" by a try.
func TestLedger(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		story   string
		present int
		settled bool
	}{
		{"", 0, true},
		{"send", 0, false},
		{"wait", 0, false},
		{"wait, late refused", 0, true},
		{"wait, late lost", 0, false},
		{"wait, late won", 1, false},
		{"wait, late won, found", 0, true},
		{"wait, late won, absent", 0, true},
		{"wait, found", 0, true},
		{"wait, found, late won", 0, true},
		{"wait, found, late refused", 0, true},
		{"wait, found, late lost", 0, true},
		{"wait, absent", 0, false},
		{"send, wait, late refused", 0, false},
		{"send, wait, late refused, found", 0, true},
		{"send, wait, found", 0, false},
		{"send, wait, found, late won", 0, false},
		{"send, wait, found, late won, found", 0, true},
		{"wait, wait, late won, late refused", 1, false},
		{"wait, wait, late won, late refused, found", 0, true},
		{"wait, wait, found, late refused, late won", 0, true},
	} {
		var l ledger
		for event := range strings.SplitSeq(tt.story, ", ") {
			switch event {
			case "send":
				l = l.unanswered(false)
			case "wait":
				l = l.unanswered(true)
			case "late refused":
				l = l.answered(Refused)
			case "late won":
				l = l.answered(Acquired)
			case "late lost":
				l = l.answered(Unclear)
			case "found":
				l = l.executed()
			case "absent":
				l = l.absent(l)
			}
		}
		if l.present != tt.present || l.settled() != tt.settled {
			t.Errorf("%s: %+v, settled: %v; want present %d, settled: %v", tt.story, l, l.settled(), tt.present, tt.settled)
		}
	}
}

// A try's "absent" does not cover a hold that began during the try.
func TestLedgerAbsentOfATimeBefore(t *testing.T) {
	t.Parallel()
	before := ledger{}.unanswered(true)
	after := before.answered(Acquired).absent(before)
	check.Equal(t, "holds, after a try that was asked before the hold was there", after.present, 1)
}

func TestPause(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tries int
		age   time.Duration
		want  time.Duration
	}{
		{1, 0, 10 * time.Millisecond},
		{2, 10 * time.Millisecond, 20 * time.Millisecond},
		{7, 630 * time.Millisecond, 640 * time.Millisecond},
		{8, 1270 * time.Millisecond, time.Second},
		{12, 5 * time.Second, time.Second},
		{37, 30 * time.Second, time.Second},
		{38, time.Minute, 2 * time.Second},
		{99, 10 * time.Minute, 20 * time.Second},
		{99, time.Hour, 30 * time.Second},
	} {
		check.Equal(t, fmt.Sprintf("pause(%d, %v)", tt.tries, tt.age), pause(tt.tries, tt.age), tt.want)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	var b budget
	now := time.Now()
	spend := func(price int) (n int) {
		for b.spend(price, now) {
			n++
		}
		return n
	}
	check.Equal(t, "calls at once", spend(costAnswered), 100)
	check.Equal(t, "what is free is allowed", b.spend(0, now), true)
	check.Equal(t, "time until the next call", b.wait(costAnswered, now), 10*time.Millisecond)
	now = now.Add(500 * time.Millisecond)
	check.Equal(t, "more calls after half a second", spend(costAnswered), 50)
	now = now.Add(time.Hour)
	check.Equal(t, "calls at once where nothing answers", spend(costSilent), 1000)
}
