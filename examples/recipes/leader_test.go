package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// The first candidate leads until it stops, then the second one.
func Example_leader() {
	b := connect()
	defer b.close()
	l := locker.Must(holdfast.New(b.driver, holdfast.Config{}))

	run := func(ctx context.Context, candidate string) (leads chan int64, stopped chan error) {
		leads, stopped = make(chan int64), make(chan error)
		go func() {
			stopped <- leader.Run(ctx, l, leader.Config{
				Name: "leader", TTL: 15 * time.Second, Note: candidate,
				Lead: func(ctx context.Context, term int64) error {
					leads <- term // each term has a higher number
					<-ctx.Done()  // the work goes here; it stops soon after ctx ends
					return ctx.Err()
				},
			})
		}()
		return leads, stopped
	}
	ctxA, stopA := context.WithCancel(context.Background())
	leadsA, stoppedA := run(ctxA, "a")
	first := <-leadsA
	ctxB, stopB := context.WithCancel(context.Background())
	leadsB, stoppedB := run(ctxB, "b")
	stopA()
	fmt.Println("a stopped:", <-stoppedA) // its lock is released
	fmt.Println("b leads a later term:", <-leadsB > first)
	stopB()
	fmt.Println("b stopped:", <-stoppedB)
	// Output:
	// a stopped: <nil>
	// b leads a later term: true
	// b stopped: <nil>
}

// A leader that is cut off from the server, or dies, sends nothing any more. It stops before the
// other candidate takes over, within one TTL.
func TestLeaderTakeOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 15 * time.Second
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true)
		defer server.Close()

		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var leading atomic.Int32
		events := make(chan string, 10)
		var terms []int64
		campaign := func(candidate string) *link {
			to := &link{server: server}
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: to.dial, ContextTimeoutEnabled: true})
			drv := locker.Must(goredis.New(client))
			l := locker.Must(holdfast.New(drv, holdfast.Config{}))
			running.Go(func() {
				defer client.Close()
				defer drv.Close()
				err := leader.Run(ctx, l, leader.Config{
					Name: "leader", TTL: ttl, Note: candidate,
					Lead: func(ctx context.Context, term int64) error {
						if leading.Add(1) != 1 {
							t.Error("two lead at once")
						}
						defer leading.Add(-1)
						terms = append(terms, term)
						events <- candidate + " leads"
						<-ctx.Done()
						if errors.Is(context.Cause(ctx), locker.ErrLost) {
							events <- candidate + " lost the leadership"
						}
						return ctx.Err()
					},
				})
				if err != nil {
					t.Error(err)
				}
			})
			return to
		}
		want := func(event string) {
			t.Helper()
			if got := <-events; got != event {
				t.Fatalf("%s, want: %s", got, event)
			}
		}

		a := campaign("a")
		want("a leads")
		b := campaign("b")
		time.Sleep(time.Minute) //nolint:forbidigo // fake time: a renews, b waits
		for _, end := range []struct {
			of          *link
			loses, next string
		}{{a, "a", "b"}, {b, "b", "a"}} {
			cut := time.Now()
			end.of.cut(true)
			want(end.loses + " lost the leadership")
			want(end.next + " leads")
			if took := time.Since(cut); took > ttl {
				t.Errorf("%s leads %v after %s was cut off, want %v at most", end.next, took, end.loses, ttl)
			}
			end.of.cut(false)       // it campaigns again
			time.Sleep(time.Minute) //nolint:forbidigo // fake time
		}
		stop()
		running.Wait()
		if len(terms) != 3 || !slices.IsSorted(terms) {
			t.Errorf("terms %v, want three that increase", terms)
		}
	})
}

// link is the network between a process and the server.
type link struct {
	server *miniredis.Miniredis
	mu     sync.Mutex
	isCut  bool
	conns  []net.Conn
}

func (l *link) dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return nil, errors.New("no route to host")
	}
	conn, err := l.server.Dial()
	l.conns = append(l.conns, conn)
	return conn, err
}

// cut ends the connections, and refuses others until it is called with false.
func (l *link) cut(isCut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = isCut
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}
