package locker_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Types that a program may print, log or marshal by accident.
type (
	exported struct {
		Lock     *locker.Lock
		Handle   locker.Handle
		HoldInfo lease.HoldInfo
		Req      locker.Request
	}
	unexported struct {
		lock   *locker.Lock
		locks  []*locker.Lock
		handle locker.Handle
		byName map[string]locker.Handle
		req    locker.Request
	}
)

func printables(t *testing.T) map[string]any {
	grant := lease.HoldInfo{
		Name: "a", Owner: "me", Token: secret, Mode: locker.Shared, TTL: time.Minute, Deadline: time.Now().Add(time.Hour), Fence: 7,
	}
	lock := locker.NewLock(t.Context(), grant, &fakeLease{})
	handle := lock.Handle()
	req := locker.Request{Name: "a", Mode: locker.Shared, Resume: handle}
	lost := hold(t, &fakeLease{}, time.Minute)
	lost.Hold().MarkLost(errors.New("gone"))
	known := hold(t, &tokened{token: secret}, time.Minute)
	known.Hold().Wrap(func(inner lease.Lease) lease.Lease { return transparent{inner} })
	return map[string]any{
		"lock":               lock,
		"lost lock":          lost,
		"lock of a lease":    known, // with the token, like a strategy's lease
		"hold":               lock.Hold(),
		"handle":             handle,
		"pointer to handle":  &handle,
		"grant":              grant,
		"pointer to grant":   &grant,
		"request":            req,
		"struct":             exported{lock, handle, grant, req},
		"pointer to struct":  &exported{lock, handle, grant, req},
		"struct of the user": unexported{lock, []*locker.Lock{lock}, handle, map[string]locker.Handle{"a": handle}, req},
		"list":               []any{lock, handle, grant, req},
		"map":                map[string]any{"lock": lock, "handle": handle, "grant": grant, "req": req},
		"map by handle":      map[locker.Handle]int{handle: 1},
		"error":              fmt.Errorf("with %v, %v and %v", lock, handle, grant),
		"refusal":            &locker.ContentionError{Name: "a", Owner: "me"},
		"error of an op":     lost.Renew(t.Context(), 0),
	}
}

// wantNoToken demands that out has the token in no readable form.
func wantNoToken(t *testing.T, how, out string) {
	t.Helper()
	plain := strings.ToLower(strings.ReplaceAll(out, " ", ""))
	for _, form := range []string{
		secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))[:20], "1155199114", // its bytes
	} {
		if strings.Contains(plain, strings.ToLower(form)) {
			t.Errorf("%s shows the token: %s", how, out)
		}
	}
}

