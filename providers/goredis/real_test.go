package goredis_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The conformance suite dials as most programs do. These are the other ways that go-redis has to a
// real server.
func TestOtherWaysToConnect(t *testing.T) {
	t.Parallel()
	plain := redistest.Start(t, redistest.Options{})
	for name, client := range map[string]redis.UniversalClient{
		"RESP2":      redis.NewClient(&redis.Options{Addr: plain.Addr(), Protocol: 2}),
		"RESP3":      redis.NewClient(&redis.Options{Addr: plain.Addr(), Protocol: 3, ContextTimeoutEnabled: true}),
		"database 7": redis.NewClient(&redis.Options{Addr: plain.Addr(), DB: 7, ClientName: "name"}),
		"old login":  redis.NewClient(&redis.Options{Addr: plain.Addr(), Protocol: 2, DisableIdentity: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drv := newDriver(t, client)
			ctx := driver.Bound(t.Context(), time.Minute)
			defer ctx.Stop()
			for _, want := range []bool{true, false} {
				if set, err := drv.SetNX(ctx, "set by "+name, "v", time.Minute); set != want || err != nil {
					t.Errorf("SetNX = %v, %v; want %v", set, err, want)
				}
			}
			key := "counted by " + name
			reply, err := drv.Eval(ctx, testScript, []string{key}, nil)
			if n, _ := reply.Int(0); n != 1 || err != nil {
				t.Errorf("Eval = %d, %v; want 1", n, err)
			}
			for i, r := range batcher(drv).EvalMany(ctx, []driver.Call{{Script: testScript, Keys: []string{key}}}) {
				if n, _ := r.Reply.Int(0); n != 2 || r.Err != nil {
					t.Errorf("EvalMany[%d] = %d, %v; want 2", i, n, r.Err)
				}
			}
			sub, err := drv.Subscribe(ctx, "channel of "+name)
			if err != nil {
				t.Fatal(err)
			}
			<-sub.Wake()
			if err := sub.Close(); err != nil {
				t.Errorf("Subscription.Close: %v", err)
			}
		})
	}
}

// A client that trusts another CA never gets to send anything.
func TestUntrustedServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{TLS: redistest.ServerTLS})
	drv := newDriver(t, redis.NewClient(&redis.Options{
		Addr: server.Addr(), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DialerRetries: 1,
	}))
	for name, operation := range operations {
		if err := operation(t.Context(), drv); err == nil || !driver.NotExecuted(err) {
			t.Errorf("%s: error %v, want one that says that nothing was sent", name, err)
		}
	}
}
