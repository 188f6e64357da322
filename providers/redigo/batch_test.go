package redigo_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// One reply is lost in the middle. The replies before it count, the outcome of the other calls is
// unknown, and none of them is sent again. A script that the server did not know is, by source.
func TestEvalManyLosesItsConnection(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		drv := open(t, clients.RedigoPool(p.Addr(), redis.DialContextFunc(m.Net.Dial)))
		unknown := driver.NewScript(`return redis.call("INCR", KEYS[1])+0`)
		calls := []driver.Call{{Script: unknown, Keys: []string{"k0"}}}
		for i := 1; i < 6; i++ {
			calls = append(calls, driver.Call{Script: incr, Keys: []string{fmt.Sprint("k", i)}})
		}
		_, err := drv.Eval(t.Context(), incr, []string{"first"}, nil)
		check.Must(t, err)
		p.Add(faultproxy.Rule{Match: faultproxy.Contains("k3"), Fault: faultproxy.Cut})
		results := evalMany(t.Context(), drv, calls...)
		wantInt(t, results[0], 1)
		wantInt(t, results[1], 1)
		wantInt(t, results[2], 1)
		for _, r := range results[3:] {
			wantOpen(t, r.Err, io.EOF)
		}
		for i := range calls {
			if n := p.Sent(fmt.Sprint("k", i)); i > 0 && n > 1 || n == 0 && i <= 3 { // of what follows k3, all may be lost
				t.Errorf("k%d was sent %d times", i, n)
			}
		}
	})
}

// A server stops reading while nobody reads its replies: a pipe has no buffer that would hide a
// deadlock.
func TestEvalManyReadsWhileItWrites(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		drv, closeClient, err := clients.All[2].InMemory(clients.NewMemory(t).Dial)
		check.Must(t, err)
		t.Cleanup(func() { check.Must(t, drv.Close()); check.Must(t, closeClient()) })
		calls := make([]driver.Call, 200)
		for i := range calls {
			calls[i] = driver.Call{Script: incr, Keys: []string{fmt.Sprint("k", i)}, Args: []string{strings.Repeat("x", 500)}}
		}
		for _, r := range evalMany(bound(t, t.Context(), patience), drv, calls...) {
			wantInt(t, r, 1)
		}
	})
}
