package lease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// wrapper is a Lease that wraps another one.
type wrapper struct{ inner lease.Lease }

func (*wrapper) Do(context.Context, lease.Op) (lease.Term, error) {
	return lease.Term{}, errors.ErrUnsupported
}
func (w *wrapper) Unwrap() lease.Lease { return w.inner }

// tokened is a Lease that has a token.
type tokened struct{ wrapper }

func (*tokened) Token() string { return "token" }

func TestFind(t *testing.T) {
	t.Parallel()
	itself, first, second := &wrapper{}, &wrapper{}, &wrapper{}
	itself.inner, first.inner, second.inner = itself, second, first
	tests := []struct {
		name  string
		l     lease.Lease
		found bool
	}{
		{"nil", nil, false},
		{"itself", &tokened{}, true},
		{"behind two wrappers", &wrapper{&wrapper{&tokened{}}}, true},
		{"a wrapper of nothing", &wrapper{}, false},
		{"a wrapper of itself", itself, false},
		{"two that wrap each other", first, false},
		{"before a wrapper of itself", &wrapper{&tokened{wrapper{itself}}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, ok := lease.Find[lease.Tokened](tt.l); ok != tt.found {
				t.Errorf("found: %v, want %v", ok, tt.found)
			}
		})
	}
}
