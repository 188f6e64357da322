package rwhash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// TestModel runs random operations with lost, late and repeated commands, and compares each
// execution of a script with a model of who may hold. It is not parallel: always busy, it would
// delay tests in real time.
func TestModel(t *testing.T) {
	sources := map[string]string{}
	for what, file := range map[string]string{
		"acquire": "lua/acquire.lua", "resume": "lua/resume.lua", "undo": "lua/undo_resume.lua", "release": "lua/release.lua",
		"convert": "lua/convert.lua", "inspect": "lua/inspect.lua", "renew": "../internal/hashholds/renew.lua",
	} {
		source := locker.Must(os.ReadFile(file))
		sources[string(source)] = what
	}
	for seed := range effort.Of[uint64](1, 1, 8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := clients.NewMemory(t)
				mod := &model{Driver: clients.OpenMemory(t, m), t: t, m: m, sources: sources, holds: map[string]*modelHold{}}
				drv := &faultdriver.Driver{Driver: mod, T: t}
				w := &walk{
					model: mod, drv: drv, rand: rand.New(rand.NewPCG(seed, 1)), unsure: map[*locker.Lock]bool{}, first: map[*locker.Lock]locker.Handle{},
					l: locker.Must(rwhash.New(drv, rwhash.Config{AttemptTimeout: time.Second})),
				}
				for range 400 {
					w.step()
					w.check()
				}
				drv.Then()
				synctest.Wait() // background calls end
				drv.WaitLate()
				for left := mod.left(); left > 0; left = mod.left() { // a clean-up may begin a turn meanwhile
					sleep(left)
				}
				if m.Exists(name) {
					t.Errorf("all is over, yet the key lives for another %v:\n%s", m.TTL(name), m.Dump())
				}
				sleep(time.Minute) // clean-up in the background
			})
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// walkers is more than wait at a time: each ahead adds 1 ms to the time for the next attempt.
const walkers = 100

// model is a driver that knows the reply due from each script.
type model struct {
	driver.Driver
	t       *testing.T
	m       *memredis.Server
	sources map[string]string // name of each script by its source

	mu      sync.Mutex
	holds   map[string]*modelHold
	calls   []evalCall
	fence   int64     // the highest so far
	waiters time.Time // until when refused waiters may count
	turns   time.Time // until when a free lock may be kept
}

// left returns for how long a hold or a turn may keep the key.
func (m *model) left() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := m.turns
	for _, h := range m.holds {
		end = later(end, time.UnixMilli(h.till))
	}
	return time.Until(end)
}

type evalCall struct {
	script     *driver.Script
	keys, args []string
}

type modelHold struct {
	mode   string
	till   int64 // ms
	number int64
}

// Eval executes the script, and compares the reply.
func (m *model) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	what := "no script of ours"
	for source, name := range m.sources {
		if strings.Contains(s.Source(), source) {
			what = name
		}
	}
	reply, err := m.Driver.Eval(context.WithoutCancel(ctx), s, keys, args) // it takes no time
	if err != nil {
		m.t.Errorf("%s: %v", what, err)
		return reply, err
	}
	if what == "inspect" {
		m.inspect(reply)
		return reply, nil
	}
	m.calls = append(m.calls, evalCall{s, slices.Clone(keys), slices.Clone(args)})
	got := locker.Must(reply.Int(0))
	if want, may := m.judge(what, args, got, reply); !slices.Contains(may, got) {
		m.t.Errorf("%s %q answers %d, want %s of %d; holds %s", what, args, got, want, may, m.dump())
	}
	return reply, nil
}

func (*model) now() int64 { return time.Now().UnixMilli() }

func (m *model) live(token string) *modelHold {
	if h := m.holds[token]; h != nil && h.till > m.now() {
		return h
	}
	return nil
}

// others counts the live holds except token's, and the exclusive ones among them.
func (m *model) others(token string) (n, exclusive int) {
	for other := range m.holds {
		if h := m.live(other); h != nil && other != token {
			n++
			if h.mode == "exclusive" {
				exclusive++
			}
		}
	}
	return n, exclusive
}

