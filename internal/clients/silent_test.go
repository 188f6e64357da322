package clients_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
)

// If a server is silent, a waiting subscription fails with an error about the silence, not about a
// closed connection.
func TestSubscribeToASilentServer(t *testing.T) {
	t.Parallel()
	for _, client := range clients.WithFork {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			clients.Bubble(t, func(t *testing.T) {
				m, p := clients.Proxied(t)
				drv, err := client.Dial(t, drivertest.Target{
					Kind: drivertest.Memory, Addrs: []string{p.Addr()}, Miniredis: true, Dial: m.Net.Dial,
				})
				check.Must(t, err)
				defer drv.Close()
				if _, err := drv.Subscribe(t.Context(), "heard"); err != nil {
					t.Fatal(err)
				}
				p.Freeze()
				defer p.Thaw()
				began := time.Now()
				_, err = drv.Subscribe(t.Context(), "unheard")
				if took := time.Since(began); took != 5*time.Second || err == nil || !strings.Contains(err.Error(), "no SUBSCRIBE was confirmed for 5s") {
					t.Errorf("Subscribe: %v after %v", err, took)
				}
			})
		})
	}
}
