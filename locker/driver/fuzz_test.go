package driver_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The keys and channels of a name share its slot. A name is refused if it has no slot, or if it
// could be one of them.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"job", "{user:1}:x", "a}b", "{}x", "x{", "a{b}c}d", "}{a}", "\x00\xff", "x:fence", "{x}:wake", ":fence", "x:waiters", strings.Repeat("x", locker.MaxNameLen+1),
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
		if valid := name != "" && len(name) <= locker.MaxNameLen && !ours && driver.HasSibling(name); valid != (err == nil) {
			t.Errorf("%q: valid: %v, but Validate says %v", name, valid, err)
		}
		for _, key := range []string{name, prefix + name} {
			checkSiblings(t, key)
		}
	})
}

func checkSiblings(t *testing.T, key string) {
	t.Helper()
	fence, ok := driver.Sibling(key, driver.FenceSuffix)
	wake, ok2 := driver.Sibling(key, driver.WakeSuffix)
	switch {
	case ok != ok2 || ok != driver.HasSibling(key):
		t.Errorf("%q has a counter: %v, a channel: %v", key, ok, ok2)
	case !ok:
		if fence != "" || wake != "" || hashed(key+"x") == hashed(key) || hashed("{"+key+"}x") == hashed(key) {
			t.Errorf("%q could have siblings; there are said to be none, or %q and %q", key, fence, wake)
		}
	case slot(fence) != slot(key) || slot(wake) != slot(key) || fence == key || wake == key || fence == wake ||
		!strings.Contains(fence, key) || !strings.HasSuffix(fence, driver.FenceSuffix) || !strings.HasSuffix(wake, driver.WakeSuffix):
		t.Errorf("%q and %q are not beside %q: slots %d, %d, %d", fence, wake, key, slot(fence), slot(wake), slot(key))
	}
}

// NewReply returns the same Reply for every Go type of a decoded value, and refuses anything else.
// The input is RESP; the values are decoded from it.
func FuzzNewReply(f *testing.F) {
	for _, reply := range []string{
		":1\r\n", "$-1\r\n", "$1\r\nx\r\n", "+OK\r\n", "*-1\r\n", "*0\r\n", "*3\r\n:1\r\n$-1\r\n$0\r\n\r\n", "*1\r\n*0\r\n", ",1.5\r\n", "#t\r\n",
		"*1\r\n-ERR no\r\n", "-ERR no\r\n", "%1\r\n+a\r\n:1\r\n", ":9223372036854775807\r\n", ":9223372036854775808\r\n",
	} {
		f.Add([]byte(reply))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		v, err := resp.NewReader(bytes.NewReader(message)).Read()
		if err != nil {
			return
		}
		value := v.Any()
		list, many := value.([]any)
		if !many {
			list = []any{value}
		}
		flat := !slices.ContainsFunc(list, func(v any) bool {
			switch v.(type) {
			case nil, int64, string:
				return false
			}
			return true
		})
		for _, shape := range []any{value, reshape(value), list, reshape(list)} {
			r, err := driver.NewReply(shape)
			switch {
			case (err == nil) != flat:
				t.Errorf("NewReply(%#v): %v", shape, err)
			case flat:
				checkReply(t, r, list)
			default:
				checkReply(t, r, []any{nil})
			}
		}
	})
}

// reshape returns a value in other types used by clients.
func reshape(value any) any {
	switch value := value.(type) {
	case int64:
		return int(value)
	case string:
		return []byte(value)
	case []any:
		other := make([]any, len(value))
		for i, v := range value {
			other[i] = reshape(v)
		}
		return other
	}
	return value
}