// judge returns the allowed replies, and updates the model.
func (m *model) judge(what string, args []string, got int64, reply driver.Reply) (why string, may []int64) {
	token := args[0]
	h, ttl := m.live(token), int64(0)
	if what == "acquire" || what == "resume" || what == "renew" {
		ttl, _ = strconv.ParseInt(args[1], 10, 64)
	}
	n, _ := m.others(token)
	switch what {
	case "acquire":
		return m.acquire(args, h, ttl, got, reply)
	case "renew":
		if h == nil {
			return "a hold that is gone", []int64{0}
		}
		h.till = max(h.till, m.now()+ttl)
		return "a live hold", []int64{1}
	case "release":
		delete(m.holds, token)
		if h == nil {
			return "a hold that is gone", []int64{0}
		}
		m.turns = later(m.turns, time.Now().Add(toTry))
		return "a live hold", []int64{1, 2, 3}
	case "convert":
		number, _ := strconv.ParseInt(args[2], 10, 64)
		switch {
		case h == nil:
			return "a hold that is gone", []int64{0}
		case number < h.number:
			return "overtaken", []int64{4}
		case number == h.number && h.mode == args[1]:
			return "again", []int64{2}
		case number == h.number:
			return "again", []int64{3}
		}
		h.number = number
		if args[1] == "exclusive" && h.mode == "shared" {
			if n > 0 {
				return "others hold", []int64{3}
			}
			m.minted(reply, true)
		}
		h.mode = args[1]
		m.turns = later(m.turns, time.Now().Add(toTry))
		return "free to", []int64{1}
	case "resume":
		old := m.live(args[3])
		switch {
		case h != nil || got == 2 && m.holds[token] != nil:
			return "again, or when it is over", []int64{2}
		case old == nil || old.mode != args[6]:
			return "nothing to take over", []int64{0}
		}
		delete(m.holds, args[3])
		m.holds[token] = old
		old.till = max(old.till, m.now()+ttl)
		m.minted(reply, old.mode == "exclusive")
		return "there", []int64{1}
	case "undo":
		if old := m.holds[token]; old != nil && got == 1 {
			delete(m.holds, token)
			m.holds[args[1]] = old
		}
		if h == nil {
			return "a hold that is over", []int64{0, 1}
		}
		return "there", []int64{1}
	}
	return what, nil
}

func (m *model) acquire(args []string, h *modelHold, ttl, got int64, reply driver.Reply) (why string, may []int64) {
	token, mode, waits := args[0], args[5], args[6] != "-1"
	n, exclusive := m.others(token)
	free := n == 0 || mode == "shared" && exclusive == 0
	if got == 0 {
		left, again := locker.Must(reply.Int(3)), locker.Must(reply.Int(4))
		if again <= 0 || left > 0 && again > left+walkers || left <= 0 && again > bound.Milliseconds() {
			m.t.Errorf("a refusal, waits %v, for %d ms, says to try again in %d ms", waits, left, again)
		}
		if free = free && !time.Now().Before(later(m.waiters, m.turns)); !free {
			m.turns = later(m.turns, time.Now().Add(toTry)) // it may begin one
		}
		if waits {
			m.waiters = later(m.waiters, time.Now().Add(places))
		}
	}
	switch {
	case h != nil:
		return "again", []int64{2}
	case got == 2 && m.holds[token] != nil:
		return "again, when it is over", []int64{2}
	case got == 1:
		m.holds[token] = &modelHold{mode: mode, till: m.now() + ttl}
		m.minted(reply, mode == "exclusive")
	}
	if !free {
		return "held, or kept for others", []int64{0}
	}
	return "free", []int64{1}
}

// inspect compares the reply of Inspect and the life of the key with the model.
func (m *model) inspect(reply driver.Reply) {
	var till int64
	for _, h := range m.holds {
		till = max(till, h.till)
	}
	n, exclusive := m.others("")
	left := time.Duration(max(till-m.now(), 0)) * time.Millisecond
	want := []int64{0}
	if n > 0 {
		want = []int64{1, left.Milliseconds(), int64(n), 1}
		if exclusive > 0 {
			want[3] = 0
		}
	}
	got := make([]int64, len(want))
	for i, at := range []int{0, 3, 4, 5}[:len(want)] {
		var err error
		got[i], err = reply.Int(at)
		match(m.t, err)
	}
	if !slices.Equal(got, want) {
		m.t.Errorf("inspect answers %d, want %d; holds %s", got, want, m.dump())
	}
	if ttl := m.m.TTL(name); ttl <= left-time.Millisecond || ttl > max(left, time.Until(m.turns)+time.Millisecond) {
		m.t.Errorf("the key lives for %v, the longest hold for %v, a turn for %v", ttl, left, time.Until(m.turns))
	}
	if keys, _ := m.m.HKeys(name); len(keys) > 100 {
		m.t.Errorf("%d fields", len(keys))
	}
}

// minted fails the test unless a writer's token exceeds all before, and a reader's token has been
// minted.
func (m *model) minted(reply driver.Reply, writer bool) {
	text := locker.Must(reply.Text(1))
	fence := locker.Must(strconv.ParseInt(text, 10, 64))
	if fence != 0 && (fence < m.fence || writer && fence == m.fence) {
		m.t.Errorf("writer %v: the token is %d after %d", writer, fence, m.fence)
	}
	m.fence = max(m.fence, fence)
}

func (m *model) dump() string {
	var b strings.Builder
	for token, h := range m.holds {
		if m.live(token) == nil {
			continue
		}
		fmt.Fprintf(&b, "%s: %s for %d ms, number %d; ", token, h.mode, h.till-m.now(), h.number)
	}
	return b.String()
}

// replay executes an earlier call again, as a late command.
func (m *model) replay(r *rand.Rand) {
	m.mu.Lock()
	n := len(m.calls)
	if n == 0 {
		m.mu.Unlock()
		return
	}
	c := m.calls[n-1-min(r.IntN(n), r.IntN(60))]
	m.mu.Unlock()
	match(m.t, check.ErrOf(m.Eval(context.Background(), c.script, c.keys, c.args)))
}
