package redigo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// askedCluster's first node answers ASK; the second owns the slot by now, refuses ASKING (ACL) and
// runs SET.
type askedCluster struct{ ran bool }

type askedConn struct {
	redis.Conn
	c            *askedCluster
	asked, first bool
}

func (f *askedCluster) Get() redis.Conn { return &askedConn{c: f, first: true} }
func (f *askedCluster) Refresh() error  { return nil }
func (f *askedCluster) EachNode(_ bool, visit func(string, redis.Conn) error) error {
	return visit("b:1", &askedConn{c: f})
}

func (f *askedConn) Err() error                { return nil }
func (f *askedConn) Close() error              { return nil }
func (f *askedConn) Bind(...string) error      { return nil }
func (f *askedConn) Send(string, ...any) error { f.asked = true; return nil }
func (f *askedConn) DoWithTimeout(_ time.Duration, command string, _ ...any) (any, error) {
	const refusal = redis.Error("NOPERM this user has no permissions to run the 'asking' command")
	switch {
	case f.first:
		return nil, redis.Error("ASK 1 b:1")
	case command == "ASKING":
		return nil, refusal
	}
	f.c.ran = true
	if f.asked { // redigo's Do returns the first error of pending replies
		return "OK", refusal
	}
	return "OK", nil
}
func (f *askedConn) Do(command string, _ ...any) (any, error)      { return f.DoWithTimeout(0, command) }
func (f *askedConn) ReceiveWithTimeout(time.Duration) (any, error) { return nil, nil }

func TestRefusedAskingIsNotTheCommands(t *testing.T) {
	t.Parallel()
	f := &askedCluster{}
	_, err := open(t, f).SetNX(t.Context(), "k", "v", time.Second)
	if !errors.Is(err, driver.ErrNotSent) || f.ran {
		t.Errorf("error %v, ran %v; want the command not sent after a refused ASKING", err, f.ran)
	}
}
