package conformance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

var wrongTypeCases = []testCase{
	{
		name: "a key of another type is an error", contract: 3, on: suite.WithoutSentinel,
		why: "data of another program under the lock's name is not a held lock, and must not be removed",
		run: otherTypeIsAnError,
	},
	{
		name: "a key that changed its type is a lost lock", contract: 3, on: suite.WithoutSentinel,
		why: "what is stored there now is not the hold, and is left alone",
		run: changedTypeIsLost,
	},
	{
		name: "a huge foreign value is not read", contract: 3, on: suite.OnlySingle, own: true,
		why: "every refusal would transfer the whole value, and delay the server and everybody else",
		run: hugeValueIsNotRead,
	},
	{
		name: "a fence key without a number is an error", contract: 3, on: suite.WithoutSentinel,
		why: "tokens that started again would be lower than those in use; and the lock must not stay half acquired",
		run: fenceKeyWithoutNumber,
	},
	{
		name: "a fence key that changed its type is left alone", contract: 3, on: suite.WithoutSentinel,
		why: "a renewal that sets an expiry there removes another program's data a day later",
		run: changedFenceKeyIsLeftAlone,
	},
}

// otherTypes are types of keys other than locks, with the commands to make and show one.
func (t *caseT) otherTypes() map[string][2][]any {
	types := map[string][2][]any{
		"list": {{"RPUSH", "a", "b"}, {"LRANGE", 0, -1}},
		"set":  {{"SADD", "a"}, {"SMEMBERS"}},
		"hash": {{"HSET", "field", "a"}, {"HGETALL"}}, // without the field of a lock
	}
	if t.h.Can.Hash {
		types["string"] = [2][]any{{"SET", "a"}, {"GET"}}
	}
	return types
}

// on inserts a key into a command.
func on(key string, command []any) []any {
	return append([]any{command[0], key}, command[1:]...)
}

func otherTypeIsAnError(t *caseT) {
	l := t.direct()
	for typ, commands := range t.otherTypes() {
		for _, fenced := range []bool{false, true} {
			name := t.Key()
			t.Do(name, on(name, commands[0])...)
			before := fmt.Sprint(t.Do(name, on(name, commands[1])...))
			lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long, Fenced: fenced})
			if lock != nil || err == nil {
				t.Fatalf("Acquire where a %s is stored: %v, %v; want an error", typ, lock, err)
			}
			t.isNot(err, locker.ErrNotAcquired, "Acquire where a %s is stored", typ)
			t.isNot(err, locker.ErrUnknownOutcome, "Acquire where a %s is stored", typ)
			if !strings.Contains(err.Error(), "WRONGTYPE") && !strings.Contains(err.Error(), "type") {
				t.Errorf("Acquire where a %s is stored reports %q, which does not report what is wrong", typ, err)
			}
			if after := fmt.Sprint(t.Do(name, on(name, commands[1])...)); after != before ||
				t.PTTL(name) != suite.NeverExpires {
				t.Errorf("the %s %v became %v, which ends in %v", typ, before, after, t.PTTL(name))
			}
			if t.Exists(t.fenceKey(name)) {
				t.Errorf("an acquire that failed left a fence counter")
			}
		}
	}
}

