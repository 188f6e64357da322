package redigo

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/gocommand"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestIsClosed(t *testing.T) {
	t.Parallel()
	for module, pool := range map[string]interface {
		Pool
		Close() error
	}{
		"github.com/gomodule/redigo": &redis.Pool{Dial: func() (redis.Conn, error) { return nil, errors.ErrUnsupported }},
		"github.com/mna/redisc":      &redisc.Cluster{StartupNodes: []string{"127.0.0.1:1"}},
	} {
		check.Must(t, pool.Close())
		if err := pool.Get().Err(); err == nil || !isClosed(err) {
			version := gocommand.Run(t, ".", "list", "-m", "-f", "{{.Version}}", module)
			t.Errorf("%s %s: the error of a closed %T is now %v: change private.go", module, strings.TrimSpace(string(version)), pool, err)
		}
	}
}

// A pool closed with an unknown error may open again.
func TestUnknownErrorOfAPool(t *testing.T) {
	t.Parallel()
	drv, err := New(failing{errors.New("redigo: the pool was closed")})
	check.Must(t, err)
	t.Cleanup(func() { check.OK(t, drv.Close()) })
	_, err = drv.SetNX(t.Context(), "k", "v", time.Minute)
	check.Is(t, err, driver.ErrNotSent)
	check.IsNot(t, err, driver.ErrPermanent)
}

// failing is a pool without connections.
type failing struct{ err error }

func (f failing) Get() redis.Conn { return failedConn{err: f.err} }

type failedConn struct {
	redis.Conn
	err error
}

func (failedConn) Close() error { return nil }
func (c failedConn) Err() error { return c.err }
