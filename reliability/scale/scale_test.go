package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

var waiters = flag.Int("waiters", 0, "run so many processes that wait, see make scale; 0: the tests")

// plan is the course of a run.
type plan struct {
	waiters     int
	fair        bool
	hold        time.Duration // how long each holds the lock
	delay       time.Duration // of the network, one way
	service     time.Duration // of a command at the server
	arrivals    time.Duration // how long it takes until all wait
	killed      float64       // part of the waiters killed before the first release
	frozen      float64       // part of them frozen then, with their connections open
	killedFirst int           // so many of the first ones are killed too
	deadFor     time.Duration // before the first release; 0: a second
	handOvers   int           // how many are waited for; 0: until nobody waits
}

var shown = plan{delay: 250 * time.Microsecond, service: 20 * time.Microsecond}

func init() {
	flag.BoolVar(&shown.fair, "fair", false, "the order is strict")
	flag.DurationVar(&shown.hold, "hold", 0, "how long each holds the lock")
	flag.DurationVar(&shown.delay, "delay", shown.delay, "delay of the network, one way")
	flag.DurationVar(&shown.service, "service", shown.service, "what the server needs for a command")
	flag.DurationVar(&shown.arrivals, "arrivals", 0, "in what time they arrive; 0: 4,000 a second")
	flag.Float64Var(&shown.killed, "killed", 0, "the part of the waiters that are killed")
	flag.Float64Var(&shown.frozen, "frozen", 0, "the part of the waiters that freeze")
	flag.IntVar(&shown.killedFirst, "killedfirst", 0, "so many of those that came first are killed")
	flag.IntVar(&shown.handOvers, "handovers", 0, "end after so many; 0: when nobody waits")
}

// acquired is one hold.
type acquired struct {
	waiter       int
	at, released time.Time // when its Acquire returned, and its Release was called
}

type result struct {
	plan
	holds     []acquired
	latencies []time.Duration // from a Release to the next return of Acquire, sorted
	overtakes int             // acquires while an earlier waiter still waited
	alive     int
	took      time.Duration  // from the first release on
	sent      map[string]int // the clients' commands meanwhile
	executed  int            // commands, those in scripts included
}

// run must be called in a bubble.
func run(t *testing.T, p plan) result {
	t.Helper()
	s := newServer(p.delay, p.service, p.waiters)
	go s.serve()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(c *client) locker.Locker {
		return locker.Chain(locker.Must(single.New(c, single.Config{Fair: p.fair})), locker.Must(retry.New(retry.Config{})))
	}
	req := locker.Request{Name: "job", TTL: time.Hour}
	first := locker.Must(open(&client{server: s}).Acquire(ctx, req))

	acquires := make(chan acquired, p.waiters) // never full: each acquires once
	ended := make(chan struct{}, p.waiters)
	clients, cancels := make([]*client, p.waiters), make([]context.CancelFunc, p.waiters)
	for i := range p.waiters {
		c := &client{server: s}
		own, stop := context.WithCancel(ctx)
		clients[i], cancels[i] = c, stop
		go func() {
			defer func() { ended <- struct{}{} }()
			lock, err := open(c).Acquire(own, req)
			if err != nil {
				return
			}
			h := acquired{waiter: i, at: time.Now()}
			elapse(p.hold)
			h.released = time.Now()
			acquires <- h
			_ = lock.Release(context.Background())
		}()
		elapse(p.arrivals / time.Duration(p.waiters))
	}
	elapse(3 * time.Second) // all are subscribed and have told the server so
	r := result{plan: p, alive: p.waiters}
	dead := func(i int, part float64) bool { return int(float64(i+1)*part) > int(float64(i)*part) }
	waits := make([]bool, p.waiters)
	for i, c := range clients {
		switch {
		case i < p.killedFirst || dead(i, p.killed):
			c.killed.Store(true)
		case dead(i, p.frozen):
			c.frozen.Store(true)
		default:
			waits[i] = true
			continue
		}
		cancels[i]()
		r.alive--
	}
	elapse(max(p.deadFor, time.Second)) // the server sees the connections closed

	s.counts(ctx)
	released := time.Now()
	check.OK(t, first.Release(ctx))
	began := released
	if p.fair {
		_, err := open(&client{server: s}).Acquire(ctx, locker.Request{Name: req.Name, NoWait: true})
		check.Error(t, "a newcomer, though others wait", err, locker.ErrNotAcquired)
	}
	want := r.alive
	if p.handOvers > 0 {
		want = min(want, p.handOvers)
	}
	earliest := 0
	for range want {
		select {
		case h := <-acquires:
			r.holds = append(r.holds, h)
			r.latencies = append(r.latencies, h.at.Sub(released))
			released = h.released
			for !waits[earliest] {
				earliest++
			}
			if h.waiter != earliest {
				r.overtakes++
			}
			waits[h.waiter] = false
			continue
		case <-time.After(time.Minute):
			t.Errorf("after %d hand-overs none for a minute, and %d wait", len(r.holds), r.alive-len(r.holds))
		}
		break
	}
	r.took = time.Since(began)
	r.sent, r.executed = s.counts(ctx)
	cancel()
	for range p.waiters {
		<-ended
	}
	elapse(2 * req.TTL) // the clean-up of commands on their way
	synctest.Wait()
	close(s.requests)
	slices.Sort(r.latencies)
	return r
}

