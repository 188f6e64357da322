package conformance

import (
	"slices"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// listener counts the messages on channels of one server, around the drivers.
type listener struct {
	t    *caseT
	addr string
	mark string // the channel of a mark behind the messages so far
	conn *resp.Conn
	talk *resp.Conn // to publish the mark
}

// wakeChannel returns the channel of name's releases: Harness.Siblings, or as docs/contracts.md
// defines it.
func (t *caseT) wakeChannel(name string) string {
	if t.h.Siblings != nil {
		return t.h.Siblings.WakeChannel(name)
	}
	channel, _ := sibling.Of(name, sibling.WakeSuffix)
	return channel
}

// listenAt subscribes to channels on a server.
func (t *caseT) listenAt(addr string, channels ...string) *listener {
	t.Helper()
	l := &listener{t: t, addr: addr, mark: "mark of conformance." + lease.NewToken()}
	at := t.Server.Target
	at.Addrs = []string{addr}
	connect := func() *resp.Conn {
		t.Helper()
		c, err := suite.Connect(t.Ctx, at)
		t.OK(err, "connect to %s", addr)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	l.conn, l.talk = connect(), connect()
	l.do("SUBSCRIBE", l.mark)
	for _, channel := range channels {
		l.do("SUBSCRIBE", channel)
	}
	return l
}

// listenFor subscribes to channels of a lock on the lock's node, also to messages of SPUBLISH.
func (t *caseT) listenFor(name string, channels ...string) *listener {
	t.Helper()
	addr := t.Server.Target.Addrs[0]
	switch {
	case t.Server.Cluster != nil:
		addr = t.Server.Cluster.NodeForKey(name).Addr()
	case t.Server.Real != nil:
		addr = t.Server.Real.Addr()
	}
	l := t.listenAt(addr, channels...)
	if t.Server.Cluster != nil {
		for _, channel := range channels {
			_, _ = l.conn.Do("SSUBSCRIBE", channel) // an error: the server is too old, and knows no SPUBLISH
		}
	}
	return l
}

func (l *listener) do(args ...any) {
	l.t.Helper()
	_, err := l.conn.Do(args...)
	l.t.OK(err, "%v", args[0])
}

// messages returns the channels of the messages since the last call.
func (l *listener) messages() (channels []string) {
	l.t.Helper()
	_, err := l.talk.Do("PUBLISH", l.mark, "")
	l.t.OK(err, "PUBLISH")
	for {
		v, err := l.conn.Receive()
		l.t.OK(err, "Receive")
		words := v.Args() // the channel and the message are the last ones
		if slices.Contains(words, l.mark) {
			return channels
		}
		channels = append(channels, words[len(words)-2])
	}
}

// count returns the number of messages since the last call.
func (l *listener) count() int {
	l.t.Helper()
	return len(l.messages())
}
