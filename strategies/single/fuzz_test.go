package single_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// slotted is a driver with one key: SetNX writes it, and scripts return its value.
type slotted struct {
	adapter.Base
	value string
}

func (d *slotted) SetNX(_ context.Context, _, value string, _ time.Duration) (bool, error) {
	if d.value != "" {
		return false, nil
	}
	d.value = value
	return true, nil
}

func (d *slotted) Eval(_ context.Context, _ *driver.Script, _, args []string) (driver.Reply, error) {
	if len(args) == 0 { // inspect
		return driver.NewReply([]any{int64(1), d.value, int64(1000), int64(1), int64(0), "0", int64(0)})
	}
	return driver.NewReply([]any{int64(0), d.value, int64(1000)})
}

func (d *slotted) Subscribe(context.Context, string) (driver.Subscription, error) {
	return nil, errors.ErrUnsupported
}

func (d *slotted) Info() driver.Info { return driver.Info{} }
func (d *slotted) Close() error      { return d.Shutdown(nil) }

// Others get the owner and the note of a holder unchanged. Another library's value shows neither:
// only a value exactly in our form is parsed.
func FuzzValues(f *testing.F) {
	const token = "0123456789abcdefABCDE_"
	for _, value := range []string{
		token, token + "|o|n", "~" + token + "|o|n", "~~" + token + "|o|n", token + "||", token + "|o", token + "|%6f|n", token + "|a b|", token + "|a+b|%7C", token + "|o|n|x", "x|o|n", "|o|n",
	} {
		f.Add("", "", value)
		f.Add("o|wner", "no%te +\x00\xff", value)
	}
	f.Fuzz(func(t *testing.T, owner, note, foreign string) {
		if (locker.Request{Name: "a", Owner: owner, Note: note}).Validate() != nil {
			return
		}
		d := &slotted{}
		l := locker.Must(single.New(d, single.Config{}))
		locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a", Owner: owner, Note: note}))
		if toldOwner, toldNote := told(t, l); toldOwner != owner || toldNote != note {
			t.Errorf("%q: told %q and %q; want %q and %q", d.value, toldOwner, toldNote, owner, note)
		}
		if foreign == "" {
			return
		}
		d.value = foreign
		owner, note = told(t, l)
		foreign = strings.TrimPrefix(foreign, "~") // as a release before MinHold leaves it
		escaped, ours := foreign[:min(len(foreign), lease.TokenLen)]+"|"+url.QueryEscape(owner)+"|"+url.QueryEscape(note), owner != "" || note != ""
		if ours && (escaped != foreign || strings.Trim(foreign[:lease.TokenLen], token+"ghijklmnopqrstuvwxyzFGHIJKLMNOPQRSTUVWXYZ-") != "") {
			t.Errorf("of %q, owner %q and note %q are told", foreign, owner, note)
		}
	})
}

// told returns the owner and the note from a refused attempt, and demands the same of Inspect.
func told(t *testing.T, l *single.Locker) (owner, note string) {
	t.Helper()
	_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
	held := locktest.Refusal(t, err)
	state, err := l.Inspect(t.Context(), "a")
	if err != nil || state.Owner != held.Owner || state.Note != held.Note || !state.Held {
		t.Errorf("inspect says %+v, %v; the refusal %+v", state, err, held)
	}
	return held.Owner, held.Note
}
