package driver

import "strings"

// Sibling names a key or channel that belongs to key and, in a cluster, lives in the same slot: "{key}suffix", or
// "keysuffix" where key has a hash tag of its own. ok is false for the few keys that have no such sibling, for example
// "a}b", "{}x" and "" (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags).
func Sibling(key, suffix string) (sibling string, ok bool) {
	switch tag, tagged := hashTag(key); {
	case tagged && tag != "":
		return key + suffix, true
	case !HasSibling(key):
		return "", false
	default:
		return "{" + key + "}" + suffix, true
	}
}

// HasSibling tells whether [Sibling] can name one for key.
func HasSibling(key string) bool {
	tag, tagged := hashTag(key)
	if tagged {
		return tag != "" // "{}" switches tags off for whatever contains it
	}
	return key != "" && !strings.Contains(key, "}") // "{}" is no tag; a "}" would end a tag around key early
}

// hashTag returns what stands between the first '{' and the first '}' after it.
func hashTag(key string) (tag string, ok bool) {
	_, rest, open := strings.Cut(key, "{")
	if !open {
		return "", false
	}
	tag, _, closed := strings.Cut(rest, "}")
	return tag, closed
}

// The suffixes of the keys and channels that belong to a lock's key. A lock's name may not end in one.
const (
	FenceSuffix = ":fence" // the key that counts fencing tokens
	WakeSuffix  = ":wake"  // the channel on which releases are published
)
