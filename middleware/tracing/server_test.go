package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

// On a real server, through the usual chain, each client's waiter links to the holder on the next
// client. Nothing that either side records lets a reader release or re-enter.
func TestLinkOnServer(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	server := redistest.Start(t, redistest.Options{})
	for i, c := range clients.All {
		next := clients.All[(i+1)%len(clients.All)]
		t.Run(c.Name+" holds, "+next.Name+" waits", func(t *testing.T) {
			t.Parallel()
			name := "job:" + c.Name
			holder, waiter := record(), record()
			chain := func(r *recorded, c clients.Client) locker.Locker {
				return locker.Chain(locker.Must(holdfast.New(c.Open(t, server.Addr()), holdfast.Config{})), r.middleware(tracing.Config{}))
			}
			holding, waiting := chain(holder, c), chain(waiter, next)
			req := locker.Request{Name: name, Owner: "secret-owner", Fenced: true, TTL: time.Minute}
			lock := locker.Must(holding.Acquire(t.Context(), req))
			secret, _, _ := strings.Cut(lock.Handle().Grant().Token, "|")

			began := make(chan struct{}, 1)
			ctx := locktrace.With(t.Context(), &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) {
				select {
				case began <- struct{}{}:
				default:
				}
			}})
			got := make(chan error, 1)
			go func() {
				got <- locker.Do(ctx, waiting, locker.Request{Name: name, MaxWait: time.Minute}, func(context.Context, *locker.Lock) error { return nil })
			}()
			<-began
			check.OK(t, errors.Join(lock.Renew(t.Context(), 0), lock.Release(t.Context()), <-got))
			equal(t, "links", linked(waiter.only(t, "acquire lock")), []string{toward(holder.only(t, "acquire lock").SpanContext())})
			if lost := holder.only(t, "hold lock"); lost.Status().Description != "" {
				t.Errorf("the hold has status %v", lost.Status())
			}
			for _, r := range []*recorded{holder, waiter} {
				for _, s := range r.Ended() {
					all := text(s.Attributes()) + fmt.Sprint(events(s), linked(s), s.Status())
					if strings.Contains(all, secret) || strings.Contains(all, "secret-owner") {
						t.Errorf("%s tells %s", s.Name(), all)
					}
				}
			}
		})
	}
}
