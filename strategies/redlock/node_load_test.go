package redlock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestLoadFull(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	for _, tt := range []struct {
		name string
		load nodeLoad
		want bool
	}{
		{"idle", nodeLoad{}, false},
		{"idle for long", nodeLoad{silence: time.Hour}, false},
		{"few calls, silent for long", nodeLoad{acquires: maxUnanswered - 1, behind: maxUnanswered - 1, silence: time.Hour}, false},
		{"many callers wait, and answers come", nodeLoad{acquires: 1000, silence: patience}, false},
		{"callers wait, and none comes", nodeLoad{acquires: maxUnanswered, silence: patience + 1}, true},
		{"many are behind, and answers come", nodeLoad{acquires: maxBehind, behind: maxBehind, silence: patience / 40}, false},
		{"more are behind, and answers come", nodeLoad{acquires: 320, behind: 10 * maxBehind, silence: patience / 400}, false},
		{"more are behind, and none comes", nodeLoad{acquires: 320, behind: 10 * maxBehind, silence: patience/400 + 1}, true},
		{"many are behind, and none comes", nodeLoad{acquires: maxBehind, behind: maxBehind, silence: patience/40 + 1}, true},
		{"some are behind, and none comes", nodeLoad{acquires: maxBehind, behind: maxBehind - 1, silence: patience/40 + 1}, false},
	} {
		check.Equal(t, tt.name+": full", tt.load.full(patience), tt.want)
	}
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, true},
		{&locker.OpError{Op: "acquire", Err: &locker.ContentionError{}}, true},
		{locker.ErrNotHeld, true},
		{locker.ErrLost, true}, // it was answered, too late
		{&driver.ServerError{Text: "WRONGTYPE no string"}, true},
		{fmt.Errorf("%w: no answer", locker.ErrUnknownOutcome), false},
		{driver.NotSent(errors.New("no connection was free")), false},
		{errors.New("connection refused"), false},
	} {
		check.Equal(t, fmt.Sprintf("answered(%v)", tt.err), answered(tt.err), tt.want)
	}
}
