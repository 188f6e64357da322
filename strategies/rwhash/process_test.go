package rwhash_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// A reader does not wait longer behind a writer of its own process than behind one of another.
// Neither does a reader whose process holds the lock already.
func TestReadersBehindAWriterOfTheirProcess(t *testing.T) {
	t.Parallel()
	const turn = time.Second
	tests := []struct {
		name   string
		nested bool // the writer waits for a reader of its own process, for whom the new reader works
		apart  bool // the new reader is in another process than the writer
	}{
		{"in another process", false, true},
		{"in the writer's process", false, false},
		{"nested", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := clients.NewMemory(t)
				process := func() locker.Locker {
					bare := locker.Must(rwhash.New(clients.OpenMemory(t, m), rwhash.Config{WriterTurn: turn}))
					return locker.Chain(bare, locker.Must(retry.New(retry.Config{})))
				}
				ours, others := process(), process()
				holder, reader := others, ours
				if tt.nested {
					holder = ours
				}
				if tt.apart {
					reader = others
				}
				held, err := holder.Acquire(t.Context(), asReader(locker.Request{Owner: "holder", TTL: time.Hour}))
				match(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() {
					if lock, err := ours.Acquire(ctx, asWriter(locker.Request{})); err == nil {
						release(t, lock)
					}
				})
				sleep(100 * time.Millisecond) // it waits
				start := time.Now()
				lock, err := reader.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared, MaxWait: time.Minute})
				if err != nil {
					t.Errorf("no turn for the reader: %v", err)
				} else if took := time.Since(start); took > 2*turn {
					t.Errorf("the reader waited for %v, of turns of %v", took, turn)
				}
				if err == nil {
					release(t, lock)
				}
				release(t, held)
				cancel()
				wg.Wait()
			})
		})
	}
}

// However many readers of a process wait, one sends for all of them. When it enters, all do.
func TestOneReaderAsksForAll(t *testing.T) {
	t.Parallel()
	const readers, most = 1000, 50
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{}) // whose scripts are counted
			drv := client.Open(t, server.Addr())
			bare := locker.Must(rwhash.New(drv, rwhash.Config{AttemptTimeout: 10 * time.Second}))
			l := locker.Chain(bare, locker.Must(retry.New(retry.Config{})))
			key := "job." + client.Name
			held, err := bare.Acquire(t.Context(), locker.Request{Name: key, TTL: time.Hour})
			match(t, err)
			var waiting, inside sync.WaitGroup
			waiting.Add(readers)
			for range readers {
				inside.Go(func() {
					var once sync.Once
					ctx := locktrace.With(t.Context(), &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) { once.Do(waiting.Done) }})
					lock, err := l.Acquire(ctx, locker.Request{Name: key, Mode: locker.Shared})
					once.Do(waiting.Done)
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					match(t, lock.Release(context.Background()))
				})
			}
			waiting.Wait()
			before, start := scripts(t, server), time.Now()
			timer := time.NewTimer(2 * time.Second)
			<-timer.C
			rate := float64(scripts(t, server)-before) / time.Since(start).Seconds()
			t.Logf("%d readers send %.1f scripts a second", readers, rate)
			if rate > most {
				t.Errorf("%d readers send %.0f scripts a second, want at most %d", readers, rate, most)
			}
			release(t, held)
			inside.Wait()
		})
	}
}

// scripts returns how many scripts the server has run.
func scripts(t *testing.T, s *redistest.Server) (n int) {
	t.Helper()
	info, err := s.Do(t.Context(), "INFO", "commandstats")
	match(t, err)
	for line := range strings.Lines(fmt.Sprint(info)) {
		for _, command := range []string{"eval", "evalsha"} {
			var calls int
			if _, err := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d,", &calls); err == nil {
				n += calls
			}
		}
	}
	return n
}
