//realtime:ok in the bubbles of clients

package goredis_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// What a node redirected was not executed there; what became of it at the next one is unknown, if
// that executes all of 20 commands, answers four and hangs up.
func TestLostReplyAfterARedirection(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"MOVED", "ASK"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			clients.Bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				executed := map[string]int{}
				serve := func(conn net.Conn, moved bool) {
					out := make(chan string, 1000) // a server reads on while nobody reads its replies
					go func() {
						for s := range out {
							_, _ = conn.Write([]byte(s))
						}
					}()
					defer close(out)
					if !moved {
						time.AfterFunc(time.Second, func() { _ = conn.Close() })
					}
					for r := resp.NewReader(conn); ; {
						req, err := r.ReadRequest()
						if err != nil {
							return
						}
						w := req.Args()
						switch name := strings.ToLower(w[0]); {
						case name == "hello":
							out <- "-ERR unknown command\r\n"
						case name != "evalsha":
							out <- "+OK\r\n"
						case moved:
							out <- "-" + kind + " 1 192.0.2.2:6379\r\n"
						default:
							mu.Lock()
							executed[w[len(w)-1]]++
							if len(executed) <= 4 {
								out <- ":1\r\n"
							}
							mu.Unlock()
						}
					}
				}
				opts := (&fake{}).options()
				opts.Dialer = func(_ context.Context, _, addr string) (net.Conn, error) {
					near, far := net.Pipe()
					go serve(far, addr == opts.Addr)
					return near, nil
				}
				drv := newDriver(t, cluster(opts))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				var wg sync.WaitGroup
				wrong := 0
				for i := range 20 {
					wg.Go(func() {
						id := fmt.Sprint("id", i)
						_, err := drv.Eval(ctx, one, []string{fmt.Sprintf("{k}%d", i)}, []string{id})
						mu.Lock()
						defer mu.Unlock()
						if executed[id] > 0 && driver.NotExecuted(err) {
							wrong++
						}
					})
				}
				wg.Wait()
				mu.Lock()
				defer mu.Unlock()
				check.Equal(t, "commands that were executed", len(executed), 20)
				check.Equal(t, "those reported as not executed", wrong, 0)
			})
		})
	}
}

var one = driver.NewScript("return 1")