// Nothing printed, logged or marshalled by accident shows the token.
func TestTokenIsNeverShown(t *testing.T) {
	t.Parallel()
	verbs := []string{
		"%v", "%+v", "%#v", "%s", "%q", "%+q", "%#q", "%d", "%x", "%X", "% x", "%#x", "%o", "%b", "%c", "%U", "%e", "%g", "%t", "%T", "%z", "%20v", "%-5s", "%.3s",
		"no verb", "%[2]v", "%!", "%*d",
	}
	for name, v := range printables(t) {
		for _, verb := range verbs {
			wantNoToken(t, name+" by "+verb, fmt.Sprintf(verb, v))
		}
		wantNoToken(t, name+" by Sprint", fmt.Sprint(v)+fmt.Sprintln(v))
		for how, handler := range map[string]func(*bytes.Buffer) slog.Handler{
			"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
			"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		} {
			var out bytes.Buffer
			logger := slog.New(handler(&out))
			logger.Info("msg", "v", v)
			logger.With("v", v).WithGroup("g").Info("msg", slog.Any("w", v), slog.Group("h", "x", v))
			if out.Len() == 0 {
				t.Errorf("%s logged nothing of %s", how, name)
			}
			wantNoToken(t, name+" logged as "+how, out.String())
		}
		if raw, err := json.Marshal(v); err == nil {
			wantNoToken(t, name+" as JSON", string(raw))
		}
		// A HoldInfo names the token to strategies. %p prints its fields, whatever its methods.
		if !strings.Contains(name, "grant") && !slices.Contains([]string{"struct", "pointer to struct", "list", "map"}, name) {
			wantNoToken(t, name+" by %p", fmt.Sprintf("%p", v))
			var out strings.Builder
			reflected(&out, reflect.ValueOf(v), 0)
			wantNoToken(t, name+" by reflection", out.String())
		}
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	grant := lease.HoldInfo{Name: "a", Owner: "me", Token: secret}
	lock := locker.NewLock(t.Context(), lease.HoldInfo{Name: "a\nb", Owner: "me", Token: secret, Mode: locker.Shared, Fence: 7}, &fakeLease{})
	plain, lost, released := locker.NewLock(t.Context(), grant, &fakeLease{}), locker.NewLock(t.Context(), grant, &fakeLease{}), locker.NewLock(t.Context(), grant, &fakeLease{})
	lost.Hold().MarkLost(errors.New("EOF"))
	check.Error(t, "Release", released.Release(t.Context()))
	shared := `"a\nb" shared owner "me" fence 7`
	sharedLog, plainLog := `v.name="a\nb" v.mode=shared v.owner=me v.fence=7`, "v.name=a v.mode=exclusive v.owner=me v.fence=0"
	for _, tt := range []struct {
		v            any
		printed, log string
	}{
		{lock, "lock " + shared + " (held)", sharedLog + " v.held=true"},
		{plain, `lock "a" exclusive owner "me" (held)`, plainLog + " v.held=true"},
		{lost, `lock "a" exclusive owner "me" (lock was lost: EOF)`, plainLog + " v.held=false"},
		{released, `lock "a" exclusive owner "me" (lock was released)`, plainLog + " v.held=false"},
		{(*locker.Lock)(nil), "lock (not held)", "v.held=false"},
		{new(locker.Lock), "lock (not held)", "v.held=false"},
		{lock.Hold(), "lock " + shared + " (held)", sharedLog + " v.held=true"},
		{(*locker.Lock)(nil).Hold(), "lock (not held)", "v.held=false"},
		{lock.Handle(), "handle " + shared, sharedLog},
		{locker.Handle{}, "handle (zero)", `v.name="" v.mode=exclusive v.owner="" v.fence=0`},
		{lock.Handle().Info(), shared, sharedLog},
	} {
		var out bytes.Buffer
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", tt.v)
		_, logged, _ := strings.Cut(strings.TrimSpace(out.String()), "msg=m ")
		check.Equal(t, "printed", fmt.Sprint(tt.v), tt.printed)
		check.Equal(t, "logged", logged, tt.log)
	}
}

// A lock past its unnoticed end prints as lost. But printing runs no callback: the program may hold
// a mutex needed by its callback.
func TestPrintingRunsNoCallback(t *testing.T) {
	t.Parallel()
	for range 50 { // the lock's timer may be first to notice
		synctest.Test(t, func(t *testing.T) {
			lock := hold(t, &fakeLease{}, time.Second)
			mutex := make(chan struct{}, 1)
			ended := false
			lock.AfterDone(func(error) {
				mutex <- struct{}{}
				ended = true
				<-mutex
			})
			timer := time.NewTimer(time.Second) // the same instant as the lock's
			<-timer.C
			mutex <- struct{}{}
			text, value := lock.String(), lock.LogValue().String()
			<-mutex
			if !strings.Contains(text, "lost") || !strings.Contains(value, "held=false") {
				t.Errorf("printed %q, logged %q past the Deadline", text, value)
			}
			<-lock.Done()
			synctest.Wait()
			if !ended {
				t.Error("the callback did not run")
			}
		})
	}
}

// reflected prints v like test frameworks: without calling a method, and with unexported fields.
func reflected(out *strings.Builder, v reflect.Value, depth int) {
	if depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			reflected(out, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out.WriteString(" " + v.Type().Field(i).Name + ":")
			reflected(out, v.Field(i), depth+1)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			reflected(out, v.Index(i), depth+1)
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			reflected(out, entry.Key(), depth+1)
			reflected(out, entry.Value(), depth+1)
		}
	case reflect.String:
		out.WriteString(v.String())
	case reflect.Uint8:
		out.WriteByte(byte(v.Uint()))
	}
}
