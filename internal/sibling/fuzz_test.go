package sibling_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
)

// The keys and channels of a name share its slot. A name is refused if it has no slot, or if it
// could be one of them.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"job", "{user:1}:x", "a}b", "{}x", "x{", "a{b", "a{b}c}d", "}{a}", "\x00\xff", "x:fence", "{x}:wake", ":fence", "x:waiters", strings.Repeat("x", locker.MaxNameLen+1),
	} {
		f.Add("", name)
		f.Add("app:{t", name)
	}
	f.Fuzz(func(t *testing.T, prefix, name string) {
		err := locker.Request{Name: name}.Validate()
		if _, typed := errors.AsType[*locker.InvalidError](err); err != nil && (!typed || !errors.Is(err, locker.ErrInvalid)) {
			t.Errorf("%q: %v is no InvalidError", name, err)
		}
		ours := strings.HasSuffix(name, ":fence") || strings.HasSuffix(name, ":waiters") || strings.HasSuffix(name, ":wake")
		if valid := name != "" && len(name) <= locker.MaxNameLen && !ours && hasCounter(name); valid != (err == nil) {
			t.Errorf("%q: valid: %v, but Validate says %v", name, valid, err)
		}
		for _, key := range []string{name, prefix + name} {
			checkSiblings(t, key)
		}
	})
}

func checkSiblings(t *testing.T, key string) {
	t.Helper()
	fence, ok := sibling.Of(key, sibling.FenceSuffix)
	wake, ok2 := sibling.Of(key, sibling.WakeSuffix)
	waiters, ok3 := sibling.Waiters(key)
	tagged, _ := sibling.Waiters("{" + key + "}")
	switch {
	case ok != ok2 || ok != ok3:
		t.Errorf("%q has a counter: %v, a channel: %v, a queue: %v", key, ok, ok2, ok3)
	case !ok:
		if fence != "" || wake != "" || waiters != "" || hashed(key+"x") == hashed(key) || hashed("{"+key+"}x") == hashed(key) {
			t.Errorf("%q could have siblings; there are said to be none, or %q and %q", key, fence, wake)
		}
	case slot(fence) != slot(key) || slot(wake) != slot(key) || fence == key || wake == key || fence == wake ||
		!strings.Contains(fence, key) || !strings.HasSuffix(fence, sibling.FenceSuffix) || !strings.HasSuffix(wake, sibling.WakeSuffix):
		t.Errorf("%q and %q are not beside %q: slots %d, %d, %d", fence, wake, key, slot(fence), slot(wake), slot(key))
	case slot(waiters) != slot(key) || !strings.Contains(waiters, key) || !strings.HasSuffix(waiters, sibling.WaitersSuffix):
		t.Errorf("%q is not beside %q: slots %d, %d", waiters, key, slot(waiters), slot(key))
	case waiters == tagged:
		t.Errorf("%q and %q share the queue %q", key, "{"+key+"}", waiters)
	}
}

// hasCounter reports whether a key has a counter beside it.
func hasCounter(key string) bool {
	_, ok := sibling.Of(key, sibling.FenceSuffix)
	return ok
}
