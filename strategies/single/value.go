package single

import (
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// newValue returns the value of a new hold: a fresh token, and "|owner|note", escaped as in a URL
// query, if either is given.
func newValue(owner, note string, _ int) string {
	token := lease.NewToken()
	if owner == "" && note == "" {
		return token
	}
	return token + "|" + url.QueryEscape(owner) + "|" + url.QueryEscape(note)
}

// maxValue is the length of the longest value of a hold: escaping makes three bytes of one.
const maxValue = lease.TokenLen + len("||") + 2*3*locker.MaxNameLen

// parseValue returns the owner and the note of a value; both are empty unless it is exactly of
// newValue's form, or of the form kept by a release.
func parseValue(value string) (owner, note string) {
	value = strings.TrimPrefix(value, "~")
	token, rest, more := strings.Cut(value, "|")
	if len(token) != lease.TokenLen || strings.Trim(token, tokenAlphabet) != "" || !more {
		return "", ""
	}
	escapedOwner, escapedNote, two := strings.Cut(rest, "|")
	owner, err1 := url.QueryUnescape(escapedOwner)
	note, err2 := url.QueryUnescape(escapedNote)
	if !two || err1 != nil || err2 != nil || url.QueryEscape(owner) != escapedOwner ||
		url.QueryEscape(note) != escapedNote {
		return "", ""
	}
	return owner, note
}

const tokenAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
