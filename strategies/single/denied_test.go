package single_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A waiter whose user may not use all commands of the queue is refused as without one, and no queue
// stays for ever.
func TestQueueThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	for _, command := range []string{"zadd", "zrank", "pexpire"} {
		server.MustCommand(t, "ACL", "SETUSER", command, "on", ">secret", "allkeys", "allchannels", "+@all", "-"+command)
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: command, Password: "secret"})
		t.Cleanup(func() { _ = client.Close() })
		drv := locker.Must(goredis.New(client))
		t.Cleanup(func() { _ = drv.Close() })
		l := locker.Must(single.New(drv, single.Config{}))
		req := locker.Request{Name: command, TTL: time.Minute}
		held := locker.Must(l.Acquire(t.Context(), req))
		_, err := l.Acquire(waits(t, lease.NewToken(), time.Second), req)
		var refusal *locker.ContentionError
		if !errors.As(err, &refusal) || refusal.RetryAfter != 0 {
			t.Errorf("without %s: %v, %+v", command, err, refusal)
		}
		if left := server.MustCommand(t, "PTTL", "{"+command+"}:waiters"); left != int64(-2) {
			t.Errorf("without %s the queue stays for %v", command, left)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
