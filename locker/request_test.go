package locker_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestValidateName(t *testing.T) {
	t.Parallel()
	kib := strings.Repeat("n", 1024)
	tests := []struct {
		name string
		ok   bool
	}{
		{"", false}, {"a", true}, {" ", true}, {kib, true}, {kib + "n", false}, {strings.Repeat("n", 1<<20), false},

		// Bytes, not text.
		{"\x00", true}, {"a\nb", true}, {"\xff\xfe", true}, {"é", true}, {strings.Repeat("é", 512), true}, {strings.Repeat("é", 513), false},

		// Names that a key of ours could be, or that share no slot with one.
		{"x:fence", false}, {"x:wake", false}, {":fence", false}, {"{x}:wake", false}, {"x:fenced", true}, {"x:FENCE", true},
		{":fence:x", true}, {"{}x", false}, {"a}b", false}, {"}", false}, {"{}", false}, {"{a", true}, {"{", true}, {"{a}b", true},
		{"}{a}", true}, {"{}{a}", false}, {"a{b}c{d}", true}, {"{{a}}", true},
	}
	for _, tt := range tests {
		err := locker.Request{Name: tt.name}.Validate()
		short := tt.name[:min(len(tt.name), 20)]
		if tt.ok {
			check.Error(t, short, err)
			continue
		}
		wantInvalid(t, short, err)
		if ie, ok := errors.AsType[*locker.InvalidError](err); ok && (ie.What != "Request.Name" || len(ie.Error()) > 300) {
			t.Errorf("%q: error of %d bytes about %s, want a short one about Request.Name", short, len(ie.Error()), ie.What)
		}
	}
}

// A valid name has the keys that a lock needs, in its slot, and none of them is a valid name.
func TestValidNameHasItsKeys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "{a}b", "}{a}", "{a", "a\x00", strings.Repeat("n", 1024)} {
		for _, suffix := range []string{driver.FenceSuffix, driver.WakeSuffix} {
			key, ok := driver.Sibling(name, suffix)
			if !ok {
				t.Errorf("%q has no key that ends in %s", name, suffix)
			}
			wantInvalid(t, key, locker.Request{Name: key}.Validate())
		}
	}
}

func TestValidateTTL(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tt := range []struct {
		ttl time.Duration
		ok  bool
	}{
		{0, true}, {-1, false}, {-time.Hour, false}, {1, false}, {time.Millisecond - 1, false}, {time.Millisecond, true},
		{time.Millisecond + 1, true}, {30 * time.Second, true}, {24 * day, true}, {24*day + 1, false}, {365 * day, false},
		{math.MaxInt64, false}, {math.MinInt64, false},
	} {
		l := &fakeLease{}
		lock := hold(t, l, time.Minute)
		errs := map[string]error{
			"Request.Validate": locker.Request{Name: "a", TTL: tt.ttl}.Validate(),
			"Lock.Renew":       lock.Renew(t.Context(), tt.ttl),
		}
		for what, err := range errs {
			if tt.ok {
				check.Error(t, what+" of "+tt.ttl.String(), err)
			} else {
				wantInvalid(t, what+" of "+tt.ttl.String(), err)
			}
		}
		if sent := len(l.asked()) == 1; sent != tt.ok {
			t.Errorf("Renew(%v) was sent: %v, want %v", tt.ttl, sent, tt.ok)
		}
		if lock.Err() != nil {
			t.Errorf("Renew(%v) ended the lock: %v", tt.ttl, lock.Err())
		}
	}
}

func TestValidateRest(t *testing.T) {
	t.Parallel()
	handle := func(name string, mode locker.Mode) locker.Handle {
		return locker.NewHandle(lease.Grant{Name: name, Mode: mode, Token: secret})
	}
	kib := strings.Repeat("o", 1024)
	type test struct {
		req  locker.Request
		what string // "": valid
	}
	check.Each(t, map[string]test{
		//realtime:ok a value, no lease
		"all that there is": {locker.Request{Mode: locker.Shared, TTL: time.Second, MaxWait: 1, NoWait: true, Fenced: true, Owner: kib, Note: kib}, ""},
		"mode 2":            {locker.Request{Mode: 2}, "Request.Mode"},
		"mode 7":            {locker.Request{Mode: 7}, "Request.Mode"},
		"mode 255":          {locker.Request{Mode: 255}, "Request.Mode"},
		"permits":           {locker.Request{Permits: math.MaxInt}, ""},
		"negative permits":  {locker.Request{Permits: -1}, "Request.Permits"},
		"MinHold":           {locker.Request{MinHold: 24 * 24 * time.Hour}, ""},
		//realtime:ok a value, no lease
		"MinHold as long as TTL": {locker.Request{TTL: time.Second, MinHold: time.Second}, ""},
		//realtime:ok a value, no lease
		"MinHold longer than TTL": {locker.Request{TTL: time.Second, MinHold: time.Second + 1}, "Request.MinHold"},
		"negative MinHold":        {locker.Request{MinHold: -1}, "Request.MinHold"},
		"short MinHold":           {locker.Request{MinHold: time.Millisecond - 1}, "Request.MinHold"},
		"long MinHold":            {locker.Request{MinHold: 24*24*time.Hour + 1}, "Request.MinHold"},
		"negative MaxWait":        {locker.Request{MaxWait: -1}, "Request.MaxWait"},
		"long owner":              {locker.Request{Owner: kib + "o"}, "Request.Owner"},
		"long note":               {locker.Request{Note: kib + "n"}, "Request.Note"},
		"resume":                  {locker.Request{Resume: handle("a", locker.Exclusive)}, ""},
		"resume of another name":  {locker.Request{Resume: handle("b", locker.Exclusive)}, "Request.Resume"},
		"resume of another mode":  {locker.Request{Resume: handle("a", locker.Shared)}, "Request.Resume"},
		"resume of nothing":       {locker.Request{Resume: handle("b", locker.Shared), Mode: locker.Shared}, "Request.Resume"},
		"zero handle":             {locker.Request{Resume: locker.NewHandle(lease.Grant{Name: "b"})}, ""},
	}, func(t *testing.T, tt test) {
		tt.req.Name = "a"
		err := tt.req.Validate()
		if tt.what == "" {
			check.Error(t, "Validate", err)
			return
		}
		wantInvalid(t, "Validate", err)
		if ie, ok := errors.AsType[*locker.InvalidError](err); ok && ie.What != tt.what {
			t.Errorf("error about %s, want %s", ie.What, tt.what)
		}
	})
}
