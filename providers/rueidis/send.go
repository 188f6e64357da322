package rueidis

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// pooledTimeout bounds one round trip on a connection of the pool, whose calls have no timeout of
// the client, or on an otherwise idle shared one.
const pooledTimeout = 10 * time.Second

// isDirect implements adapter.Client.
func (n *node) isDirect(ctx context.Context) bool { return n.route(ctx) == direct }

// sendDirect sends c over a shared connection, in its caller's goroutine.
func (n *node) sendDirect(ctx context.Context, c *adapter.Command) {
	cmd, err := n.d.build(false, c)
	if err != nil || !c.Begin() {
		c.Answer(nil, err)
		return
	}
	if driver.Cancellable(ctx) {
		// The client reads the reply to a lone command with a deadline under the deadline alone, and
		// would not notice a cancellation; without one it pipelines, and returns with Done.
		ctx = undated{ctx}
	}
	closing, sent := n.d.closing.Load(), n.now()
	res := n.d.client.Do(ctx, cmd)
	replied := res.NonRedisError() == nil
	n.observe(sent, replied)
	if !replied && adapter.Ended(ctx) != nil {
		n.probe(sent)
	}
	n.d.answer(ctx, c, res, closing)
}

// send implements adapter.Client, in a goroutine of its own.
func (n *node) send(ctx context.Context, commands []*adapter.Command) {
	if commands[0].HasWait() {
		n.sendPair(ctx, commands[0])
		return
	}
	r := n.route(ctx)
	if (r == direct || r == detached) && n.shared.Load() < n.maxShared {
		n.sendShared(ctx, commands)
		return
	}
	reserve := n.reserve
	if !driver.Urgent(ctx) {
		reserve = nil
	}
	sharedNow := make(chan struct{}) // closed if the commands may use a shared connection
	if r != pooled {
		close(sharedNow)
	}
	select {
	case n.pool <- struct{}{}:
		n.sendPooled(ctx, commands, n.pool)
		return
	default:
	}
	select {
	case n.pool <- struct{}{}:
		n.sendPooled(ctx, commands, n.pool)
	case reserve <- struct{}{}:
		n.sendPooled(ctx, commands, reserve)
	case <-sharedNow:
		n.sendShared(ctx, commands)
	case <-ctx.Done():
		for _, c := range commands {
			c.Answer(nil, driver.NotSent(ctx.Err()))
		}
	}
}

// sendShared sends commands over a shared connection. It returns when the replies come or the
// connection breaks, however late.
func (n *node) sendShared(ctx context.Context, commands []*adapter.Command) {
	n.shared.Add(1)
	defer n.shared.Add(-1)
	f := &flight{node: n, sent: n.now(), over: make(chan struct{})}
	n.begin(ctx, f)
	replied := n.exchange(&sending{Context: ctx, over: f.over, deadline: time.Now().Add(pooledTimeout)}, commands, false)
	n.landed(ctx, f)
	n.observe(f.sent, replied)
}

// exchange sends the commands, except abandoned ones, and reports whether the last one was replied
// to. blocking: over a connection of their own.
func (n *node) exchange(ctx *sending, commands []*adapter.Command, blocking bool) (replied bool) {
	for {
		ctx.commands, ctx.refused, ctx.begun = ctx.commands[:0], false, !n.d.asks.Load()
		cmds := make(rueidis.Commands, 0, len(commands))
		for _, c := range commands {
			if c.Abandoned() || ctx.begun && !c.Begin() {
				continue
			}
			cmd, err := n.d.build(blocking, c)
			if err != nil {
				c.Answer(nil, err)
				continue
			}
			ctx.commands, cmds = append(ctx.commands, c), append(cmds, cmd)
		}
		if len(cmds) == 0 {
			return true
		}
		closing := n.d.closing.Load()
		results := n.d.do(ctx, cmds)
		if ctx.refused {
			continue // without the abandoned ones
		}
		for i, c := range ctx.commands {
			n.d.answer(ctx, c, results[i], closing)
		}
		replied = results[len(results)-1].NonRedisError() == nil
		if replied && !ctx.begun {
			n.d.asks.Store(false)
		}
		return replied
	}
}

func (d *rueidisDriver) do(ctx context.Context, cmds rueidis.Commands) []rueidis.RedisResult {
	if len(cmds) == 1 {
		return []rueidis.RedisResult{d.client.Do(ctx, cmds[0])}
	}
	return d.client.DoMulti(ctx, cmds...)
}

// answer records the outcome of c.
func (d *rueidisDriver) answer(ctx context.Context, c *adapter.Command, res rueidis.RedisResult, closing bool) {
	if err := d.outcome(ctx, res, closing); err != nil {
		c.Answer(nil, err)
		return
	}
	v, err := res.ToAny()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	c.Answer(v, err)
}

