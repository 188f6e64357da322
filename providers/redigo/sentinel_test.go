package redigo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The master dies. Calls and subscriptions find the new one.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, redistest.Options{Password: "secret"})
	drv := open(t, clients.RedigoSentinel(t, s.SentinelAddrs(), s.MasterName(), redis.DialPassword("secret")))
	set, err := drv.SetNX(t.Context(), "before", "v", time.Minute)
	if !set || err != nil {
		t.Fatalf("SetNX: %v, %v", set, err)
	}
	sub, err := drv.Subscribe(t.Context(), "c")
	must(t, err)
	defer sub.Close()
	wantWake(t, "confirmation", sub)

	old, err := s.KillMaster(t.Context())
	must(t, err)
	master, err := s.WaitMaster(t.Context(), old)
	must(t, err)
	tries := 0
	after := func() string { return fmt.Sprint("after ", tries) } // one whose answer is lost may be set
	eventually(t, "SetNX at the new master", func() bool {
		tries++
		set, err := drv.SetNX(t.Context(), after(), "v", time.Minute)
		if err != nil && !driver.Transient(err) {
			t.Errorf("error %v is said not to pass", err)
		}
		return set
	})
	if got := master.MustCommand(t, "GET", after()); got != "v" {
		t.Errorf("at the new master: %v", got)
	}
	wantWake(t, "new subscription", sub)
}
