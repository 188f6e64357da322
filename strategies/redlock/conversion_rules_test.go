package redlock

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
)

func TestModeAfterConversion(t *testing.T) {
	t.Parallel()
	exclusive, shared, unsure := locker.Exclusive, locker.Shared, unknownMode
	var held error = &locker.ContentionError{}
	for _, tt := range []struct {
		name   string
		before locker.Mode
		to     locker.Mode
		err    error
		want   locker.Mode
	}{
		{"upgraded", shared, locker.Exclusive, nil, exclusive},
		{"downgraded", exclusive, locker.Shared, nil, shared},
		{"upgraded, after an unknown outcome", unsure, locker.Exclusive, nil, exclusive},
		{"downgraded, after an unknown outcome", unsure, locker.Shared, nil, shared},
		{"in flight", exclusive, locker.Shared, errUnanswered, unsure},
		{"an upgrade without an answer", shared, locker.Exclusive, locker.ErrUnknownOutcome, unsure},
		{"an upgrade that others refuse", shared, locker.Exclusive, held, shared},
		{"refused, after an unknown outcome", unsure, locker.Exclusive, held, shared},
		{"not supported", shared, locker.Exclusive, errors.ErrUnsupported, shared},
		{"not supported, after an unknown outcome", unsure, locker.Shared, errors.ErrUnsupported, unsure},
		{"asked for what it is", exclusive, locker.Exclusive, locker.ErrUnknownOutcome, exclusive},
		{"shared, and asked for that", shared, locker.Shared, errNodeDown, shared},
	} {
		if got := modeAfter(tt.before, tt.to, tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestUpgradeVerdict(t *testing.T) {
	t.Parallel()
	var held error = &locker.ContentionError{Owner: "another"}
	missed := errors.New("1 of 3 nodes did")
	for _, tt := range []struct {
		name      string
		outcomes  []error // of three nodes, of which two are needed
		missed    error
		want      error
		contended bool
	}{
		{"two refuse", []error{held, held, nil}, missed, locker.ErrNotAcquired, true},
		{"one refuses, and would do", []error{held, errNodeDown, nil}, missed, locker.ErrNotAcquired, true},
		{"one refuses, two failed", []error{held, errNodeDown, errNodeDown}, missed, missed, false},
		{"all failed", []error{errNodeDown, errNodeDown, errNodeDown}, missed, missed, false},
		{"lost, whatever refused", []error{held, held, locker.ErrNotHeld}, locker.ErrLost, locker.ErrLost, false},
		{"a quorum did not last", []error{nil, nil, errNodeDown}, missed, missed, false},
	} {
		err := answersOf(true, tt.outcomes...).upgradeVerdict(tt.missed)
		if !errors.Is(err, tt.want) || errors.Is(err, locker.ErrNotAcquired) != tt.contended {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}
