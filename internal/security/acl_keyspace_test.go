package security_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A waiter with single.Config.Keyspace needs the channel of the key's events. Without it, it listens to
// the releases of Holdfast alone.
func TestACLOfKeyspace(t *testing.T) {
	t.Parallel()
	const pattern = "&__keyspace@0__:lock:*"
	check.Contains(t, document, string(locker.Must(os.ReadFile(document))), "`"+pattern+"`")
	server := redistest.Start(t, redistest.Options{})
	for _, client := range clients.WithFork {
		for _, more := range [][]string{nil, {pattern}} {
			key := fmt.Sprint("lock:events:", client.Name, len(more))
			server.MustCommand(t, "SET", key, "of another library")
			rights := append(rule(t, "single"), alsoNeeded(t, client.Name, drivertest.Single)...)
			setUser(t, server, "single", append(rights, more...))
			drv, err := dial(t, client, "single", alone(server))
			check.Must(t, err)
			l := locker.Must(single.New(drv, single.Config{Keyspace: "__keyspace@0__:"}))
			_, err = l.Acquire(t.Context(), locker.Request{Name: key})
			held, refused := errors.AsType[*locker.ContentionError](err)
			if !refused {
				t.Fatalf("%s: the acquire of a held lock: %v", client.Name, err)
			}
			sub := locker.Must(held.Channel.Subscribe(t.Context()))
			events := "__keyspace@0__:" + key
			check.Eventually(t, client.Name+": the server has the answer about "+events, func() bool {
				if more == nil {
					return slices.Contains(denied(t, server), "channel "+events)
				}
				return fmt.Sprint(server.MustCommand(t, "PUBSUB", "NUMSUB", events)) == fmt.Sprint([]any{events, 1})
			})
			check.OK(t, sub.Close())
			check.OK(t, drv.Close())
		}
	}
}
