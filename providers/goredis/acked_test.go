package goredis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// A script and its WAIT go to one server, or nowhere.
func TestEvalAckedOfEachKindOfClient(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	o := &redis.Options{Addr: m.Addr()}
	type embedding struct{ *redis.Client }
	for what, tt := range map[string]struct {
		client redis.UniversalClient
		want   error
	}{
		"single":        {single(o), nil},
		"cluster":       {cluster(o), nil},
		"ring":          {redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": m.Addr()}}), nil},
		"one with more": {embedding{redis.NewClient(o)}, nil},
		"unknown":       {unknown(o), errors.ErrUnsupported},
	} {
		drv := locker.Must(goredis.New(tt.client))
		reply, acked, err := drv.EvalAcked(t.Context(), driver.NewScript(`return redis.call('INCR', KEYS[1])`),
			[]string{what}, nil, 1, time.Millisecond)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: error %v, want %v", what, err, tt.want)
		}
		if n, _ := reply.Int(0); err == nil && (n != 1 || acked != 0) {
			t.Errorf("%s: %d, %d", what, n, acked)
		}
		if err != nil && (!driver.NotExecuted(err) || driver.Transient(err) || m.Exists(what)) {
			t.Errorf("%s: %v, the key is there: %v", what, err, m.Exists(what))
		}
		if err := errors.Join(drv.Close(), tt.client.Close()); err != nil {
			t.Errorf("%s: close: %v", what, err)
		}
	}
}

// A WAIT may take longer than the client waits for other replies.
func TestEvalAckedOutlastsReadTimeout(t *testing.T) {
	t.Parallel()
	for _, kindName := range []string{"single", "cluster"} {
		clients.Bubble(t, func(t *testing.T) {
			f := &fake{answer: func(words []string) string {
				if words[0] == "WAIT" {
					<-time.After(3 * patience / 2)
				}
				return ":1\r\n"
			}}
			opts := f.options()
			opts.ReadTimeout, opts.ContextTimeoutEnabled = patience, true
			drv := newDriver(t, kinds[kindName](opts))
			reply, acked, err := drv.EvalAcked(t.Context(), testScript, []string{"n"}, nil, 1, 3*patience/2)
			if n, _ := reply.Int(0); n != 1 || acked != 1 || err != nil {
				t.Errorf("%s: %d, %d acknowledged, %v; want 1, one, no error", kindName, n, acked, err)
			}
		})
	}
}
