package security_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A release with single.Config.Signal needs the rights to the other library's list or channel. Without
// them it sends no signal, but releases.
func TestACLOfSignal(t *testing.T) {
	t.Parallel()
	document := string(locker.Must(os.ReadFile(document)))
	server, client := redistest.Start(t, redistest.Options{}), clients.All[0]
	for prefix, tt := range map[string]struct {
		signal single.Signal
		rights []string
		denied string
	}{
		"lock:":        {single.PythonRedisLock, []string{"~lock-signal:*", "+lpush"}, "lock-signal:job"},
		"registryKey:": {single.SpringPubSub, []string{"&registryKey-channel", "&registryKey-channel:*"}, "registryKey-channel:registryKey:job"},
	} {
		for _, more := range [][]string{nil, tt.rights} {
			rights := append(rule(t, "single"), alsoNeeded(t, client.Name, drivertest.Single)...)
			for i, word := range rights {
				rights[i] = strings.ReplaceAll(word, "lock:*", prefix+"*")
			}
			setUser(t, server, "single", append(rights, more...))
			server.MustCommand(t, "ACL", "LOG", "RESET")
			drv, err := dial(t, client, "single", alone(server))
			check.Must(t, err)
			l := locker.Must(single.New(drv, single.Config{Prefix: prefix, Signal: tt.signal}))
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: time.Hour}))
			check.OK(t, lock.Release(t.Context()))
			check.Equal(t, prefix+" the key is left", server.MustCommand(t, "EXISTS", prefix+"job"), any(int64(0)))
			refused := strings.Contains(strings.Join(denied(t, server), "\n"), tt.denied)
			check.Equal(t, prefix+" the signal is refused", refused, more == nil)
			check.OK(t, drv.Close())
		}
		for _, right := range tt.rights {
			check.Contains(t, "SECURITY.md", document, "`"+right+"`")
		}
	}
}
