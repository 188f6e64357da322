package redigo_test

import (
	"context"
	"sync"
	"testing"
	"time"

	client "github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

// frozenCluster is a cluster of which the node of the key "frozen" answers once it is thawed.
type frozenCluster struct {
	begun, thawed chan struct{}
}

func (c *frozenCluster) Get() client.Conn { return &frozenConn{cluster: c} }

func (c *frozenCluster) EachNode(bool, func(string, client.Conn) error) error { return nil }

func (c *frozenCluster) Refresh() error { return nil }

type frozenConn struct {
	fakeConn
	cluster *frozenCluster
	key     string
}

func (c *frozenConn) Bind(keys ...string) error {
	c.key = keys[0]
	return nil
}

func (c *frozenConn) Do(string, ...any) (any, error) {
	if c.key == "frozen" {
		c.cluster.begun <- struct{}{}
		<-c.cluster.thawed
	}
	return "OK", nil
}

func (c *frozenConn) DoWithTimeout(_ time.Duration, command string, args ...any) (any, error) {
	return c.Do(command, args...)
}

// However many calls wait for a frozen node of a cluster, calls to a node with other slots go on.
func TestFrozenNodeDelaysNoOther(t *testing.T) {
	t.Parallel()
	const callers = 1100 // more than all calls that may be under way at one part of the cluster
	c := &frozenCluster{begun: make(chan struct{}, callers), thawed: make(chan struct{})}
	drv, err := redigo.New(c)
	must(t, err)
	send := func(key string, urgent bool) error {
		ctx := &driver.Bounded{Urgent: urgent}
		ctx.Start(context.Background(), time.Now().Add(time.Minute))
		defer ctx.Stop()
		_, err := drv.SetNX(ctx, key, "v", time.Second)
		return err
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if err := send("frozen", i%2 == 0); err != nil {
				t.Errorf("a call that waited for the frozen node: %v", err)
			}
		})
	}
	for range 64 { // as many as may be under way at that part
		<-c.begun
	}
	for _, urgent := range []bool{false, true} {
		if err := send("healthy", urgent); err != nil {
			t.Errorf("a healthy node's call, urgent %t: %v", urgent, err)
		}
	}
	close(c.thawed)
	wg.Wait()
	must(t, drv.Close())
}
