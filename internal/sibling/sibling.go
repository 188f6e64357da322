// Package sibling names the keys and channels beside the key of a lock. All are in its cluster slot.
package sibling

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/argument"
)

// Of returns the name of a key or channel beside key, in the same slot of a cluster:
// "{key}suffix", or "keysuffix" if key has a hash tag of its own. ok is false if there is no such
// name, for example for "a}b", "{}x" and ""
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags).
func Of(key, suffix string) (name string, ok bool) {
	switch tag, tagged := hashTag(key); {
	case tagged && tag != "":
		return key + suffix, true
	case !hasSibling(key):
		return "", false
	default:
		return "{" + key + "}" + suffix, true
	}
}

// Waiters returns the key of the queue of waiters of a lock, a sibling of its key. Unlike
// other siblings it is not shared by "a" and "{a}": a wake-up for the other would be lost.
func Waiters(key string) (waiters string, ok bool) {
	if tag, tagged := hashTag(key); tagged && tag != "" {
		return Of(key, ":tag"+WaitersSuffix)
	}
	return Of(key, WaitersSuffix)
}

// hasSibling reports whether key has a sibling.
func hasSibling(key string) bool {
	tag, tagged := hashTag(key)
	if tagged {
		return tag != "" // with "{}" in a key the whole key is hashed
	}
	return key != "" && !strings.Contains(key, "}") // a "}" in key would end the tag around it
}

// hashTag returns the text between the first '{' and the first '}' after it.
func hashTag(key string) (tag string, ok bool) {
	_, rest, open := strings.Cut(key, "{")
	if !open {
		return "", false
	}
	tag, _, closed := strings.Cut(rest, "}")
	return tag, closed
}

// CheckKey returns a [*driver.InvalidError] for the argument what unless key can be a lock's: it has a
// sibling, and cannot be one of another lock.
func CheckKey(what, key string) error {
	for _, suffix := range [...]string{FenceSuffix, WaitersSuffix, WakeSuffix} {
		if strings.HasSuffix(key, suffix) {
			return argument.Invalid(what, fmt.Sprintf("%.64q", key),
				"one that does not end in "+suffix+", as the lock's own keys do")
		}
	}
	if !hasSibling(key) {
		return argument.Invalid(what, fmt.Sprintf("%.64q", key),
			`one with a hash tag "{...}" that is not empty, or without "}": no other key has its cluster slot otherwise`)
	}
	return nil
}

// Suffixes of the keys and channels beside a lock's key ([Of]). The key of a lock may not end
// in one of them.
const (
	FenceSuffix   = ":fence"   // the counter of fencing tokens
	WaitersSuffix = ":waiters" // the key of the queue of waiters
	WakeSuffix    = ":wake"    // the channel of releases
)
