package security_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// quoted replaces the backticks of Redis 6.2 by the quotes of later servers.
func quoted(text string) string { return strings.ReplaceAll(text, "`", "'") }

// A server repeats the arguments of an unknown command in the error, with the token of the hold
// among them. No error, no lock and no log line shows it, however it is printed.
func TestRepliesThatRepeatArguments(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	for server, unknown := range map[string][]string{"no EVALSHA": {"EVALSHA"}, "neither SET nor EVALSHA": {"SET", "EVALSHA"}} {
		for _, client := range clients.WithFork {
			t.Run(server+"/"+client.Name, func(t *testing.T) {
				t.Parallel()
				var args []string
				for _, command := range unknown {
					args = append(args, "--rename-command", command, "")
				}
				drv := recording(client.Open(t, redistest.Start(t, redistest.Options{Args: args}).Addr()))
				printed := everyText(t, drv)
				check.Contains(t, "what is printed", quoted(printed), "unknown command 'EVALSHA'")
				check.AtLeast(t, "tokens that were sent", len(drv.tokens), 5)
				for _, token := range drv.tokens {
					if i := strings.Index(printed, token[:lease.TokenLen/2]); i >= 0 {
						t.Fatalf("a token is printed: %q", printed[max(i-300, 0):min(i+100, len(printed))])
					}
				}
			})
		}
	}
}

// everyText uses locks of each strategy, and prints every error and every lock in every way.
func everyText(t *testing.T, drv driver.Driver) string {
	t.Helper()
	var printed strings.Builder
	show := func(err error) {
		if err == nil {
			return
		}
		for _, e := range tree(err) {
			printAll(&printed, e)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, l := range []locker.Locker{
		locker.Must(single.New(drv, single.Config{})),
		locker.Must(single.New(drv, single.Config{MinReplicas: 1, ReplicaTimeout: time.Millisecond})),
		locker.Must(reentrant.New(drv, reentrant.Config{})),
		locker.Must(rwhash.New(drv, rwhash.Config{})),
		locker.Must(semaphore.New(drv, semaphore.Config{Permits: 2})),
		locker.Must(redisson.New(drv, redisson.Config{})),
	} {
		for _, fenced := range []bool{false, true} {
			lock, err := l.Acquire(ctx, locker.Request{Name: "a", Fenced: fenced, Note: "n"})
			show(err)
			_, err = l.Acquire(ctx, locker.Request{Name: "a", Fenced: fenced, NoWait: true})
			show(err)
			if lock != nil {
				show(lock.Renew(ctx, time.Hour))
				_, err = locker.Resume(ctx, l, lock.Handle())
				show(err)
				show(lock.Release(ctx))
				show(lock.Err())
				printAll(&printed, lock)
			}
		}
		_, err := l.(locker.Inspector).Inspect(ctx, "a")
		show(err)
	}
	if effort.Full() {
		printLost(t, drv, show, &printed)
	}
	return printed.String()
}

// printLost waits until a lock's lease ends. None of the watchdog's renewals succeeds.
func printLost(t *testing.T, drv driver.Driver, show func(error), printed *strings.Builder) {
	t.Helper()
	l := locker.Must(holdfast.New(drv, holdfast.Config{}))
	lock, err := l.Acquire(t.Context(), locker.Request{Name: "watched", TTL: 30 * time.Second})
	if show(err); err != nil {
		return
	}
	work, cancel := lock.Context(t.Context())
	defer cancel()
	<-lock.Done()
	show(lock.Err())
	show(context.Cause(work))
	printAll(printed, lock)
	show(lock.Release(t.Context()))
}

// tree returns err and all its wrapped errors.
func tree(err error) []error {
	all := []error{err}
	switch e := err.(type) { //nolint:errorlint // it walks the tree
	case interface{ Unwrap() error }:
		if below := e.Unwrap(); below != nil {
			all = append(all, tree(below)...)
		}
	case interface{ Unwrap() []error }:
		for _, below := range e.Unwrap() {
			all = append(all, tree(below)...)
		}
	}
	return all
}

func printAll(b *strings.Builder, v any) {
	fmt.Fprintf(b, "%v\n%+v\n%#v\n%s\n%q\n", v, v, v, v, v)
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(h).Info("printed", "v", v)
	}
	b.Write(logged.Bytes())
}
