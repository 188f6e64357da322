package goredis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// TestConformance runs the suite over a client as the documentation advises to set it up, and over
// one with its defaults.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, enabled := range map[string]bool{"ContextTimeoutEnabled": true, "Defaults": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "Defaults" {
				t.Skip("-short leaves out clients with other options than the defaults")
			}
			conformance.Run(t, conformance.Harness{
				Name: "goredis",
				Dial: func(tb conformance.TB, target conformance.Target) (driver.Driver, error) {
					client := dial(target, enabled)
					tb.Cleanup(func() { _ = client.Close() })
					return goredis.New(client)
				},
			})
		})
	}
}

func dial(target conformance.Target, contextTimeoutEnabled bool) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:                 target.Addrs,
		MasterName:            target.MasterName,
		IsClusterMode:         target.Kind == conformance.Cluster,
		Username:              target.Username,
		Password:              target.Password,
		TLSConfig:             target.TLS,
		ContextTimeoutEnabled: contextTimeoutEnabled,
	})
}
