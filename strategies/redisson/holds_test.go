//realtime:ok run is a bubble

package redisson_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/keylock"
	"github.com/holdfast-go/holdfast/strategies/redisson"
)

var release = locktest.Release

// A hold is stored as a thread of Redisson stores its own.
func TestLayout(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: time.Minute, Fenced: true})
		field := lock.Handle().Info().Token
		if !regexp.MustCompile(`^[\w-]{22}:1$`).MatchString(field) {
			t.Errorf("the field is %q, want an ID and a thread", field)
		}
		b.stored(t, map[string]string{field: "1"})
		check.Equal(t, "TTL", b.m.TTL(name), time.Minute)
		token, err := b.m.Get(counter)
		check.Must(t, err)
		check.Equal(t, "counter", token, strconv.FormatInt(lock.Fence(), 10))
		check.Equal(t, "TTL of the counter", b.m.TTL(counter), 0)
		release(t, lock)
		locktest.Gone(t, b.m, name)
	})
}

// A thread in Java that holds the lock keeps others out. Nothing of its hold is changed.
func TestJavaHolds(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		b.javaHolds("2", time.Minute)
		for _, fenced := range []bool{false, true} {
			held := locktest.Refusal(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name, Fenced: fenced})))
			check.Equal(t, "Foreign", held.Foreign, true)
			check.Equal(t, "owner and note", held.Owner+held.Note, "")
			check.Equal(t, "Left", held.Left, time.Minute)
			check.Equal(t, "channel", held.Channel.Name(), channel)
		}
		state, err := b.Inspect(t.Context(), name)
		check.Must(t, err)
		check.Equal(t, "state", state, locker.State{Held: true, Holds: 2, Left: time.Minute})
		b.stored(t, map[string]string{java: "2"})
		check.Equal(t, "there is a counter", b.m.Exists(counter), false)

		b.m.Del(name)
		b.m.HSet(name, java, "1") // without an end
		held := locktest.Refusal(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name})))
		check.Equal(t, "Left and RetryAfter of a key without an end", held.Left+held.RetryAfter, 0)
	})
}

// Our own holds are not Foreign, and name their owner.
func TestOwnHoldIsNotForeign(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		for _, owner := range []string{"", "me|x:1"} {
			lock := b.acquire(t, locker.Request{Owner: owner, MinHold: time.Second})
			held := locktest.Refusal(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name})))
			check.Equal(t, "Foreign", held.Foreign, false)
			check.Equal(t, "owner", held.Owner, owner)
			release(t, lock)
			held = locktest.Refusal(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name})))
			check.Equal(t, "Foreign, after a release with MinHold", held.Foreign, false)
			check.Equal(t, "Released", held.Released, true)
			locktest.Sleep(time.Second)
		}
	})
}

// Break ends the hold of a thread in Java, and wakes waiters in Java too.
func TestBreakEndsJavaHold(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		b.javaHolds("3", time.Minute)
		heard := b.m.NewSubscriber()
		defer heard.Close()
		heard.Subscribe(channel)
		got := make(chan string, 1)
		go func() { got <- (<-heard.Messages()).Message }()
		check.Must(t, check.ErrOf(locker.Break(t.Context(), b, name)))
		check.Equal(t, "message", <-got, "0")
		locktest.Gone(t, b.m, name)
	})
}

// A Break without an answer leaves a later hold of the same thread alone.
func TestBreakEndsJavaHoldOnce(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		b.javaHolds("1", time.Hour)
		b.drv.Then(faultdriver.Fault{}, faultdriver.Fault{Lose: true})
		check.Is(t, check.ErrOf(locker.Break(t.Context(), b, name)), locker.ErrUnknownOutcome)
		b.javaHolds("1", time.Hour)
		locktest.Sleep(time.Minute)
		check.Equal(t, "commands", b.drv.Sent(), 2)
	})
}

// The tokens of an RFencedLock, which counts with INCR, and ours increase in turn.
func TestTokensInTurn(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		last := int64(0)
		for range 3 {
			lock := b.acquire(t, locker.Request{Fenced: true})
			check.AtLeast(t, "our token", lock.Fence(), last+1)
			release(t, lock)
			theirs, err := b.m.Incr(counter, 1)
			check.Must(t, err)
			check.AtLeast(t, "their token", int64(theirs), lock.Fence()+1)
			last = int64(theirs)
		}
		check.Must(t, b.m.Set(counter, "41")) // as after many locks in Java alone
		lock := b.acquire(t, locker.Request{Fenced: true})
		check.AtLeast(t, "our token", lock.Fence(), time.Now().Add(-time.Second).UnixMicro())
		check.Equal(t, "TTL of the counter", b.m.TTL(counter), 0)
	})
}

