package simulate

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// TestSpread checks the failures of workers counted as caused by the trouble of others.
func TestSpread(t *testing.T) {
	t.Parallel()
	p := &Plan{Contained: true, Workers: []Worker{{Client: 0}, {Client: 0, Logs: true}, {Client: 1, Logs: true}, {Client: 1, Impatient: true}, {Client: 1}}}
	event := func(worker int, kind history.Kind, outcome history.Outcome, name string, from, to int64) history.Event {
		return history.Event{Client: worker, Kind: kind, Outcome: outcome, Name: name, Call: from, Return: to}
	}
	tests := []struct {
		what   string
		events []history.Event
		spread bool
	}{
		{"all well", []history.Event{event(0, history.Acquire, history.OK, "a", 1, 2), event(0, history.Acquire, history.Refused, "a", 3, 4)}, false},
		{"one without an answer", []history.Event{event(0, history.Acquire, history.Unsettled, "a", 1, 2)}, true},
		{"one who logs", []history.Event{event(1, history.Acquire, history.Unsettled, "a", 1, 2)}, false},
		{"one who is impatient", []history.Event{event(3, history.Renew, history.Lost, "a", 1, 2)}, false},
		{"beside one who logs, for the same name", []history.Event{event(1, history.Acquire, history.Unsettled, "a", 1, 5), event(0, history.Acquire, history.Unsettled, "a", 4, 6)}, false},
		{"beside one who is impatient, for the same name", []history.Event{event(3, history.Acquire, history.Unsettled, "a", 1, 5), event(4, history.Acquire, history.Unsettled, "a", 4, 6)}, false},
		{"a renewal beside one who logs", []history.Event{event(1, history.Acquire, history.Unsettled, "a", 1, 5), event(0, history.Renew, history.Lost, "a", 4, 6)}, true},
		{"beside one who logs, for another name", []history.Event{event(1, history.Acquire, history.Unsettled, "a", 1, 5), event(0, history.Acquire, history.Unsettled, "b", 4, 6)}, true},
		{"beside one who logs at another client", []history.Event{event(2, history.Acquire, history.Unsettled, "a", 1, 5), event(0, history.Acquire, history.Unsettled, "a", 4, 6)}, true},
		{"after one who logs", []history.Event{event(1, history.Acquire, history.Unsettled, "a", 1, 3), event(0, history.Acquire, history.Unsettled, "a", 4, 6)}, true},
	}
	for _, tt := range tests {
		check.Equal(t, tt.what, p.spread(tt.events) != nil, tt.spread)
	}
}
