package single

import (
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/locker"
)

// newValue is what is stored for a new hold: a fresh token, and "|owner|note", escaped as in a URL query, where either is
// given.
func newValue(owner, note string) string {
	token := locker.NewToken()
	if owner == "" && note == "" {
		return token
	}
	return token + "|" + url.QueryEscape(owner) + "|" + url.QueryEscape(note)
}

// parseValue reads the owner and the note of a value, if it is exactly of newValue's form.
func parseValue(value string) (owner, note string, ok bool) {
	token, rest, more := strings.Cut(value, "|")
	if len(token) != locker.TokenLen || strings.Trim(token, tokenAlphabet) != "" {
		return "", "", false
	}
	if !more {
		return "", "", true
	}
	escapedOwner, escapedNote, two := strings.Cut(rest, "|")
	owner, err1 := url.QueryUnescape(escapedOwner)
	note, err2 := url.QueryUnescape(escapedNote)
	if !two || err1 != nil || err2 != nil || url.QueryEscape(owner) != escapedOwner || url.QueryEscape(note) != escapedNote {
		return "", "", false
	}
	return owner, note, owner != "" || note != ""
}

const tokenAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
