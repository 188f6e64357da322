package sibling_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/sibling"
)

// slot returns the cluster slot of a key, written from the specification and not from the code
// under test: CRC16/XMODEM of the key, or of its hash tag, modulo 16384
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model).
func slot(key string) uint16 {
	var crc uint16
	for _, b := range []byte(hashed(key)) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

// hashed returns the hashed part of a key, as keyHashSlot in cluster.c does.
func hashed(key string) string {
	open := 0
	for open < len(key) && key[open] != '{' {
		open++
	}
	if open == len(key) {
		return key
	}
	end := open + 1
	for end < len(key) && key[end] != '}' {
		end++
	}
	if end == len(key) || end == open+1 {
		return key
	}
	return key[open+1 : end]
}

func TestSlotOfTheTestItself(t *testing.T) {
	t.Parallel()
	// CLUSTER KEYSLOT on a server.
	for key, want := range map[string]uint16{
		"": 0, "123456789": 12739, "foo": 12182, "{foo}.bar": 12182, "x{foo}": 12182, "{}foo": 9500, "foo{": 7673,
	} {
		if got := slot(key); got != want {
			t.Errorf("slot(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, want string // "": there is none
	}{
		{"a", "{a}:fence"}, {"user:1", "{user:1}:fence"}, {"{a", "{{a}:fence"}, {"a{", "{a{}:fence"}, {"{{", "{{{}:fence"},
		{"{a}", "{a}:fence"}, {"{a}b", "{a}b:fence"}, {"b{a}c}", "b{a}c}:fence"}, {"}{a}", "}{a}:fence"}, {"{{a}", "{{a}:fence"},
		{"\x00\n", "{\x00\n}:fence"}, {"é", "{é}:fence"}, {"\xff", "{\xff}:fence"},
		{"", ""}, {"}", ""}, {"a}b", ""}, {"{}", ""}, {"{}x", ""}, {"{}{a}", ""}, {"}{", ""}, {"a}{", ""},
	} {
		got, ok := sibling.Of(tt.key, sibling.FenceSuffix)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("Of(%q) = %q, %v; want %q", tt.key, got, ok, tt.want)
		}
	}
}

func TestWaiters(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"a": "{a}:waiters", "{a}": "{a}:tag:waiters", "a{b": "{a{b}:waiters", "{a{b}": "{a{b}:tag:waiters", "a}b": "",
	} {
		if got, ok := sibling.Waiters(key); got != want || ok != (want != "") {
			t.Errorf("Waiters(%q) = %q, %v; want %q", key, got, ok, want)
		}
	}
}
