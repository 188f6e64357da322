//go:build unix

package death_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// A leader killed, or frozen for longer than its lease, is succeeded within its TTL, in a higher
// term. After it wakes up, it never reports that it leads.
func TestLeaderIsSucceeded(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	addr := server.Get(t).Addr()
	strategies := []string{"single", "reentrant", "rwhash"}
	for _, client := range clients.All {
		for _, strategy := range strategies {
			for _, frozen := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/frozen=%t", client.Name, strategy, frozen), func(t *testing.T) {
					t.Parallel()
					old := startCandidate(t, client.Name, strategy, addr, t.Name(), ttl)
					term, _ := old.says("leads")
					if frozen {
						old.freeze()
						old.tells("state") // it reads the line when it wakes up
					} else {
						old.signal(syscall.SIGKILL)
					}
					bare, err := workload.Strategies[strategy].Open(client.Open(t, addr))
					check.Must(t, err)
					ctx, stop := context.WithTimeout(t.Context(), ttl+slack)
					defer stop()
					err = leader.Run(ctx, locker.Must(holdfast.Wrap(bare, holdfast.Config{})), leader.Config{
						Name: t.Name(), TTL: time.Minute,
						Lead: func(_ context.Context, next int64) error {
							if next <= term {
								t.Errorf("term %d after %d", next, term)
							}
							term = next
							if frozen {
								old.signal(syscall.SIGCONT)
								if lie, _ := old.says("state"); lie != 0 {
									t.Errorf("it says that it leads in term %d, when another one leads in %d", lie, next)
								}
								old.tells("state")
								if lie, _ := old.says("state"); lie != 0 {
									t.Errorf("it says that it leads in term %d, when another one leads in %d", lie, next)
								}
							}
							return nil
						},
					})
					if err != nil || ctx.Err() != nil {
						t.Fatalf("Run: %v, %v", err, ctx.Err())
					}
					if !frozen {
						return
					}
					for last := int64(0); last <= term; { // on a busy machine it led more than once before
						last, _ = old.says("leads")
					}
				})
			}
		}
	}
}

// BenchmarkTakeOver reports how long nobody leads: from the beginning of a step-down, or from the
// death of the leader's process, until Lead of a Candidate in another process is called.
func BenchmarkTakeOver(b *testing.B) {
	addr := server.Get(b).Addr()
	for _, client := range clients.All {
		b.Run("step-down/"+client.Name, func(b *testing.B) {
			leads := startCandidate(b, client.Name, "single", addr, b.Name(), 30*time.Second)
			leads.says("leads")
			waits := startCandidate(b, client.Name, "single", addr, b.Name(), 30*time.Second)
			var took []time.Duration
			for b.Loop() {
				waits.says("waiting")
				leads.tells("stop")
				from, _ := leads.says("stops")
				_, to := waits.says("leads")
				took = append(took, time.Duration(to-from))
				leads.says("stopped")
				leads.tells("start")
				leads, waits = waits, leads
			}
			report(b, took)
		})
	}
	const lease = 2 * time.Second
	b.Run(fmt.Sprintf("killed/TTL=%v", lease), func(b *testing.B) {
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			took []time.Duration
		)
		const atOnce = 5
		pairs := make(chan int, b.N)
		for i := range b.N {
			pairs <- i
		}
		close(pairs)
		for range atOnce {
			wg.Go(func() {
				for i := range pairs {
					client := clients.All[i%len(clients.All)]
					name := fmt.Sprint(b.Name(), b.N, i)
					leads := startCandidate(b, client.Name, "single", addr, name, lease)
					leads.says("leads")
					waits := startCandidate(b, client.Name, "single", addr, name, lease)
					waits.says("waiting")
					time.Sleep(rand.N(lease)) //nolint:forbidigo // it dies at any time after a renewal
					from := time.Now()
					leads.signal(syscall.SIGKILL)
					_, to := waits.says("leads")
					waits.signal(syscall.SIGKILL)
					mu.Lock()
					took = append(took, time.Duration(to-from.UnixNano()))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		report(b, took)
	})
}

// report reports the percentiles of the durations.
func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		at := took[min(len(took)*p/100, len(took)-1)]
		b.ReportMetric(float64(at.Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
	b.ReportMetric(0, "ns/op")
}
