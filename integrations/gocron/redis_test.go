package gocronlock_test

import (
	"bufio"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	gocronlock "github.com/holdfast-go/holdfast/integrations/gocron"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

const (
	patience  = 20 * time.Second // for what happens at once on an idle machine
	killedTTL = 3 * time.Second
)

// connect returns what a process of its own has over a real server. Its connection is open: a Locker
// with a short MinHold tries for one second only.
func connect(t *testing.T, server interface{ Addr() string }) locker.Locker {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() {
		_ = drv.Close()
		_ = client.Close()
	})
	l := locker.Must(holdfast.New(drv, holdfast.Config{}))
	lock, err := l.Acquire(t.Context(), locker.Request{Name: "connect"})
	if err == nil {
		err = lock.Release(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened in %v", what, patience)
		panic("not reached")
	}
}

// Three replicas reach a tick one after another, each after the run of the one before has ended,
// since their clocks differ.
func TestTicksOverRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	tests := []struct {
		name    string
		minHold time.Duration
		runs    int // of three replicas
	}{
		{"MinHold", time.Hour, 1},
		{"no MinHold", time.Millisecond, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			for i := range 3 {
				clock := clockwork.NewFakeClockAt(time.Date(2030, 1, 1, 0, 0, 30, 0, time.UTC))
				locks := locker.Must(gocronlock.New(connect(t, server), gocronlock.Config{Prefix: tt.name + ":", MinHold: tt.minHold}))
				s := newScheduler(t, gocron.WithDistributedLocker(locks), gocron.WithClock(clock))
				ended := make(chan error, 1)
				newJob(t, s, gocron.CronJob("* * * * *", false), func() {}, gocron.WithEventListeners(
					gocron.AfterJobRuns(func(uuid.UUID, string) { ended <- nil }),
					gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { ended <- err }),
				))
				if err := clock.BlockUntilContext(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				clock.Advance(30 * time.Second)
				switch err := receive(t, "the tick", ended); {
				case err == nil:
					runs++
				case i == 0 || !errors.Is(err, locker.ErrNotAcquired):
					t.Errorf("replica %d: %v", i, err)
				}
				if err := s.Shutdown(); err != nil { // waits for Unlock
					t.Error(err)
				}
				if tt.runs == 3 {
					waitUntilFree(t, server, tt.name+":report")
				}
			}
			if runs != tt.runs {
				t.Errorf("%d runs, want %d", runs, tt.runs)
			}
		})
	}
}

// waitUntilFree waits for the end of a short MinHold.
func waitUntilFree(t *testing.T, server *redistest.Server, key string) {
	t.Helper()
	for end := time.Now().Add(patience); server.MustCommand(t, "EXISTS", key) != int64(0); {
		if time.Now().After(end) {
			t.Fatalf("%s is still there", key)
		}
	}
}

// A replica is killed during its run. Another one runs the job once its lease has ended.
func TestKilledReplica(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	locks := locker.Must(gocronlock.New(connect(t, server), gocronlock.Config{MinHold: time.Millisecond}))
	cmd, err := replicaCommand(t.Context(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(stdout); !lines.Scan() || lines.Text() != "running" {
		t.Errorf("the replica: %q, %v", lines.Text(), lines.Err())
	}
	if _, err := locks.Lock(t.Context(), "report"); !errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("during the run: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	s := newScheduler(t, gocron.WithDistributedLocker(locks))
	ran := make(chan struct{}, 1000)
	newJob(t, s, gocron.DurationJob(50*time.Millisecond), func() { ran <- struct{}{} })
	receive(t, "the next run", ran)
}

// The server loses the lock of a run: the ctx of Held ends with the next renewal.
func TestLostLockOverRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	locks := locker.Must(gocronlock.New(connect(t, server), gocronlock.Config{TTL: 2 * time.Second}))
	s := newScheduler(t, gocron.WithDistributedLocker(locks))
	stopped := make(chan error, 1000)
	newJob(t, s, gocron.DurationJob(50*time.Millisecond), func(ctx context.Context) {
		ctx, cancel := locks.Held("report").Context(ctx)
		defer cancel()
		server.MustCommand(t, "FLUSHALL")
		<-ctx.Done()
		stopped <- context.Cause(ctx)
	})
	if err := receive(t, "the loss", stopped); !errors.Is(err, locker.ErrLost) {
		t.Errorf("it stopped for %v", err)
	}
}

// A server is away at the tick, and back before half of MinHold has passed: the job runs.
func TestOutageOverRedis(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		begin, over func(*redistest.Server) error
		attempts    int // before it is over
	}{
		{"frozen", (*redistest.Server).Freeze, (*redistest.Server).Thaw, 1},
		{"stopped", (*redistest.Server).Stop, func(s *redistest.Server) error { return s.Restart(t.Context()) }, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{})
			attempts := make(chan struct{}, 1000)
			chain := connect(t, server)
			l := lockerFunc(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				attempts <- struct{}{}
				return chain.Acquire(ctx, req)
			})
			locks := locker.Must(gocronlock.New(l, gocronlock.Config{MinHold: 2 * patience}))
			if err := tt.begin(server); err != nil {
				t.Fatal(err)
			}
			s := newScheduler(t, gocron.WithDistributedLocker(locks))
			ended := make(chan error, 1)
			newJob(t, s, gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), func() {}, gocron.WithEventListeners(
				gocron.AfterJobRuns(func(uuid.UUID, string) { ended <- nil }),
				gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { ended <- err }),
			))
			for range tt.attempts {
				receive(t, "an attempt", attempts)
			}
			if err := tt.over(server); err != nil {
				t.Fatal(err)
			}
			if err := receive(t, "the run", ended); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server is frozen for longer than the leases: a run is skipped for an error that is not