// A field that is only almost ours is another's hold: it is not renewed, resumed or released.
func TestFieldIsComparedWhole(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(string) string{
		"longer":         func(f string) string { return f + "0" },
		"shorter":        func(f string) string { return f[:len(f)-1] },
		"another thread": func(f string) string { return strings.TrimSuffix(f, ":1") + ":2" },
		"with an owner":  func(f string) string { return f + "|me|" },
		"released":       func(f string) string { return "~" + f },
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				for _, use := range []string{"renew", "resume", "release"} {
					lock := b.acquire(t, locker.Request{TTL: time.Hour})
					theirs := change(lock.Handle().Info().Token)
					b.m.Del(name)
					b.m.HSet(name, theirs, "1")
					b.m.SetTTL(name, time.Minute)
					switch use {
					case "renew":
						check.Is(t, lock.Renew(t.Context(), 0), locker.ErrLost)
					case "resume":
						check.Is(t, check.ErrOf(locker.Resume(t.Context(), b, lock.Handle())), locker.ErrNotHeld)
					default:
						check.Is(t, lock.Release(t.Context()), locker.ErrLost)
					}
					b.stored(t, map[string]string{theirs: "1"})
					check.Equal(t, "TTL", b.m.TTL(name), time.Minute)
					b.m.Del(name)
				}
			})
		})
	}
}

// What is no RLock is an error and is left alone.
func TestOtherHashes(t *testing.T) {
	t.Parallel()
	for what, fields := range map[string][]string{
		"a read lock of Redisson":      {"mode", "read", java, "1"},
		"a write lock of Redisson":     {"mode", "write", java + ":write", "1"},
		"a lock of reentrant":          {"kind", "reentrant", "owner", "me", "last", "x"},
		"two holders":                  {java, "1", java + "8", "1"},
		"a field without a thread":     {"field", "1"},
		"a field without an ID":        {":1", "1"},
		"a thread that is no number":   {"id:main", "1"},
		"a value that is no count":     {java, "one"},
		"a value that is no count yet": {java, ""},
		"a value that is a time":       {java, "1790000000000"},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				want := map[string]string{}
				for i := 0; i < len(fields); i += 2 {
					b.m.HSet(name, fields[i], fields[i+1])
					want[fields[i]] = fields[i+1]
				}
				for _, err := range []error{
					check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name})),
					check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name, Fenced: true})),
					check.ErrOf(b.Inspect(t.Context(), name)),
				} {
					if err == nil || errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) {
						t.Errorf("error %v, want one that says what the key holds", err)
					}
					check.Contains(t, "the error", err.Error(), "Redisson")
				}
				b.stored(t, want)
				check.Equal(t, "there is a counter", b.m.Exists(counter), false)
			})
		})
	}
}

// A write lock of Redisson enters beside an RLock. Our release leaves it alone, whatever the MinHold.
func TestReleaseBesideWriteLock(t *testing.T) {
	t.Parallel()
	for what, minHold := range map[string]time.Duration{"free at once": 0, "with MinHold": time.Second} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				lock := b.acquire(t, locker.Request{TTL: time.Minute, MinHold: minHold})
				b.m.HSet(name, "mode", "write")
				b.m.HSet(name, java+":write", "1")
				check.OK(t, lock.Renew(t.Context(), time.Hour))
				check.Equal(t, "TTL", b.m.TTL(name), time.Hour)
				release(t, lock)
				b.stored(t, map[string]string{"mode": "write", java + ":write": "1"})
				check.Equal(t, "TTL after the release", b.m.TTL(name), time.Hour)
			})
		})
	}
}

// The write lock's unlock leaves the mode beside our field. Our release leaves no key.
func TestReleaseAfterWriteLock(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: time.Minute})
		b.m.HSet(name, "mode", "read")
		release(t, lock)
		locktest.Gone(t, b.m, name)
	})
}

// Keys whose siblings Redisson would name in another slot are refused, and those of a counter.
func TestNames(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		for key, want := range map[string]string{
			"job": "{job}", "user:{7}:job": "user:{7}:job", "{job}": "{job}", "a{b}{": "a{b}{", "x{a": "", "a}b": "", "{}x": "",
			"redisson_lock_token:job": "", "redisson_lock_token:{job}": "",
		} {
			lock, err := b.Acquire(t.Context(), locker.Request{Name: key, Fenced: true})
			if want == "" {
				check.Is(t, err, locker.ErrInvalid)
				continue
			}
			check.Must(t, err)
			check.Equal(t, key+" has its counter", b.m.Exists("redisson_lock_token:"+want), true)
			held := locktest.Refusal(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: key})))
			check.Equal(t, "channel of "+key, held.Channel.Name(), "redisson_lock__channel:"+want)
			release(t, lock)
		}
	})
}

func TestBadConfig(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		locktest.BadConfig(t, "redisson", func(cfg keylock.Config) error {
			_, err := redisson.New(b.drv, redisson.Config{Prefix: cfg.Prefix, TTL: cfg.TTL, AttemptTimeout: cfg.AttemptTimeout})
			return err
		})
		check.Is(t, check.ErrOf(redisson.New(nil, redisson.Config{})), locker.ErrInvalid)
	})
}
