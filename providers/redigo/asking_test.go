package redigo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

// fakeCluster's first node answers ASK; the second, which owns the slot by now, refuses ASKING
// (ACL) and runs SET.
type fakeCluster struct{ ran bool }
type fakeConn struct {
	redis.Conn
	c     *fakeCluster
	asked bool
	first bool
}

func (f *fakeCluster) Get() redis.Conn { return &fakeConn{c: f, first: true} }
func (f *fakeCluster) Refresh() error  { return nil }
func (f *fakeCluster) EachNode(_ bool, visit func(string, redis.Conn) error) error {
	return visit("b:1", &fakeConn{c: f})
}
func (f *fakeConn) Err() error                { return nil }
func (f *fakeConn) Close() error              { return nil }
func (f *fakeConn) Bind(...string) error      { return nil }
func (f *fakeConn) Send(string, ...any) error { f.asked = true; return nil }
func (f *fakeConn) DoWithTimeout(_ time.Duration, command string, _ ...any) (any, error) {
	return f.Do(command)
}
func (f *fakeConn) ReceiveWithTimeout(time.Duration) (any, error) { return nil, nil }
func (f *fakeConn) Do(command string, _ ...any) (any, error) {
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

func TestRefusedAskingIsNotTheCommands(t *testing.T) {
	f := &fakeCluster{}
	drv, err := redigo.New(f)
	must(t, err)
	defer drv.Close()
	_, err = drv.SetNX(context.Background(), "k", "v", time.Second)
	if !errors.Is(err, driver.ErrNotSent) || f.ran {
		t.Errorf("error %v, ran %v; want the command not sent after a refused ASKING", err, f.ran)
	}
}
