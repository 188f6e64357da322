package driver_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
)

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
