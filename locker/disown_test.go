package locker_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// TestDisown checks that a Handle either keeps a hold from being continued by another Lock, or
// names no hold.
func TestDisown(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		named bool // the Handle was asked for before
		want  bool
	}{
		"no Handle":       {false, true},
		"a Handle before": {true, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			//realtime:ok no time passes
			lock := locker.NewLock(t.Context(), lease.Grant{Name: "a", Token: "token", TTL: time.Second}, nil)
			if tt.named {
				lock.Handle()
			}
			if got := lock.Hold().Disown(); got != tt.want {
				t.Errorf("Disown: %v, want %v", got, tt.want)
			}
			if token := lock.Handle().Grant().Token; (token == "token") != tt.named {
				t.Errorf("the token of the Handle is %q", token)
			}
		})
	}
	for what, lock := range map[string]*locker.Lock{"nil": nil, "zero": {}} {
		if lock.Hold().Disown() {
			t.Errorf("Disown of the %s Lock: true", what)
		}
	}
}
