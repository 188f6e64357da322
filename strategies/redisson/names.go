package redisson

import (
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Prefixes of the names beside a lock's key, those of RFencedLock and RLock.
const (
	counterPrefix = "redisson_lock_token:"
	channelPrefix = "redisson_lock__channel:"
)

// siblings names the counter and the channel as Redisson does: prefix:{key}, or prefix:key if the key
// has a "{". It refuses two kinds of keys: one with a "{" and no "}", whose siblings have other slots
// in a cluster, and one that could be a counter.
func siblings(key string) (counter, channel string, ok bool) {
	name := key
	switch open, closed := strings.Contains(key, "{"), strings.Contains(key, "}"); {
	case open != closed, strings.HasPrefix(key, counterPrefix):
		return "", "", false
	case !open:
		name = "{" + key + "}"
	}
	return counterPrefix + name, channelPrefix + name, true
}

// thread stands for the ID of a thread in a field of ours. Go has none.
const thread = ":1"

// newValue returns the field of a new hold: "<id>:1" with a fresh token as the ID, and "|owner|note",
// escaped as in a URL query, if either is given.
func newValue(owner, note string, _ int) string {
	id := lease.NewToken() + thread
	if owner == "" && note == "" {
		return id
	}
	return id + "|" + url.QueryEscape(owner) + "|" + url.QueryEscape(note)
}

// maxValue is the length of the longest field of a hold: escaping makes three bytes of one.
const maxValue = lease.TokenLen + len(thread) + len("||") + 2*3*locker.MaxNameLen

// parseValue returns the owner and the note of a field; both are empty unless it is exactly of
// newValue's form, or of the form kept by a release.
func parseValue(value string) (owner, note string) {
	id, names, _ := strings.Cut(strings.TrimPrefix(value, "~"), "|")
	token, ours := strings.CutSuffix(id, thread)
	escapedOwner, escapedNote, two := strings.Cut(names, "|")
	owner, err1 := url.QueryUnescape(escapedOwner)
	note, err2 := url.QueryUnescape(escapedNote)
	if !ours || !lease.IsToken(token) || !two || err1 != nil || err2 != nil ||
		url.QueryEscape(owner) != escapedOwner || url.QueryEscape(note) != escapedNote {
		return "", ""
	}
	return owner, note
}