// sendPooled sends commands over a connection of the pool, and frees their place. A cluster client
// gets one by one: it panics if it must follow ASK with several (v1.0.79: mux.DoMulti marks its
// ASKING as blocking, and askingMulti does not know it again). If more places are free, further
// connections share the commands.
func (n *node) sendPooled(ctx context.Context, commands []*adapter.Command, place chan struct{}) {
	if !n.d.cluster {
		defer func() { <-place }()
		n.sendOwn(ctx, commands)
		return
	}
	queue := make(chan []*adapter.Command, len(commands))
	for i := range commands {
		queue <- commands[i : i+1]
	}
	close(queue)
	work := func(place chan struct{}) {
		defer func() { <-place }()
		for one := range queue {
			n.sendOwn(ctx, one)
		}
	}
	var wg sync.WaitGroup
	for range commands[1:] {
		select {
		case n.pool <- struct{}{}:
			wg.Go(func() { work(n.pool) })
		default:
		}
	}
	work(place)
	wg.Wait()
}

// sendOwn sends commands over a connection of their own.
func (n *node) sendOwn(ctx context.Context, commands []*adapter.Command) {
	latest := time.Now().Add(pooledTimeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(latest) {
		latest = deadline
	}
	n.exchange(&sending{Context: ctx, over: ctx.Done(), deadline: latest}, commands, true)
}

// pings is how many pings a probe sends. The client picks a shared connection at random for each;
// so many reach every one of a few.
const pings = 64

// probe finds out whether the shared connections of n reply. It stands for a direct command sent at
// sent without a reply: the client does not report a late one. A connection replies in order.
func (n *node) probe(sent time.Duration) {
	f := n.beginProbe(sent)
	if f == nil {
		return
	}
	began := n.d.Background(func(ctx context.Context) {
		defer n.endProbe(f)
		var wg sync.WaitGroup
		for range pings {
			// with a slot the client picks at random
			ping := n.d.client.B().Arbitrary("PING").Build().ToPipe().SetSlot("probe")
			wg.Go(func() { n.d.client.Do(context.WithoutCancel(ctx), ping) })
		}
		over := make(chan struct{})
		go func() {
			wg.Wait()
			close(over)
		}()
		select {
		case <-over:
		case <-ctx.Done():
		}
	})
	if !began {
		n.endProbe(f)
	}
}

// build makes of c a command for a shared connection, or as blocking for one of the pool. A cluster
// client's builder panics on keys of several slots.
func (d *rueidisDriver) build(blocking bool, c *adapter.Command) (cmd rueidis.Completed, err error) {
	if isClosed(d.clientClosed) {
		return cmd, driver.Permanent(driver.NotSent(rueidis.ErrClosing))
	}
	head, keys, rest := c.Parts()
	defer func() {
		if p := recover(); p != nil {
			got := fmt.Sprintf("%.200q: %v", strings.Join(keys, " "), p)
			err = driver.NotSent(&driver.InvalidError{What: "keys of a script", Got: got, Allowed: "keys of one cluster slot"})
		}
	}()
	b := d.client.B().Arbitrary(head...).Keys(keys...).Args(rest...)
	if blocking {
		cmd = b.Blocking()
	} else {
		cmd = b.Build().ToPipe()
	}
	if len(keys) == 0 {
		cmd = cmd.SetSlot("") // without a slot a cluster client may choose a replica, and panics in a batch
	}
	return cmd, nil
}

type undated struct{ context.Context }

// Deadline implements context.Context.
func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

// sending is the context of a flight. On a shared connection it does not end once the commands are
// on their way: the client returns when the replies come or the connection breaks, and not when
// callers leave.
//
// A client of rueidis itself calls Err right before it sends, once it has a connection. If a caller
// has left by then, Err returns an error, and nothing is sent; otherwise all commands begin. Before
// a cluster client sends them again, to follow MOVED or ASK, Err returns an error if all callers
// have left. A wrapper may call Err of a context of its own instead.
//
// With a deadline the client sends in this goroutine, and closes the connection after the deadline:
// it is as far away as the client's own timeout. Without one the client would turn the connection
// to pipelining for good.
type sending struct {
	context.Context
	over     <-chan struct{}
	deadline time.Time
	commands []*adapter.Command

	mu      sync.Mutex // a cluster client may ask from several goroutines
	begun   bool       // all may have been sent
	refused bool       // nothing was, nor will be
}

// Deadline implements context.Context.
func (s *sending) Deadline() (time.Time, bool) { return s.deadline, true }

// Done implements context.Context.
func (s *sending) Done() <-chan struct{} { return s.over }

// Err implements context.Context.
func (s *sending) Err() error {
	select {
	case <-s.over:
		return context.Canceled
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun { // a cluster client follows a redirection, or sends to a further node
		return s.Context.Err()
	}
	for i := 0; i < len(s.commands) && !s.refused; i++ {
		s.refused = !s.commands[i].Begin()
	}
	s.begun = !s.refused
	if s.refused {
		return context.Canceled
	}
	return nil
}
