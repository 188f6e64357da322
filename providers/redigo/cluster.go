package redigo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

const (
	// maxRedirects is how many redirections one command follows.
	maxRedirects = 5
	// refreshEvery is the minimum time from one call of refresh to the next.
	refreshEvery = time.Second
)

// cluster has the methods of *redisc.Cluster to follow ASK.
type cluster interface {
	EachNode(replicas bool, visit func(addr string, conn redis.Conn) error) error
	Refresh() error
}

// binder is implemented by the connections of a cluster.
type binder interface {
	Bind(keys ...string) error
}

func bind(b binder, key string) error {
	if key == "" {
		return b.Bind() // any node
	}
	return b.Bind(key)
}

// sendToCluster is send for a cluster. It follows MOVED and ASK, since they prove that a command
// did not run. The slots of a flight are probably of one node.
func (d *redigoDriver) sendToCluster(ctx context.Context, commands []*adapter.Command) {
	d.send(ctx, commands)
	if slices.ContainsFunc(commands, unanswered) {
		d.refresh()
	}
	for _, c := range commands {
		if c.Key() == "" {
			continue // any node serves it
		}
		one := []*adapter.Command{c}
		for range maxRedirects {
			switch driver.CodeOf(c.Err()) {
			case "MOVED": // the pool has noted the new node
				d.send(ctx, one)
			case "ASK":
				d.ask(ctx, one)
			}
		}
	}
}

// unanswered reports whether c has no reply.
func unanswered(c *adapter.Command) bool { return c.Err() != nil && driver.CodeOf(c.Err()) == "" }

// refresh makes redisc read the slots anew, in the background. redisc itself does so after MOVED,
// which a frozen master does not send when a replica has taken over its slots.
func (d *redigoDriver) refresh() {
	due, now := d.refreshDue.Load(), time.Now()
	if now.UnixNano() < due || !d.refreshDue.CompareAndSwap(due, now.Add(refreshEvery).UnixNano()) {
		return
	}
	d.Background(func(ctx context.Context) {
		// If it fails, the next command without a reply tries again.
		_, _ = adapter.Await(ctx, func() (any, error) { return nil, d.cluster.Refresh() })
	})
}

// errVisited ends a walk over the nodes.
var errVisited = errors.New("visited")

// ask sends the command to the node named by the ASK reply.
func (d *redigoDriver) ask(ctx context.Context, asked []*adapter.Command) {
	c := asked[0]
	reply, _ := errors.AsType[*driver.ServerError](c.Err())
	target := reply.Text[strings.LastIndexByte(reply.Text, ' ')+1:] // ASK 3999 127.0.0.1:6381
	visit := func(addr string, conn redis.Conn) error {
		if addr != target {
			return nil
		}
		if err := conn.Err(); err != nil {
			c.Answer(nil, driver.NotSent(explain(ctx, err)))
		} else {
			d.exchange(ctx, conn, asked, true)
		}
		return errVisited
	}
	walked := d.cluster.EachNode(false, visit)
	if !errors.Is(walked, errVisited) && d.cluster.Refresh() == nil {
		walked = d.cluster.EachNode(false, visit) // the node is new, or now known by its other name
	}
	if !errors.Is(walked, errVisited) {
		c.Answer(nil, driver.NotSent(fmt.Errorf("redigo: the pool does not know the node of %q", reply.Text)))
	}
}
