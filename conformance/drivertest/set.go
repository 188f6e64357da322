package drivertest

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var setCases = []testCase{
	{
		name: "set takes a free key", on: suite.AllKinds,
		why: "SetNX is the whole acquire of an unfenced lock: it must store exactly the value, with an expiry",
		run: setTakesFreeKey,
	},
	{
		name: "set leaves a taken key alone", on: suite.AllKinds,
		why: "a strategy takes false with a nil error for contention; value and expiry belong to the holder",
		run: setLeavesTakenKey,
	},
	{
		name: "set leaves a key of another type alone", on: suite.WithoutSentinel,
		why: "SET NX replies nil on a list too; the list must not be overwritten, and no client may make it an error",
		run: setLeavesOtherType,
	},
	{
		name: "set is exact to the millisecond", on: suite.WithoutSentinel,
		why: "a client that rounds the expiry to seconds makes a short lease longer, or an error",
		run: setIsExact,
	},
	{
		name: "set carries any bytes", on: suite.WithoutSentinel,
		why: "names are any bytes, and a client that changes or cuts one lets two names share a lock",
		run: setCarriesAnyBytes,
	},
}

func setTakesFreeKey(t *caseT) {
	const ttl = time.Minute
	drv, key := t.Driver(), t.Key()
	set, err := drv.SetNX(t.Ctx, key, "value", ttl)
	t.OK(err, "SetNX")
	if !set {
		t.Fatalf("SetNX of a free key returned false")
	}
	if v, _ := t.Stored(key); v != "value" {
		t.Errorf("stored %q, want %q", v, "value")
	}
	if left := t.PTTL(key); left <= 0 || left > ttl {
		t.Errorf("the key expires in %v, want at most %v and more than 0", left, ttl)
	}
}

func setLeavesTakenKey(t *caseT) {
	drv, key := t.Driver(), t.Key()
	t.Do(key, "SET", key, "theirs", "PX", 60_000)
	for range 2 {
		set, err := drv.SetNX(t.Ctx, key, "ours", time.Hour)
		t.OK(err, "SetNX of a taken key")
		if set {
			t.Errorf("SetNX of a taken key returned true")
		}
	}
	if v, _ := t.Stored(key); v != "theirs" {
		t.Errorf("stored %q, want %q", v, "theirs")
	}
	if left := t.PTTL(key); left <= 0 || left > time.Minute {
		t.Errorf("the holder's key expires in %v, want at most a minute as before", left)
	}
}

func setLeavesOtherType(t *caseT) {
	drv, key := t.Driver(), t.Key()
	t.Do(key, "RPUSH", key, "a")
	set, err := drv.SetNX(t.Ctx, key, "ours", time.Hour)
	if set || err != nil {
		t.Errorf("SetNX on a list: %v, %v; want false and no error", set, err)
	}
	if typ := t.Do(key, "TYPE", key); typ != "list" {
		t.Errorf("the list became a %v", typ)
	}
}

func setIsExact(t *caseT) {
	drv := t.Driver()
	for _, ttl := range []time.Duration{90_500 * time.Millisecond, 60_001 * time.Millisecond, locker.MaxTTL} {
		key, began := t.Key(), time.Now()
		set, err := drv.SetNX(t.Ctx, key, "v", ttl)
		if !set || err != nil {
			t.Fatalf("SetNX with a TTL of %v: %v, %v", ttl, set, err)
		}
		t.Left(t.PTTL(key), ttl, began, "a key with a TTL of %v", ttl)
	}
	key := t.Key()
	set, err := drv.SetNX(t.Ctx, key, "v", time.Millisecond)
	if !set || err != nil {
		t.Fatalf("SetNX with a TTL of 1 ms: %v, %v", set, err)
	}
	t.Eventually("the key with a TTL of 1 ms is gone", func() bool { return !t.Exists(key) })
}

// oddTexts are texts easily changed, cut or misread by a client.
var oddTexts = map[string]string{
	"NUL": "a\x00b", "CR LF": "a\r\n$1\r\nb", "not UTF-8": "\xff\xfe\x80", "spaces": "  a  ", "quotes": `"'` + "`", "glob": "*[a]?\\",
	"braces": "{a", "long": strings.Repeat("x", 100_000), "number": "007", "nil word": "nil",
}

func setCarriesAnyBytes(t *caseT) {
	drv := t.Driver()
	for what, text := range oddTexts {
		key := t.Key() + text
		for _, value := range []string{text, ""} {
			t.Do(key, "DEL", key)
			set, err := drv.SetNX(t.Ctx, key, value, time.Minute)
			if !set || err != nil {
				t.Errorf("%s: SetNX: %v, %v", what, set, err)
				continue
			}
			if v, ok := t.Stored(key); !ok || v != value {
				t.Errorf("%s: stored %.60q, want %.60q", what, v, value)
			}
		}
	}
}

// warm connects drv and loads s into the server: the next call is one command.
func (t *caseT) warm(drv driver.Driver, s *driver.Script) {
	t.Helper()
	_, err := drv.Eval(t.Ctx, s, []string{t.Key()}, []string{"warm"})
	t.OK(err, "first Eval of a script")
}
