package security_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// recorder is a driver that notes its commands.
type recorder struct {
	driver.Driver
	beside func(name string) (counter, channel string)

	mu       sync.Mutex
	scripts  map[string]string // the sources, by digest
	keys     [][]string
	channels []string
	tokens   []string
}

func recording(drv driver.Driver) *recorder {
	return &recorder{Driver: drv, beside: strategy{}.beside, scripts: map[string]string{}}
}

// note notes a command. Its first argument may be a token; the others may be owners, random too.
func (r *recorder) note(s *driver.Script, keys []string, args ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s != nil {
		r.scripts[s.Digest()] = s.Source()
	}
	r.keys = append(r.keys, r.perLock(keys)...)
	for _, arg := range args[:min(len(args), 1)] {
		token, _, _ := strings.Cut(arg, "|")
		if token = strings.TrimSuffix(token, ":1"); len(token) == lease.TokenLen && !slices.Contains(r.tokens, token) {
			r.tokens = append(r.tokens, token)
		}
	}
}

func (r *recorder) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	r.note(nil, []string{key}, value)
	return r.Driver.SetNX(ctx, key, value, ttl)
}

func (r *recorder) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	r.note(s, keys, args...)
	return r.Driver.Eval(ctx, s, keys, args)
}

func (r *recorder) EvalAcked(ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration) (driver.Reply, int, error) {
	r.note(s, keys, args...)
	return r.Driver.EvalAcked(ctx, s, keys, args, replicas, timeout)
}

// perLock divides the keys of a script into those of each lock.
func (r *recorder) perLock(keys []string) (locks [][]string) {
	var counter, waiters string
	for _, key := range keys {
		if len(locks) > 0 && (key == counter || key == waiters) {
			locks[len(locks)-1] = append(locks[len(locks)-1], key)
			continue
		}
		locks = append(locks, []string{key})
		counter, _ = r.beside(key)
		waiters, _ = sibling.Waiters(key)
	}
	return locks
}

func (r *recorder) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	r.mu.Lock()
	r.channels = append(r.channels, channel)
	r.mu.Unlock()
	return r.Driver.Subscribe(ctx, channel)
}

// counters are the fence counters of the requested locks.
func (r *recorder) counters() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]bool{}
	for _, k := range r.keys {
		counter, _ := r.beside(k[0])
		all[counter] = true
	}
	return all
}

// hostile texts would do harm if a text were used as code, as a command or as a format, or if one
// of its characters ended it.
var hostile = map[string]string{
	"Lua":            `'] redis.call('FLUSHALL') --`,
	"long string":    `]]..redis.call("FLUSHALL")..[[`,
	"KEYS and ARGV":  `KEYS[1]ARGV[1]`,
	"RESP":           "\r\n*1\r\n$8\r\nFLUSHALL\r\n",
	"NUL":            "a\x00b",
	"line breaks":    "a\nb\rc\u2028d",
	"invalid UTF-8":  "\xff\xfe\xc0\x80",
	"quotes":         `"'` + "`" + `\"\'\\`,
	"formats":        "%s%d%.0f%n$1{0}",
	"open braces":    "{{{",
	"a hash tag":     "a{b}c}d",
	"our separators": "a|b|c 12 3:x",
	"a number":       "9999999999999999999",
	"spaces":         " \t ",
	"a glob":         "*?[a-z]",
	"1 KiB":          strings.Repeat("\xff", locker.MaxNameLen-24),
}

// suffixes are those appended to a name by a cycle.
var suffixes = []string{"plain", "fenced", "first", "second", "resumed", "awaited", "led", "n0.quorum", "n1.quorum", "n2.quorum", "more", "more1", "more2"}

// Whatever a name, an owner and a note contain, the scripts stay the same, byte by byte, and the
// keys are the name and its fence counter. By default each text is tried with one strategy.
func TestTextsAreData(t *testing.T) {
	t.Parallel()
	for i, name := range slices.Sorted(maps.Keys(strategies)) {
		s := strategies[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			usual, _ := record(t, s, "lock:", "one", "why")
			check.AtLeast(t, "scripts that were run", len(usual), 6)
			for digest, source := range usual {
				if sum := sha1.Sum([]byte(source)); hex.EncodeToString(sum[:]) != digest {
					t.Errorf("the digest %s is of another source", digest)
				}
			}
			for j, what := range slices.Sorted(maps.Keys(hostile)) {
				if !effort.Full() && j%len(strategies) != i {
					continue
				}
				text := hostile[what]
				if counter, _ := s.beside(text); counter == "" {
					continue // the strategy refuses such a name
				}
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					scripts, keys := record(t, s, text, text, text)
					if !maps.Equal(scripts, usual) {
						t.Errorf("%d scripts, want the %d usual ones", len(scripts), len(usual))
					}
					for _, suffix := range suffixes {
						delete(keys, text+suffix)
					}
					check.EqualSlices(t, "other keys", slices.Collect(maps.Keys(keys)), nil)
				})
			}
		})
	}
}

// record runs a cycle against a server of its own. It returns the scripts and the locks' keys.
func record(t *testing.T, s strategy, name, owner, note string) (scripts map[string]string, keys map[string]bool) {
	t.Helper()
	m := miniredis.RunT(t)
	check.Must(t, m.Set("canary", "sings"))
	r := recording(clients.All[0].OpenMini(t, m.Addr()))
	r.beside = s.beside
	check.OK(t, errors.Join(s.runAs(t, r, name, owner, note, patience).errs...))
	check.Eventually(t, "nothing is left but fence counters", func() bool { // a quorum's last node is released behind, through r
		counters := r.counters()
		return !slices.ContainsFunc(m.Keys(), func(left string) bool {
			queue := strings.HasSuffix(left, sibling.WaitersSuffix) && m.TTL(left) > 0 && m.TTL(left) <= 5*time.Second
			return !counters[left] && !queue && left != "canary"
		})
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	keys = map[string]bool{}
	channels := map[string]bool{}
	for _, k := range r.keys {
		keys[k[0]] = true
		counter, wake := s.beside(k[0])
		channels[wake] = true
		waiters, _ := sibling.Waiters(k[0])
		if rest := fmt.Sprintf("%q", k[1:]); !slices.Contains([]string{
			"[]", fmt.Sprintf("[%q]", counter), fmt.Sprintf("[%q]", waiters), fmt.Sprintf("[%q %q]", counter, waiters),
		}, rest) {
			t.Errorf("keys %q", k)
		}
	}
	for _, channel := range r.channels {
		base, id := channel, ""
		if at := len(channel) - lease.TokenLen - 1; at > 0 && channel[at] == ':' {
			base, id = channel[:at], channel[at+1:]
		}
		if !channels[channel] && (!channels[base] || id != "" && !lease.IsToken(id)) {
			t.Errorf("channel %q", channel)
		}
	}
	if sings, err := m.Get("canary"); sings != "sings" {
		t.Errorf("the canary: %q, %v", sings, err)
	}
	return maps.Clone(r.scripts), keys
}
