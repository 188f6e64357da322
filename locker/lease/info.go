package lease

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/internal/text"
)

// HoldInfo describes an acquired lock.
type HoldInfo struct {
	Name  string // the lock's name, as in the Request
	Owner string // of the hold; empty: the Lock makes a random one when needed
	// Token identifies the hold at the server; whoever knows it can release the lock. No printing,
	// logging or JSON shows it, with one exception: do not keep a HoldInfo in an unexported field,
	// because fmt would print the token there.
	Token string        `json:"-"`
	Mode  Mode          // how the lock is held
	TTL   time.Duration // the lease, also of a renewal without a TTL of its own
	// Deadline is when the lease ends by the local clock. Zero: never.
	Deadline time.Time
	Fence    int64 // the fencing token; zero: none
	// MinHold is how long the name stays taken, counted from when the Lock is made of the HoldInfo,
	// even if it is released earlier. Zero: a release frees the lock.
	MinHold time.Duration
}

// Format implements fmt.Formatter for every verb, as String does.
func (g HoldInfo) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, g.String()) }

// String returns the name, the mode, the owner and the fencing token, never the token.
func (g HoldInfo) String() string {
	s := text.Quote(g.Name) + " " + g.Mode.String() + " owner " + text.Quote(g.Owner)
	if g.Fence != 0 {
		s += " fence " + strconv.FormatInt(g.Fence, 10)
	}
	return s
}

// LogValue implements slog.LogValuer: a group of the same facts.
func (g HoldInfo) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", g.Name), slog.String("mode", g.Mode.String()), slog.String("owner", g.Owner),
		slog.Int64("fence", g.Fence),
	)
}
