//nolint:forbidigo // fake time
package holdfast_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// normal puts T for a duration, N for a number of attempts and ADDR for the address in text.
func normal(text, addr string) string {
	text = regexp.MustCompile(`\b(\d+(\.\d+)?(h|m|ms|s|µs))+\b`).ReplaceAllString(text, "T")
	text = regexp.MustCompile(`\d+ attempts?`).ReplaceAllString(text, "N")
	return strings.ReplaceAll(text, addr, "ADDR")
}

// scenario is an acquire that fails with one of some texts.
type scenario struct {
	name, lock string
	l          locker.Locker
	how        string // its end
	texts      []string
}

// attempt acquires, and returns the error.
func (s scenario) attempt(ctx context.Context) error {
	const wait = 700 * time.Millisecond // go-redis dials for 400 ms before it reports a refusal
	req := locker.Request{Name: s.lock}
	var cancel context.CancelFunc
	switch s.how {
	case "MaxWait":
		req.MaxWait = wait
	case "deadline":
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	case "cancel":
		ctx, cancel = context.WithCancel(ctx)
		time.AfterFunc(wait, cancel)
	}
	_, err := s.l.Acquire(ctx, req)
	return err
}

// When an acquire gives up, its error names the lock, the server, the attempts and their duration,
// what is known of the outcome, and the cause, once.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	for _, client := range clients.WithFork {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { errorTexts(t, client) })
		})
	}
}

func errorTexts(t *testing.T, client clients.Client) {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // the background work of closed clients ends
	network := memnet.New()
	network.Latency = 50 * time.Microsecond
	server := memredis.Start(t, network)
	other := locker.Must(single.New(clients.All[0].OpenOn(t, network, server.Addr()), single.Config{}))
	held, err := other.Acquire(t.Context(), locker.Request{Name: "held", Owner: "w7", Note: "nightly", TTL: time.Hour})
	check.Must(t, err)
	t.Cleanup(func() { _ = held.Release(context.Background()) })
	p := faultproxy.StartOn(t, network, server.Addr())
	drv := client.OpenOn(t, network, p.Addr())
	bare := locker.Must(single.New(drv, single.Config{AttemptTimeout: time.Second}))
	mw := locker.Must(retry.New(retry.Config{}))
	chain, quorum := mw(bare), mw(locker.Must(redlock.New([]locker.Locker{bare}, redlock.Config{Names: []string{"n0"}})))
	known := "ADDR"
	if drv.Info().Address == "" {
		known = "the server"
	}
	run := func(all []scenario) {
		t.Helper()
		var wg sync.WaitGroup
		for _, s := range all {
			wg.Go(func() {
				err := s.attempt(t.Context())
				if err == nil {
					t.Errorf("%s, %s: acquired", s.name, s.how)
					return
				}
				_, inQuorum := errors.AsType[*redlock.QuorumError](err)
				if inQuorum != (s.l == quorum) {
					t.Errorf("%s, %s: a QuorumError: %t", s.name, s.how, inQuorum)
				}
				text := strings.TrimPrefix(normal(err.Error(), p.Addr()), `holdfast: acquire "`+s.lock+`": `)
				if slices.Contains(s.texts, text) {
					return
				}
				t.Errorf("%s, %s:\n     %s\nwant %s", s.name, s.how, text, strings.Join(s.texts, "\n  or "))
			})
		}
		wg.Wait()
	}
	run([]scenario{
		{"held", "held", chain, "MaxWait", []string{
			`lock is held by another, owner "w7", note "nightly", for T at most unless renewed; gave up after T and N: MaxWait passed`,
		}},
	})
	hash := "hash." + client.Name
	server.HSet(hash, "a", "b")
	run([]scenario{{"of another type", hash, chain, "", []string{
		`key "` + hash + `" is of another type, as of another strategy's lock; it was left alone: ` +
			"server error: WRONGTYPE Operation against a key holding the wrong kind of value",
	}}})
	p.Freeze()
	// A caller waiting for a second connection meanwhile, not ready yet, sent nothing.
	frozen := func(cause string) []string {
		text := "no answer from " + known + " in T (N)"
		return []string{text + ", the outcome is unknown: " + cause, text + ": " + cause}
	}
	run([]scenario{
		{"frozen", "a", chain, "MaxWait", frozen("MaxWait passed")},
		{"frozen", "b", chain, "deadline", frozen("context deadline exceeded")},
		{"frozen", "c", chain, "cancel", frozen("context canceled")},
		{"frozen", "d", quorum, "MaxWait", []string{
			"outcome is unknown: 0 of 1 nodes did, 1 needed; node 0 (n0): no answer yet; gave up after T and N: MaxWait passed",
			"outcome is unknown: 0 of 1 nodes did, 1 needed; node 0 (n0, ADDR): no answer yet; gave up after T and N: MaxWait passed",
		}},
	})
	p.Thaw()
	p.Refuse()
	for end := time.Now().Add(10 * time.Second); ; { // until it knows that its old connections are gone
		p.CutAll() // also connections made while the proxy began to refuse
		_, err := bare.Acquire(t.Context(), locker.Request{Name: "warm", NoWait: true})
		if err != nil && !errors.Is(err, locker.ErrUnknownOutcome) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("connections are refused: %v", err)
		}
	}
	p.CutAll()
	refused := func(name string, what string) []string {
		texts := []string{"no answer from ADDR in T (N)" + what + ": connection refused"}
		if name == "goredis" { // ctx may end while it dials
			texts = append(texts, "no answer from ADDR in T (N)"+what+", the outcome is unknown: connection refused")
		}
		return texts
	}
	node := `0 of 1 nodes did, 1 needed; node 0 (n0): no answer from ADDR in T: connection refused; `
	inQuorum := []string{
		node + "gave up after T and N: MaxWait passed",
		node + "the outcome of the last attempt is unknown; gave up after T and N: MaxWait passed",
	}
	if client.Name == "goredis" { // it may wait for a dial of others, and then for one of its own
		inQuorum = append(inQuorum, "outcome is unknown: 0 of 1 nodes did, 1 needed; node 0 (n0, ADDR): no answer yet; "+
			"gave up after T and N: MaxWait passed")
	}
	run([]scenario{
		{"refused", "e", chain, "MaxWait", refused(client.Name, "")},
		{"refused", "f", chain, "deadline", refused(client.Name, "")},
		{"refused", "g", chain, "cancel", refused(client.Name, ", context canceled")},
		{"refused", "h", quorum, "MaxWait", inQuorum},
	})
}
