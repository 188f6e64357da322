package redigo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// maxRedirects is how many redirections one command follows.
const maxRedirects = 5

// cluster is what *redisc.Cluster has and this package needs to follow ASK.
type cluster interface {
	EachNode(replicas bool, visit func(addr string, conn redis.Conn) error) error
	Refresh() error
}

// binder is what a connection of a cluster has.
type binder interface {
	Bind(keys ...string) error
}

func bind(b binder, key string) error {
	if key == "" {
		return b.Bind() // any node
	}
	return b.Bind(key)
}

// do sends one command.
func (d *redigoDriver) do(ctx context.Context, key, command string, args []any) (any, error) {
	return follow(ctx, d, key, func(conn redis.Conn) (any, error) { return exec(ctx, conn, command, args) })
}

// follow uses a connection to key's node. In a cluster it follows MOVED and ASK, which prove that
// what use sent did not run.
func follow[T any](
	ctx context.Context, d *redigoDriver, key string, use func(redis.Conn) (T, error),
) (T, error) {
	v, err := call(ctx, d, key, use)
	if d.cluster == nil {
		return v, err
	}
	for range maxRedirects {
		switch driver.CodeOf(err) {
		case "MOVED": // the pool has noted the new node
			v, err = call(ctx, d, key, use)
		case "ASK":
			v, err = ask(ctx, d, err, use)
		default:
			return v, err
		}
	}
	return v, err
}

// errVisited ends a walk over the nodes.
var errVisited = errors.New("visited")

// ask uses a connection of the node that an ASK reply names.
func ask[T any](
	ctx context.Context, d *redigoDriver, asked error, use func(redis.Conn) (T, error),
) (T, error) {
	reply, _ := errors.AsType[*driver.ServerError](asked)
	target := reply.Text[strings.LastIndexByte(reply.Text, ' ')+1:] // ASK 3999 127.0.0.1:6381
	asking := func(conn redis.Conn) (T, error) {
		// In a round trip of its own: redigo gives the first error of several replies, and a
		// refused ASKING says nothing about the command after it.
		if _, err := exec(ctx, conn, "ASKING", nil); err != nil {
			var none T
			return none, driver.NotSent(err)
		}
		return use(conn)
	}
	return detach(ctx, nil, func(begun *atomic.Bool) (v T, err error) {
		visit := func(addr string, conn redis.Conn) error {
			if addr != target {
				return nil
			}
			if err = conn.Err(); err == nil {
				v, err = begin(ctx, d, conn, asking, begun, lag)
			}
			return errVisited
		}
		walked := d.cluster.EachNode(false, visit)
		if !errors.Is(walked, errVisited) && d.cluster.Refresh() == nil {
			walked = d.cluster.EachNode(false, visit) // the node is new, or now known by its other name
		}
		if !errors.Is(walked, errVisited) {
			err = fmt.Errorf("redigo: the pool does not know the node of %q", reply.Text)
		}
		return v, err
	})
}
