package redlock

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
)

func TestReleaseVerdict(t *testing.T) {
	t.Parallel()
	notHeld, late := locker.ErrNotHeld, errUnanswered
	for _, tt := range []struct {
		name     string
		outcomes []error // of three nodes, of which two are needed
		want     error   // nil: released
	}{
		{"all released", []error{nil, nil, nil}, nil},
		{"a quorum released", []error{nil, nil, errNodeDown}, nil},
		{"two did not hold it", []error{nil, notHeld, notHeld}, locker.ErrLost},
		{"none held it", []error{notHeld, notHeld, notHeld}, locker.ErrLost},
		{"one that has not answered may hold it", []error{nil, notHeld, late}, locker.ErrUnknownOutcome},
		{"two deny it, one has not answered", []error{errNodeDenies, errNodeDenies, late}, locker.ErrUnknownOutcome},
		{"one failed", []error{nil, notHeld, errNodeDown}, errNodeDown},
	} {
		err := answersOf(true, tt.outcomes...).releaseVerdict()
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if !errors.Is(tt.want, locker.ErrNotHeld) && errors.Is(err, locker.ErrNotHeld) {
			t.Errorf("%s: %v is no loss", tt.name, err)
		}
	}
}