func (r result) quantile(q float64) time.Duration {
	return r.latencies[int(q*float64(len(r.latencies)-1))]
}

// busy is the part of the server's time spent at work.
func (r result) busy() float64 {
	total := 0
	for _, n := range r.sent {
		total += n
	}
	return float64(total) * r.service.Seconds() / r.took.Seconds()
}

func (r result) String() string {
	n := max(1, float64(len(r.holds)))
	text := fmt.Sprintf("%d waiters, %d of them alive; fair: %v; held for %v; network %v one way; %v a command\n",
		r.waiters, r.alive, r.fair, r.hold, r.delay, r.service)
	if len(r.holds) > 0 {
		text += fmt.Sprintf("hand-overs: %d in %v; p50 %v, p99 %v, max %v; %d overtook one that had come earlier\n",
			len(r.holds), r.took.Round(time.Millisecond), r.quantile(0.5), r.quantile(0.99), r.quantile(1), r.overtakes)
	}
	text += fmt.Sprintf("server: %.1f %% busy, %.0f polls a second; sent for each hand-over:", 100*r.busy(), r.polls())
	for _, kind := range slices.Sorted(maps.Keys(r.sent)) {
		text += fmt.Sprintf(" %.2f %s", float64(r.sent[kind])/n, kind)
	}
	return text + fmt.Sprintf("; executed: %.1f", float64(r.executed)/n)
}

// polls is how many attempts are refused in a second.
func (r result) polls() float64 { return float64(r.sent["refusals"]) / r.took.Seconds() }

// TestScale runs the plan of the flags.
func TestScale(t *testing.T) {
	if *waiters == 0 {
		t.Skip("needs -waiters, see make scale")
	}
	p := shown
	p.waiters = *waiters
	if p.arrivals == 0 {
		p.arrivals = time.Duration(p.waiters) * 250 * time.Microsecond
	}
	synctest.Test(t, func(t *testing.T) {
		_, _ = fmt.Fprintln(os.Stdout, run(t, p))
	})
}

