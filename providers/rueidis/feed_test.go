package rueidis

import (
	"errors"
	"fmt"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

func openFeed(t *testing.T, opts rueidis.ClientOption) (*rueidisDriver, adapter.Feed) {
	t.Helper()
	client, err := rueidis.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d := &rueidisDriver{client: client}
	f, err := d.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return d, f
}

func TestFeed(t *testing.T) {
	t.Parallel()
	resp2 := rueidis.ClientOption{InitAddress: []string{miniredis.RunT(t).Addr()}, DisableCache: true, AlwaysRESP2: true, ForceSingleClient: true}
	for name, options := range map[string]func(t *testing.T) rueidis.ClientOption{
		"RESP2": func(*testing.T) rueidis.ClientOption { return resp2 },
		"RESP3": func(t *testing.T) rueidis.ClientOption {
			return rueidis.ClientOption{InitAddress: []string{redistest.Start(t, redistest.Options{}).Addr()}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, f := openFeed(t, options(t))
			want := []adapter.Event{{Kind: adapter.Subscribed, Channel: "a"}, {Kind: adapter.Subscribed, Channel: "b"}, {Kind: adapter.Subscribed, Channel: "a"}}
			err := errors.Join(f.Subscribe("a"), f.Subscribe("b"), f.Unsubscribe("a"), f.Subscribe("a"))
			for i, w := range want {
				got, nextErr := f.Next()
				if err = errors.Join(err, nextErr); err != nil || got != w {
					t.Fatalf("event %d: %v, %v; want %v", i, got, err, w)
				}
			}
			for i := range 100 {
				channel := []string{"a", "b"}[i%2]
				if err := a.client.Do(t.Context(), a.client.B().Publish().Channel(channel).Message(fmt.Sprint(i)).Build()).Error(); err != nil {
					t.Fatal(err)
				}
				if got, err := f.Next(); err != nil || got != (adapter.Event{Kind: adapter.Message, Channel: channel}) {
					t.Fatalf("message %d: %v, %v", i, got, err)
				}
			}
			next := make(chan error)
			go func() {
				_, err := f.Next()
				next <- err
			}()
			_ = f.Close()
			if err := <-next; err == nil {
				t.Error("Next after Close: no error")
			}
			if err := f.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
		})
	}
}

// With RESP2 the client keeps a second connection for subscriptions. When it does not come about,
// the hub must learn it from open, so that it tries less and less often.
func TestOpenNeedsTheSecondConnection(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, miniredis.RunT(t).Addr())
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{p.Addr()}, DisableCache: true, AlwaysRESP2: true, ForceSingleClient: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	_, release := client.Dedicate() // a first connection is in the pool
	p.Refuse()
	release()
	_, err = (&rueidisDriver{client: client}).open(t.Context())
	if !adapter.DialFailed(err) {
		t.Errorf("open: %v, want a failure to dial", err)
	}
}