// contention, and nobody leads. When it goes on, jobs run, a replica leads, and no lock stays
// behind.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	locks := locker.Must(gocronlock.New(connect(t, server), gocronlock.Config{MinHold: time.Millisecond}))
	e := locker.Must(gocronlock.NewElector(connect(t, server), leader.Config{Name: "cron", TTL: killedTTL}))
	ended := make(chan error, 1)
	go func() { ended <- e.Run(t.Context()) }()
	waitForLeader(t, e, true)
	ctx, cancel := e.Context(t.Context())
	defer cancel()
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	if lock, err := locks.Lock(t.Context(), "report"); lock != nil || !errors.Is(err, locker.ErrUnknownOutcome) || errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("Lock of a frozen server: %v, %v", lock, err)
	}
	waitForLeader(t, e, false)
	receive(t, "the end of the term", ctx.Done())
	if err := context.Cause(ctx); !errors.Is(err, locker.ErrLost) {
		t.Errorf("the term ended for %v", err)
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	waitForLeader(t, e, true)
	for end := time.Now().Add(patience); ; { // until what Lock sent is cleaned up
		lock, err := locks.Lock(t.Context(), "report")
		if err == nil {
			_ = lock.Unlock(t.Context())
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	e.Close()
	if err := receive(t, "the end of Run", ended); err != nil {
		t.Error(err)
	}
}

// waitForLeader waits until e leads, or no longer leads.
func waitForLeader(t *testing.T, e *gocronlock.Elector, want bool) {
	t.Helper()
	for end := time.Now().Add(patience); (e.IsLeader(t.Context()) == nil) != want; {
		if time.Now().After(end) {
			t.Fatalf("after %v: %v", patience, e.IsLeader(t.Context()))
		}
		<-time.After(time.Millisecond)
	}
}

// The network of the leader fails: it has stopped leading by the time the next one leads. When the
// network is back and the next one stops, it leads again.
func TestPartitionedLeader(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	proxy := faultproxy.Start(t, server.Addr())
	ended := make(chan error, 2)
	begin := func(l locker.Locker) *gocronlock.Elector {
		e := locker.Must(gocronlock.NewElector(l, leader.Config{Name: "cron", TTL: time.Second}))
		go func() { ended <- e.Run(t.Context()) }()
		return e
	}
	first := begin(connect(t, proxy))
	waitForLeader(t, first, true)
	second := begin(connect(t, server))
	before, _ := first.Term()
	proxy.Freeze()
	waitForLeader(t, second, true)
	if err := first.IsLeader(t.Context()); !errors.Is(err, leader.ErrNotLeader) {
		t.Errorf("two leaders: %v", err)
	}
	if after, leads := second.Term(); leads && after <= before {
		t.Errorf("term %d after term %d", after, before)
	}
	proxy.Thaw()
	second.Close()
	waitForLeader(t, first, true)
	first.Close()
	for range 2 {
		if err := receive(t, "the end of Run", ended); err != nil {
			t.Error(err)
		}
	}
}
