package adapter_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// valueFeed is a Feed that cannot be compared.
type valueFeed struct {
	adapter.Feed
	_ []byte
}

// A Feed need not be comparable.
func TestHubComparesNoFeeds(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		srv := newServer(t)
		hub := adapter.NewHub(func(ctx context.Context) (adapter.Feed, error) {
			f, err := srv.open(ctx)
			return valueFeed{Feed: f}, err
		})
		a := subscribe(t, hub, "a")
		check.Advance(6 * time.Second)
		wantWakeUps(t, "by a probe", a, 0)
		closeHub(t, hub)
	})
}
