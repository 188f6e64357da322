package locker

import (
	"encoding/base64"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// handleForm marks an encoded Handle and its version.
const handleForm = "holdfast1."

// Handle identifies a hold, so that another process can take it over ([Resume]). Whoever has it can
// release the lock. Encode and Info return the token; printing and logging do not show it.
type Handle struct {
	facts lease.HoldInfo          // without the token
	token *atomic.Pointer[string] // nil in the zero Handle; atomic pointers are not printed: see hidden
}

// newHandle returns the Handle of a hold.
func newHandle(g lease.HoldInfo) Handle {
	if g.Token == "" {
		return Handle{}
	}
	made := &struct { // one allocation for both
		pointer atomic.Pointer[string]
		token   string
	}{token: g.Token}
	made.pointer.Store(&made.token)
	g.Token = ""
	return Handle{g, &made.pointer}
}

// Info returns the description of the hold with its token. It is for strategies. After ParseHandle
// the Deadline is zero.
func (h Handle) Info() lease.HoldInfo {
	g := h.facts
	if h.token != nil {
		g.Token = *h.token.Load()
	}
	return g
}

// WithToken returns a copy of h with another token. It is for strategies: a quorum passes each node
// a Handle with the node's token.
func (h Handle) WithToken(token string) Handle {
	info := h.facts
	info.Token = token
	return newHandle(info)
}

// Name returns the lock's name.
func (h Handle) Name() string { return h.facts.Name }

// Mode returns how the lock is held.
func (h Handle) Mode() Mode { return h.facts.Mode }

// Owner returns the owner of the hold.
func (h Handle) Owner() string { return h.facts.Owner }

// Fence returns the fencing token, or zero if there is none.
func (h Handle) Fence() int64 { return h.facts.Fence }

// IsZero reports whether h identifies no hold.
func (h Handle) IsZero() bool { return h.token == nil }

// validate checks an argument of caller.
func (h Handle) validate(caller string) error {
	if h.IsZero() {
		return argument.Invalid(caller+" handle", "the zero Handle", "a Handle of a held Lock")
	}
	return nil
}

// wireHandle holds bytes, not strings: JSON would replace invalid UTF-8.
type wireHandle struct {
	Name, Owner, Token []byte
	Mode               Mode          `json:",omitempty"`
	TTL                time.Duration `json:",omitempty"`
	Fence              int64         `json:",omitempty"`
	MinHold            time.Duration `json:",omitempty"`
}

// Encode returns h as text of letters, digits, '-', '_' and one '.', with its token: keep it as
// secret as a password. The zero Handle is encoded as "".
func (h Handle) Encode() string {
	if h.IsZero() {
		return ""
	}
	g := h.Info()
	raw, err := json.Marshal(wireHandle{[]byte(g.Name), []byte(g.Owner), []byte(g.Token), g.Mode, g.TTL, g.Fence,
		g.MinHold})
	if err != nil {
		panic(err) // bytes and integers always marshal
	}
	return handleForm + base64.RawURLEncoding.EncodeToString(raw)
}

// ParseHandle parses the text of Encode. Any other text is ErrInvalid; the error does not repeat
// it.
func ParseHandle(s string) (Handle, error) {
	bad := argument.Invalid("ParseHandle argument", "text of another form", "what Handle.Encode returned")
	if len(s) < len(handleForm) || s[:len(handleForm)] != handleForm {
		return Handle{}, bad
	}
	raw, err := base64.RawURLEncoding.DecodeString(s[len(handleForm):])
	if err != nil {
		return Handle{}, bad
	}
	var w wireHandle
	if json.Unmarshal(raw, &w) != nil || len(w.Token) == 0 || w.Fence < 0 || w.Mode > Shared {
		return Handle{}, bad
	}
	if validateName(string(w.Name)) != nil || validateTTL("", w.TTL) != nil || len(w.Owner) > MaxNameLen ||
		(Request{MinHold: w.MinHold}).validateMinHold() != nil {
		return Handle{}, bad
	}
	h := newHandle(lease.HoldInfo{
		Name: string(w.Name), Owner: string(w.Owner), Token: string(w.Token), Mode: w.Mode, TTL: w.TTL, Fence: w.Fence,
		MinHold: w.MinHold,
	})
	if h.Encode() != s { // the decoders skip line breaks, unknown fields and more
		return Handle{}, bad
	}
	return h, nil
}