func hugeValueIsNotRead(t *caseT) {
	l, name := t.direct(), t.Key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
	inspects, _ := lease.Find[locker.Inspector](unwrap(l))
	const size, times = 16 << 20, 5
	for _, key := range []string{name, t.fenceKey(name)} {
		t.Do(key, "DEL", key)
		t.Do(key, "SETRANGE", key, size-1, "x")
	}
	sent := func() int {
		info, _ := t.Do("", "INFO", "stats").(string)
		_, rest, _ := strings.Cut(info, "total_net_output_bytes:")
		number, _, _ := strings.Cut(rest, "\r")
		n, err := strconv.Atoi(number)
		t.OK(err, "INFO stats")
		return n
	}
	before := sent()
	for range times {
		for _, fenced := range []bool{false, true} {
			_, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long, NoWait: true, Fenced: fenced})
			if err == nil {
				t.Fatalf("Acquire where a value of others is stored returned a lock")
			}
			if held, ok := errors.AsType[*locker.ContentionError](err); ok && held.Owner+held.Note != "" {
				t.Errorf("a value of others has an owner of %d bytes and a note of %d", len(held.Owner), len(held.Note))
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		}
		if inspects != nil {
			if state, err := inspects.Inspect(t.Ctx, name); err == nil && state.Owner+state.Note != "" {
				t.Errorf("Inspect found an owner of %d bytes and a note of %d", len(state.Owner), len(state.Note))
			}
		}
		t.Is(lock.Renew(t.Ctx, 0), locker.ErrLost, "Renew")
	}
	if n := sent() - before; n > size/4 {
		t.Errorf("the server sent %d bytes, where %d calls found a value of %d", n, 4*times, size)
	}
	t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release")
	t.Do(name, "DEL", name)
	t.Do(t.fenceKey(name), "DEL", t.fenceKey(name))
}

func changedTypeIsLost(t *caseT) {
	l := t.direct()
	for typ, commands := range t.otherTypes() {
		for _, use := range []string{"release", "renew"} {
			t.lostTo(use, "a "+typ+" is stored", func() (*locker.Lock, func()) {
				name := t.Key()
				lock := t.acquire(l, locker.Request{Name: name, TTL: long})
				t.Do(name, "DEL", name)
				t.Do(name, on(name, commands[0])...)
				return lock, func() {
					if got := t.Do(name, "TYPE", name); got != typ || t.PTTL(name) != suite.NeverExpires {
						t.Errorf("%s turned a %s into a %v that ends in %v", use, typ, got, t.PTTL(name))
					}
				}
			})
		}
	}
}

func fenceKeyWithoutNumber(t *caseT) {
	l := t.direct()
	for _, counter := range []string{"abc", "", "12x", "-5", "1.5", "1e5", " 7", "99999999999999999999", "list"} {
		name := t.Key()
		key := t.fenceKey(name)
		if counter == "list" {
			t.Do(key, "RPUSH", key, "a")
		} else {
			t.Do(key, "SET", key, counter)
		}
		lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long, Fenced: true})
		if lock != nil || err == nil {
			t.Errorf("Acquire with the counter %q returned the token %d, want an error", counter, lock.Fence())
			continue
		}
		t.isNot(err, locker.ErrNotAcquired, "Acquire with the counter %q", counter)
		t.isNot(err, locker.ErrUnknownOutcome, "Acquire with the counter %q", counter)
		if t.Exists(name) {
			t.Errorf("Acquire with the counter %q failed and left the lock taken", counter)
		}
		if counter == "list" {
			if typ := t.Do(key, "TYPE", key); typ != "list" {
				t.Errorf("the list in place of the counter became a %v", typ)
			}
			continue
		}
		if now, _ := t.Stored(key); now != counter || t.PTTL(key) != suite.NeverExpires {
			t.Errorf("the counter %q became %q", counter, now)
		}
		// An acquire without fencing ignores the counter.
		t.OK(t.acquire(l, locker.Request{Name: name, TTL: time.Minute}).Release(t.Ctx), "Release")
	}
}

func changedFenceKeyIsLeftAlone(t *caseT) {
	l := t.direct()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: true})
	key := t.fenceKey(lock.Name())
	t.Do(key, "DEL", key)
	t.Do(key, "RPUSH", key, "a")
	if err := lock.Renew(t.Ctx, 2*long); err != nil { // success is right too, since the lock itself exists
		t.isNot(err, locker.ErrUnknownOutcome, "Renew with a list in place of the counter")
	}
	_, err := locker.Resume(t.Ctx, l, lock.Handle())
	if err == nil {
		t.Errorf("Resume minted a token from a list")
	}
	if err := lock.Release(t.Ctx); err != nil {
		t.Is(err, locker.ErrLost, "Release with a list in place of the counter")
	}
	if typ, left := t.Do(key, "TYPE", key), t.PTTL(key); typ != "list" || left != suite.NeverExpires {
		t.Errorf("the list in place of the counter became a %v that ends in %v", typ, left)
	}
}
