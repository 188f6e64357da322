package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// The outcome of a command at a randomServer, by its last word.
const (
	answered = iota
	refused  // by the server
	broken   // begun, and the connection broke
	unmade   // not begun: there was no connection
	outcomes
)

func outcomeOf(word string) uint32 {
	h := fnv.New32()
	_, _ = h.Write([]byte(word))
	return h.Sum32() / 7 % outcomes
}

// setting reports whether SET NX of word sets it.
func setting(word string) bool { return strings.HasSuffix(word, "1") }

// randomServer takes its time, and gives each command the outcome by outcomeOf.
type randomServer struct {
	began           sync.Map // number of writes of each word, an *atomic.Int32
	flights         atomic.Int32
	others          atomic.Int32 // flights with a command that is not urgent
	most, mostOther atomic.Int32
	largest         atomic.Int32
}

var errBroken, errUnmade = errors.New("broken"), errors.New("unmade")

// linger lets other goroutines run, a random number of times.
func linger(most int) {
	for range rand.IntN(most) {
		runtime.Gosched()
	}
}

// raise sets most to v if v is greater.
func raise(most *atomic.Int32, v int32) {
	for {
		old := most.Load()
		if v <= old || most.CompareAndSwap(old, v) {
			return
		}
	}
}

func lastOf(c *adapter.Command) string { return c.Words[len(c.Words)-1] }

// wordOf returns the distinct word of c. Urgent callers' words begin with u.
func wordOf(c *adapter.Command) string {
	if c.Words[0] == "SET" {
		return c.Words[2]
	}
	return lastOf(c)
}