// The promises of package keylock hold with a few hundred processes.
func TestOrderAndDelay(t *testing.T) {
	t.Parallel()
	const (
		roundTrips = 4 * time.Millisecond               // for a release, a message, an acquire
		poll       = 2500*time.Millisecond + roundTrips // until a waiter tries again, and a woken one's time
	)
	type test struct {
		plan
		most time.Duration // of a hand-over
	}
	check.Each(t, map[string]test{
		"all live":        {plan{}, roundTrips},
		"strict order":    {plan{fair: true}, roundTrips},
		"killed":          {plan{fair: true, killed: 0.5}, roundTrips},
		"long dead":       {plan{fair: true, killedFirst: 180, deadFor: 10 * time.Second}, 2 * poll},
		"frozen":          {plan{fair: true, frozen: 0.02}, poll},
		"frozen, default": {plan{frozen: 0.02}, poll},
	}, func(t *testing.T, test test) {
		p := test.plan
		p.waiters, p.delay, p.service, p.arrivals = 200, shown.delay, shown.service, 100*time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			r := run(t, p)
			if len(r.holds) != r.alive {
				t.Fatalf("%d of %d acquired the lock", len(r.holds), r.alive)
			}
			if most := r.quantile(1); most > test.most {
				t.Errorf("a hand-over took %v, want at most %v", most, test.most)
			}
			if p.fair && r.overtakes > 0 {
				t.Errorf("%d overtook one that had come earlier", r.overtakes)
			}
			if perHandOver := float64(r.sent["acquires"]+r.sent["releases"]) / float64(len(r.holds)); perHandOver > 2.1 {
				t.Errorf("%.2f acquires and releases were sent for each hand-over, want 2", perHandOver)
			}
			t.Log(r)
		})
	})
}

// The more waiters are ahead, the more rarely one polls: the polls of a long queue do not fill the
// server. Its place counts for 3 s more.
func TestPollsOfALongQueue(t *testing.T) {
	t.Parallel()
	for ahead, again := range map[int]time.Duration{0: 2 * time.Second, 10_000: 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(0, 0, 1)
			go s.serve()
			defer close(s.requests)
			queue := &sortedSet{}
			for i := range ahead {
				queue.add(entry{float64(i + 1), strconv.Itoa(i)})
			}
			s.keys["job"] = &value{text: lease.NewToken(), expires: time.Now().Add(time.Hour)}
			s.keys["{job}:waiters"] = &value{set: queue}
			w := lease.Waiting{ID: lease.NewToken(), Since: time.Now(), Subscribed: true}
			l := locker.Must(single.New(&client{server: s}, single.Config{}))
			_, err := l.Acquire(lease.WithWaiting(t.Context(), w), locker.Request{Name: "job"})
			held, ok := errors.AsType[*locker.ContentionError](err)
			if !ok || held.RetryAfter != again {
				t.Errorf("behind %d: %+v, want to try again after %v", ahead, err, again)
			}
			const presence, millis = 4e15, 4 // see strategies/keylock/lua/queue.lua
			counts := time.Duration((queue.scores["~"+w.ID]-presence)/millis)*time.Millisecond - time.Duration(time.Now().UnixMilli())*time.Millisecond
			check.Equal(t, fmt.Sprintf("behind %d: for how long the place counts", ahead), counts, again+3*time.Second)
		})
	}
}

// A release drops 1,000 dead waiters, at any speed of the server. The next one counts.
func TestReleaseBehindDeadWaiters(t *testing.T) {
	t.Parallel()
	for dead, left := range map[int]int{2: 0, 1000: 0, 1001: 2, 2000: 2000} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(0, 0, 1)
			go s.serve()
			defer close(s.requests)
			queue := &sortedSet{}
			s.keys["{job}:waiters"] = &value{set: queue}
			l := locker.Must(single.New(&client{server: s}, single.Config{}))
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job"}))
			const presence, exact = 4e15, 1 // see strategies/keylock/lua/queue.lua
			until := float64(4 * time.Now().Add(time.Minute).UnixMilli())
			for i := range dead {
				id := strconv.Itoa(i)
				queue.add(entry{float64(i + 1), id})
				queue.add(entry{presence + until + exact, "~" + id})
			}
			check.Must(t, lock.Release(t.Context()))
			check.Equal(t, fmt.Sprintf("members that are left of %d dead waiters", dead), len(queue.scores), left)
		})
	}
}
