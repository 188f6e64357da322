package rwhash_test

import (
	"context"
	"errors"
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

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/faulty"
	"github.com/holdfast-go/holdfast/strategies/internal/lease"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// TestModel walks at random, with lost and late commands and repeated ones, and compares each execution of a script with a
// model of who may hold.
func TestModel(t *testing.T) {
	t.Parallel()
	sources := map[string]string{}
	for what, file := range map[string]string{
		"acquire": "lua/acquire.lua", "resume": "lua/resume.lua", "undo": "lua/undo_resume.lua", "release": "lua/release.lua",
		"convert": "lua/convert.lua", "inspect": "lua/inspect.lua", "renew": "../internal/holds/renew.lua",
	} {
		source, err := os.ReadFile(file)
		match(t, err)
		sources[string(source)] = what
	}
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := miniredis.NewMiniRedis()
				m.ClockTTL(true)
				mod := &model{Driver: dial(t, m), t: t, m: m, sources: sources, holds: map[string]*modelHold{}}
				drv := &faulty.Driver{Driver: mod, T: t}
				w := &walk{
					model: mod, drv: drv, rand: rand.New(rand.NewPCG(seed, 1)), unsure: map[*locker.Lock]bool{}, first: map[*locker.Lock]locker.Handle{},
					l: locker.Must(rwhash.New(drv, rwhash.Config{AttemptTimeout: time.Second})),
				}
				for range 400 {
					w.step()
					w.check()
				}
				drv.Then()
				drv.WaitLate()
				mod.mu.Lock()
				ends := time.Now()
				for _, h := range mod.holds {
					ends = later(ends, time.UnixMilli(h.till))
				}
				mod.mu.Unlock()
				sleep(time.Until(later(ends, mod.intents)))
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

// model is a driver that knows what each script has to answer.
type model struct {
	driver.Driver
	t       *testing.T
	m       *miniredis.Miniredis
	sources map[string]string // which script it is

	mu      sync.Mutex
	holds   map[string]*modelHold
	calls   []driver.Call
	fence   int64     // the highest so far
	intents time.Time // until when those may matter who were refused
}

type modelHold struct {
	mode   string
	till   int64 // ms
	number int64
}

// Background implements driver.Backgrounder.
func (m *model) Background(run func(context.Context)) bool {
	return m.Driver.(driver.Backgrounder).Background(run)
}

// Eval executes, and compares the reply.
func (m *model) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	what := "no script of ours"
	for source, name := range m.sources {
		if strings.HasSuffix(s.Source(), source) {
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
	m.calls = append(m.calls, driver.Call{Script: s, Keys: slices.Clone(keys), Args: slices.Clone(args)})
	got, err := reply.Int(0)
	match(m.t, err)
	if want, may := m.judge(what, args, got, reply); !slices.Contains(may, got) {
		m.t.Errorf("%s %q answers %d, want %s of %d; holds %s", what, args, got, want, may, m.dump())
	}
	return reply, nil
}

func (m *model) now() int64 { return time.Now().UnixMilli() }

func (m *model) live(token string) *modelHold {
	if h := m.holds[token]; h != nil && h.till > m.now() {
		return h
	}
	return nil
}

// others counts the live holds but token's, and those of them that are exclusive.
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

// judge says what may be answered, and does it.
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
		return "a live hold", []int64{1}
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
		ms, err := reply.Int(3)
		if err != nil || ms <= 0 || waits && ms > back.Milliseconds() && (mode == "shared" || exclusive == 0) {
			m.t.Errorf("a refusal, waits %v, says to try again in %d ms, %v", waits, ms, err)
		}
		free = free && !time.Now().Before(m.intents)
		if waits {
			m.intents = later(m.intents, time.Now().Add(life))
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
		if mode == "shared" {
			m.intents = later(m.intents, time.Now().Add(life/2)) // it may begin a long turn
		}
	}
	if !free {
		return "held, or kept for others", []int64{0}
	}
	return "free", []int64{1}
}

// inspect compares what Inspect says and how long the key lives.
func (m *model) inspect(reply driver.Reply) {
	var till int64
	for _, h := range m.holds {
		till = max(till, h.till)
	}
	n, exclusive := m.others("")
	left := time.Duration(max(till-m.now(), 0)) * time.Millisecond
	state, err := lease.ReadState(name, reply)
	if err != nil || state.Holds != n || state.Held != (n > 0) || state.Left != left || n > 0 && (state.Mode == locker.Exclusive) != (exclusive > 0) {
		m.t.Errorf("state %+v, %v; want %s", state, err, m.dump())
	}
	if ttl := m.m.TTL(name); ttl <= left-time.Millisecond || ttl > max(left, time.Until(m.intents)+time.Millisecond) {
		m.t.Errorf("the key lives for %v, the longest hold for %v, intents for %v", ttl, left, time.Until(m.intents))
	}
	if keys, _ := m.m.HKeys(name); len(keys) > 100 {
		m.t.Errorf("%d fields", len(keys))
	}
}

// minted demands that a writer's token exceeds all, and that a reader's is none before.
func (m *model) minted(reply driver.Reply, writer bool) {
	text, err := reply.Text(1)
	match(m.t, err)
	fence, err := strconv.ParseInt(text, 10, 64)
	match(m.t, err)
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

// replay executes an earlier call again, as one that was late.
func (m *model) replay(r *rand.Rand) {
	m.mu.Lock()
	n := len(m.calls)
	if n == 0 {
		m.mu.Unlock()
		return
	}
	c := m.calls[n-1-min(r.IntN(n), r.IntN(60))]
	m.mu.Unlock()
	_, err := m.Eval(context.Background(), c.Script, c.Keys, c.Args)
	match(m.t, err)
}

// walk is one who does this and that.
type walk struct {
	*model
	drv    *faulty.Driver
	l      *rwhash.Locker
	rand   *rand.Rand
	locks  []*locker.Lock
	unsure map[*locker.Lock]bool          // a conversion of theirs may have been done
	first  map[*locker.Lock]locker.Handle // from when they were acquired
	given  int64                          // the highest token that a Lock had
}

var oddities = []string{"me", "\x00", "1:2", " 3 ", "\xff\xfe\n", "kind", ""}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (w *walk) ttl() time.Duration {
	return pick(w.rand, 20*time.Millisecond, 300*time.Millisecond, 2*time.Second, 2*time.Second, 20*time.Second)
}

func (w *walk) fails() {
	switch w.rand.IntN(8) {
	case 0:
		w.drv.Then(fault{Lose: true})
	case 1:
		w.drv.Then(fault{Hang: true})
	case 2:
		w.drv.Then(fault{Late: time.Duration(w.rand.IntN(3000)+1) * time.Millisecond})
	case 3:
		w.drv.Then(fault{Lose: true}, fault{Lose: true})
	case 4:
		w.drv.Then(fault{Lose: true}, fault{Hang: true}, fault{Hang: true})
	default:
		w.drv.Then()
	}
}

func (w *walk) step() {
	w.fails()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Duration(w.rand.IntN(4000)+100)*time.Millisecond)
	defer cancel()
	if w.rand.IntN(2) == 0 {
		ctx = locker.WithWaiting(ctx, time.Now().Add(-time.Duration(w.rand.IntN(5000))*time.Millisecond))
	}
	if len(w.locks) == 0 {
		w.acquire(ctx)
		return
	}
	lock := pick(w.rand, w.locks...)
	switch w.rand.IntN(12) {
	case 0, 1, 2:
		w.acquire(ctx)
	case 3, 4:
		_ = lock.Release(ctx)
	case 5:
		before := lock.Deadline()
		if err := lock.Renew(ctx, w.ttl()); err == nil && lock.Deadline().Before(before) {
			w.t.Error("a renewal shortened a lease")
		}
	case 6, 7:
		w.convert(ctx, lock)
	case 8:
		w.resume(ctx, lock)
	case 9:
		w.replay(w.rand)
	default:
		sleep(time.Duration(w.rand.IntN(pick(w.rand, 20, 400, 1500))) * time.Millisecond)
	}
	w.locks = slices.DeleteFunc(w.locks, func(l *locker.Lock) bool { return l.Err() != nil && w.rand.IntN(2) == 0 })
}

func (w *walk) acquire(ctx context.Context) {
	lock, err := w.l.Acquire(ctx, locker.Request{
		Name: name, Mode: pick(w.rand, locker.Shared, locker.Shared, locker.Exclusive), TTL: w.ttl(), NoWait: w.rand.IntN(2) == 0,
		Fenced: w.rand.IntN(2) == 0, Owner: pick(w.rand, oddities...), Note: pick(w.rand, oddities...),
	})
	if err == nil {
		w.locks = append(w.locks, lock)
		w.first[lock] = lock.Handle()
		w.fenced(lock)
	}
}

func (w *walk) convert(ctx context.Context, lock *locker.Lock) {
	from, to := lock.Mode(), lock.Upgrade
	if w.rand.IntN(2) == 0 {
		to = lock.Downgrade
	}
	err := to(ctx)
	switch {
	case errors.Is(err, locker.ErrUnknownOutcome):
		w.unsure[lock] = true
		if w.rand.IntN(2) == 0 {
			w.drv.Then()
			w.convert(w.t.Context(), lock) // as is advised
		}
	case err == nil:
		if from == locker.Shared && lock.Mode() == locker.Exclusive {
			w.fenced(lock)
		}
		delete(w.unsure, lock)
	}
}

func (w *walk) resume(ctx context.Context, lock *locker.Lock) {
	h, old := w.first[lock]
	if !old || w.rand.IntN(2) == 0 {
		h = lock.Handle()
	}
	resumed, err := locker.Resume(ctx, w.l, h)
	if err == nil || errors.Is(err, locker.ErrLost) { // it was taken over, and given back in the latter case
		w.locks = slices.DeleteFunc(w.locks, func(l *locker.Lock) bool { return l == lock })
	}
	if err == nil {
		w.locks = append(w.locks, resumed)
		w.fenced(resumed)
	}
}

// fenced demands that a new writer's token exceeds those of all before it.
func (w *walk) fenced(lock *locker.Lock) {
	switch fence := lock.Fence(); {
	case fence == 0:
	case fence < w.given || fence == w.given && lock.Mode() == locker.Exclusive:
		w.t.Errorf("a new hold, %v, has the token %d, there was %d before", lock.Mode(), fence, w.given)
	default:
		w.given = fence
	}
}

// check demands that those who believe to hold do not exclude each other.
func (w *walk) check() {
	var readers, writers int
	for _, lock := range w.locks {
		switch {
		case lock.Err() != nil:
		case lock.Mode() == locker.Shared || w.unsure[lock]:
			readers++
		default:
			writers++
		}
	}
	if writers > 1 || writers == 1 && readers > 0 {
		w.t.Errorf("%d writers and %d readers believe to hold", writers, readers)
	}
	w.drv.Then()
	_, err := w.l.Inspect(w.t.Context(), name) // the model compares
	match(w.t, err)
}
