package retry

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

const (
	subscribeTimeout = 5 * time.Second // bounds one Subscribe
	subscribePause   = time.Second     // minimum interval between two Subscribes
)

// subscription is a subscription of a queue: none, under way, or made. A nil or zero one is none.
type subscription struct {
	channel   driver.Channel // of the latest Subscribe
	sub       driver.Subscription
	wake      <-chan struct{}    // sub's
	cancel    context.CancelFunc // ends the Subscribe under way; nil: none is
	notBefore time.Time          // no Subscribe begins earlier
}

// subscribe makes w's queue subscribe to the channel in held, unless it is subscribed already.
// Subscribe runs in a goroutine of the queue: a server without an answer keeps nobody from polling.
// Once Subscribe succeeds, the leaders try again. It begins at most once in subscribePause, even if
// the channel changes.
func (w *waiter) subscribe(ctx context.Context, held *locker.ContentionError) {
	if !held.Channel.IsZero() {
		closeSub(w.beginSubscribing(ctx, held))
	}
}

// beginSubscribing starts a Subscribe if one is due, and returns the replaced subscription.
func (w *waiter) beginSubscribing(ctx context.Context, held *locker.ContentionError) (old driver.Subscription) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	channel := held.Channel
	if held.Queue {
		channel = channel.For(q.all.id)
	}
	at, now := &w.subscribedLine().subscription, time.Now()
	if *at == nil {
		*at = new(subscription)
	}
	h := *at
	there := h.sub != nil && h.channel == channel
	if there || h.cancel != nil || now.Before(h.notBefore) {
		return nil
	}
	old, h.sub, h.wake = h.sub, nil, nil
	h.channel, h.notBefore = channel, now.Add(subscribePause)
	// All waiters of the queue use it: the ctx of one of them does not end it.
	ctx, h.cancel = context.WithTimeout(context.WithoutCancel(ctx), subscribeTimeout)
	go q.subscribe(ctx, h, channel)
	return old
}

// subscribe subscribes to channel and stores the subscription in h, unless its waiters have left.
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
	case err == nil && h == q.lines[1].subscription && q.lines[1].first == nil: // its readers have left
		h.notBefore = time.Time{}
		defer closeSub(sub) // without mu
	case err == nil:
		h.sub, h.wake = sub, wake
		q.wakeLeaders(locktrace.BySubscription)
	}
	q.all.mu.Unlock()
}

// made reports whether h is made.
func (h *subscription) made() bool { return h != nil && h.sub != nil }

// messages returns the channel of wake-ups, or nil if h is not made.
func (h *subscription) messages() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.wake
}

// detach removes and returns the subscription, if any, to be closed without mu. The next waiter
// subscribes at once.
func (h *subscription) detach() driver.Subscription {
	if h == nil {
		return nil
	}
	sub := h.sub
	h.sub, h.wake, h.notBefore = nil, nil, time.Time{}
	return sub
}

// cancelSubscribe cancels a Subscribe under way.
func (h *subscription) cancelSubscribe() {
	if h != nil && h.cancel != nil {
		h.cancel()
	}
}

// closeSub closes sub, which may be nil. Nobody uses it any more, so its error does not matter.
func closeSub(sub driver.Subscription) {
	if sub != nil {
		_ = sub.Close()
	}
}
