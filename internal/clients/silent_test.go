package clients_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A subscription that waits while the server is silent fails with an error about that, not about a
// closed connection.
func TestSubscribeToASilentServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	for _, client := range clients.WithFork {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, server.Addr())
			drv := client.Open(t, proxy.Addr())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := drv.Subscribe(ctx, "heard"); err != nil {
				t.Fatal(err)
			}
			proxy.Freeze()
			defer proxy.Thaw()
			if _, err := drv.Subscribe(ctx, "unheard"); err == nil || !strings.Contains(err.Error(), "no SUBSCRIBE was confirmed for 5s") {
				t.Errorf("Subscribe: %v", err)
			}
		})
	}
}
