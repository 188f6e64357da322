package single_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	goredisclient "github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// takeover in the environment makes the test binary the process that resumes a hold, from the
// server at that address.
const takeover = "HOLDFAST_TAKEOVER"

func TestMain(m *testing.M) {
	if addr := os.Getenv(takeover); addr != "" {
		if err := takeOver(addr, bufio.NewReader(os.Stdin), os.Stdout); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	clients.VerifyNoLeaks(m)
}

// takeOver is the second process, on another client. It reads the Handle from standard input, where
// no one can see it, prints the hold, and releases it when asked to.
func takeOver(addr string, in *bufio.Reader, out io.Writer) error {
	pool := &redis.Pool{MaxIdle: 2, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", addr)
	}}
	defer pool.Close()
	drv := locker.Must(redigo.New(pool))
	defer drv.Close()
	text, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	handle, err := locker.ParseHandle(strings.TrimSpace(text))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lock, err := locker.Resume(ctx, locker.Must(single.New(drv, single.Config{})), handle)
	if err != nil {
		return err
	}
	if err := lock.Renew(ctx, 0); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, lock.Owner(), lock.TTL(), lock.Fence())
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	if err := lock.Release(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "released")
	return nil
}

// Contract 11, between processes: the second has the hold, with a new token and a higher fence. The
// first has lost it.
func TestResumeInAnotherProcess(t *testing.T) {
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		handOver(t, miniredis.RunT(t).Addr())
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		redistest.Need(t)
		handOver(t, redistest.Start(t, redistest.Options{}).Addr())
	})
}

func handOver(t *testing.T, addr string) {
	t.Helper()
	client := goredisclient.NewClient(&goredisclient.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { _ = drv.Close() })
	l := locker.Must(single.New(drv, single.Config{}))
	mine, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute, Fenced: true, Owner: "night-shift"})
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), takeover+"="+addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	say := func(line string) string {
		t.Helper()
		if _, err := fmt.Fprintln(in, line); err != nil {
			t.Fatal(err)
		}
		answer, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the second process said %q, then %v", answer, err)
		}
		return strings.TrimSpace(answer)
	}

	var owner, ttl string
	var fence int64
	answer := say(mine.Handle().Encode())
	if _, err := fmt.Sscan(answer, &owner, &ttl, &fence); err != nil || owner != "night-shift" || ttl != "1m0s" || fence <= mine.Fence() {
		t.Fatalf("the second process says %q (%v); want the owner, 1m0s, and a fence above %d", answer, err, mine.Fence())
	}
	match(t, mine.Renew(t.Context(), 0), []error{locker.ErrLost}, nil)
	match(t, mine.Release(t.Context()), []error{locker.ErrLost}, nil)
	_, err = l.Acquire(t.Context(), locker.Request{Name: name})
	match(t, err, []error{locker.ErrNotAcquired}, nil) // the release of the first took nothing away

	if answer := say("release"); answer != "released" {
		t.Fatalf("the second process says %q", answer)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	again, err := l.Acquire(t.Context(), locker.Request{Name: name, Fenced: true})
	if err != nil || again.Fence() <= fence {
		t.Fatalf("afterwards: %v, %v; want the lock with a fence above %d", again, err, fence)
	}
	match(t, again.Release(t.Context()), nil, nil)
}
