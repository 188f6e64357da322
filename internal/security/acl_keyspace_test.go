package security_test

import (
	"errors"
	"fmt"
	"os"
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
	const key, pattern = "lock:events", "&__keyspace@0__:lock:*"
	check.Contains(t, document, string(locker.Must(os.ReadFile(document))), "`"+pattern+"`")
	server := redistest.Start(t, redistest.Options{})
	server.MustCommand(t, "SET", key, "of another library")
	for _, client := range clients.WithFork {
		for allowed, more := range map[int64][]string{0: nil, 1: {pattern}} {
			setUser(t, server, "single", append(append(rule(t, "single"), alsoNeeded(t, client.Name, drivertest.Single)...), more...))
			drv, err := dial(t, client, "single", alone(server))
			check.Must(t, err)
			l := locker.Must(single.New(drv, single.Config{Keyspace: "__keyspace@0__:"}))
			_, err = l.Acquire(t.Context(), locker.Request{Name: key})
			held, refused := errors.AsType[*locker.ContentionError](err)
			if !refused {
				t.Fatalf("%s: the acquire of a held lock: %v", client.Name, err)
			}
			sub := locker.Must(held.Channel.Subscribe(t.Context()))
			listeners := server.MustCommand(t, "PUBSUB", "NUMSUB", "__keyspace@0__:"+key, held.Channel.Name())
			check.Equal(t, client.Name+": listeners", fmt.Sprint(listeners), fmt.Sprint([]any{"__keyspace@0__:" + key, allowed, held.Channel.Name(), 1}))
			check.OK(t, sub.Close())
			check.OK(t, drv.Close())
		}
	}
}