func (s *randomServer) send(ctx context.Context, commands []*adapter.Command) {
	endless := false
	other := int32(0)
	for _, c := range commands {
		endless = endless || strings.HasPrefix(wordOf(c), "e")
		if !strings.HasPrefix(wordOf(c), "u") {
			other = 1
		}
	}
	if !endless { // endless ones have no places
		raise(&s.most, s.flights.Add(1))
		defer s.flights.Add(-1)
		raise(&s.mostOther, s.others.Add(other))
		defer s.others.Add(-other)
	}
	raise(&s.largest, int32(len(commands)))
	linger(100)
	var begun []*adapter.Command
	for _, c := range commands {
		word := wordOf(c)
		if outcomeOf(word) == unmade {
			c.Answer(nil, errUnmade)
			continue
		}
		if !c.Begin() {
			continue
		}
		if c.Words[0] == "EVALSHA" && rand.IntN(10) == 0 {
			c.Answer(nil, adapter.NewServerError("NOSCRIPT No matching script.", nil))
			continue
		}
		begun = append(begun, c)
		n, _ := s.began.LoadOrStore(word, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		linger(3)
	}
	for range rand.IntN(200) {
		if ctx.Err() != nil {
			break
		}
		runtime.Gosched()
	}
	for _, c := range begun {
		switch word := wordOf(c); outcomeOf(word) {
		case answered:
			switch {
			case c.Words[0] != "SET":
				c.Answer(word, nil)
			case setting(word):
				c.Answer("OK", nil)
			default:
				c.Answer(nil, nil)
			}
		case refused:
			c.Answer(nil, adapter.NewServerError("ERR "+word, nil))
		default:
			c.Answer(nil, fmt.Errorf("%w: %s", errBroken, word))
		}
	}
}

// judge demands that v and err are the outcome of word.
func (s *randomServer) judge(t *testing.T, word string, v any, err error) {
	t.Helper()
	if r, ok := v.(driver.Reply); ok && err == nil {
		v, err = r.Text(0)
	}
	outcome, good := outcomeOf(word), false
	switch set, isSet := v.(bool); {
	case err == nil && isSet:
		good = outcome == answered && set == setting(word)
	case err == nil:
		good = outcome == answered && v == word
	case driver.CodeOf(err) != "":
		good = outcome == refused && strings.Contains(err.Error(), word)
	case errors.Is(err, errBroken):
		good = outcome == broken && strings.Contains(err.Error(), word)
	case errors.Is(err, errUnmade):
		good = outcome == unmade && errors.Is(err, driver.ErrNotSent)
	}
	if !good {
		t.Errorf("%s, of outcome %d, got %v, %v", word, outcome, v, err)
	}
}

// Many callers of all kinds, leaving at any moment, and a server with any behaviour: each gets the
// outcome of its own command, commands reported as not sent were not, nothing is sent twice, there
// are no more flights than connections, and none is left behind.
func TestPipelineAtRandom(t *testing.T) {
	t.Parallel()
	type test struct {
		single bool
		inline int // later lone calls in their callers' goroutines
	}
	check.Each(t, map[string]test{"together": {false, 4}, "one by one": {true, 8}}, func(t *testing.T, tt test) {
		const connections = 16
		s := new(randomServer)
		held := make(chan struct{})
		var inlined atomic.Int32
		var done atomic.Bool // the random calls are done
		d, p := over(adapter.Client{
			Connections: connections, Single: tt.single, Send: s.send,
			Inline: func(ctx context.Context) bool { return done.Load() || driver.Urgent(ctx) },
			SendInline: func(ctx context.Context, c *adapter.Command) {
				if done.Load() {
					inlined.Add(1)
					<-held
				}
				s.send(ctx, []*adapter.Command{c})
			},
		})
		script := driver.NewScript("return 1")
		var callers, answers sync.WaitGroup
		var unsent sync.Map
		told := func(word string, v any, err error) {
			if late, ok := errors.AsType[*driver.PendingError](err); ok {
				check.IsNot(t, err, driver.ErrNotSent)
				answers.Add(1)
				late.OnAnswer(func(v any, err error) {
					defer answers.Done()
					if driver.CodeOf(err) == "NOSCRIPT" {
						unsent.Store(word, true)
					} else {
						s.judge(t, word, v, err)
					}
				})
				return
			}
			if errors.Is(err, driver.ErrNotSent) {
				unsent.Store(word, true)
				if !errors.Is(err, errUnmade) {
					check.Is(t, err, context.Canceled)
					return
				}
			}
			s.judge(t, word, v, err)
		}
		for i := range 64 {
			callers.Go(func() {
				for j := range 40 {
					word := fmt.Sprint(i, ".", j)
					ctx := context.Background()
					switch rand.IntN(4) {
					case 0:
						word = "u" + word
						ctx = until(t, time.Hour, true)
					case 1:
						word = "b" + word
						ctx = until(t, time.Hour, false)
					case 2:
						word = "e" + word
					default:
						word = "c" + word
						c, cancel := context.WithCancel(ctx)
						ctx = c
						callers.Go(func() {
							linger(1000)
							cancel()
						})
					}
					switch rand.IntN(3) {
					case 0:
						v, err := d.SetNX(ctx, "k", word, time.Hour)
						told(word, v, err)
					case 1:
						r, err := d.Eval(ctx, script, []string{"k"}, []string{word})
						told(word, r, err)
					default:
						v, err := d.Do(ctx, "ECHO", word)
						told(word, v, err)
					}
				}
			})
		}
		callers.Wait()
		answers.Wait()
		s.began.Range(func(word, n any) bool {
			_, said := unsent.Load(word)
			if times := n.(*atomic.Int32).Load(); times > 1 || said {
				t.Errorf("%s was sent %d times; said not to be sent: %v", word, times, said)
			}
			return true
		})
		check.AtMost(t, "flights at once", s.most.Load(), connections)
		check.AtMost(t, "flights at once with others than urgent calls", s.mostOther.Load(), connections-connections/8)
		check.AtMost(t, "commands of a flight", s.largest.Load(), map[bool]int32{true: 1, false: 32}[tt.single])

		done.Store(true)
		var lone sync.WaitGroup
		for int(inlined.Load()) < tt.inline { // never, if earlier flights or commands still count
			before, returned := inlined.Load(), make(chan struct{})
			lone.Go(func() {
				defer close(returned)
				_, _ = d.Do(until(t, time.Hour, false), "ECHO", "b lone")
			})
			for inlined.Load() == before && !check.Closed(returned) { // an earlier one is still under way
				runtime.Gosched()
			}
		}
		close(held)
		lone.Wait()
		p.Close()
	})
}
