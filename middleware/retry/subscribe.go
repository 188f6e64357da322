package retry

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

const (
	askTimeout = 5 * time.Second // bounds one asking for a subscription
	askPause   = time.Second     // between the beginnings of two
)

// subscription is the subscription of a queue: none, being asked for, or there. The zero value is
// none.
type subscription struct {
	channel  driver.Channel // of the subscription, or of the last asking
	sub      driver.Subscription
	wake     <-chan struct{}    // sub's
	cancel   context.CancelFunc // ends the asking; nil: none is under way
	askAfter time.Time          // not before
	refused  driver.Channel     // not again: it will not be had there
}

// subscribe sees to it that the queue of w hears of releases on channel, soon: the asking runs
// beside the waiting, in the one goroutine that a queue may have, so that a server which does not
// answer keeps nobody from polling. The leaders try again once it is there.
//
// Whatever the attempts say, it does not ask more often than once in askPause.
func (w *waiter) subscribe(ctx context.Context, held *locker.ContentionError) {
	if !held.Channel.IsZero() {
		closeSub(w.beginSubscribing(ctx, held))
	}
}

// beginSubscribing begins to ask for a subscription if it is time to, and returns the one that it
// replaces.
func (w *waiter) beginSubscribing(ctx context.Context, held *locker.ContentionError) (old driver.Subscription) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	channel := held.Channel
	if held.Queue {
		channel = channel.For(q.all.id)
	}
	h, now := w.subscription(), time.Now()
	there := h.sub != nil && h.channel == channel
	if there || h.cancel != nil || h.refused == channel || now.Before(h.askAfter) {
		return nil
	}
	old, h.sub, h.wake = h.sub, nil, nil
	h.channel, h.askAfter = channel, now.Add(askPause)
	// It is asked for all who wait here: the ctx of one of them does not end it.
	ctx, h.cancel = context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	go q.subscribe(ctx, h, channel)
	return old
}

// subscribe asks for a subscription and puts it into place, unless the queue has emptied meanwhile.
func (q *queue) subscribe(ctx context.Context, h *subscription, channel driver.Channel) {
	sub, err := channel.Subscribe(ctx)
	var wake <-chan struct{}
	if err == nil {
		wake = sub.Wake()
	}
	q.all.mu.Lock()
	if q.size == 0 {
		q.all.mu.Unlock()
		closeSub(sub)
		return
	}
	h.cancel()
	h.cancel = nil
	switch {
	case err == nil:
		h.sub, h.wake = sub, wake
		q.wakeLeaders(locktrace.BySubscription)
	case !driver.Transient(err):
		h.refused = channel
	}
	q.all.mu.Unlock()
}

// stop ends the asking where there is one, and returns the subscription where there is one: it is
// to be closed without mu.
func (h *subscription) stop() driver.Subscription {
	if h.cancel != nil {
		h.cancel()
	}
	return h.sub
}

func closeSubs(subs [2]driver.Subscription) {
	closeSub(subs[0])
	closeSub(subs[1])
}

// closeSub ends a subscription that nobody uses any more. Its error means nothing.
func closeSub(sub driver.Subscription) {
	if sub != nil {
		_ = sub.Close()
	}
}
