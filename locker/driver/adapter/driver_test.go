package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// The words of each command, and the driver's reading of the answers.
func TestCommands(t *testing.T) {
	t.Parallel()
	script := driver.NewScript("return 1")
	type test struct {
		answers []any // an error among them is one
		call    func(ctx context.Context, d *adapter.Driver) (any, error)
		words   string
		want    any
		failed  bool
	}
	set := func(ctx context.Context, d *adapter.Driver) (any, error) {
		return d.SetNX(ctx, "k", "v", 1500*time.Millisecond)
	}
	eval := func(ctx context.Context, d *adapter.Driver) (any, error) {
		r, err := d.Eval(ctx, script, []string{"k", "q"}, []string{"a"})
		n, _ := r.Int(0)
		return n, err
	}
	acked := func(ctx context.Context, d *adapter.Driver) (any, error) {
		_, n, err := d.EvalAcked(ctx, script, []string{"k"}, nil, 2, 1500*time.Millisecond)
		return n, err
	}
	noscript := adapter.NewServerError("NOSCRIPT No matching script.", nil)
	check.Each(t, map[string]test{
		"set":                        {[]any{"OK"}, set, "[SET k v NX PX 1500]", true, false},
		"not set":                    {[]any{nil}, set, "[SET k v NX PX 1500]", false, false},
		"set, and a strange answer":  {[]any{"QUEUED"}, set, "[SET k v NX PX 1500]", false, true},
		"a script":                   {[]any{int64(7)}, eval, "[EVALSHA " + script.Digest() + " 2 k q a]", int64(7), false},
		"a script that is not known": {[]any{noscript, int64(7)}, eval, "[EVAL return 1 2 k q a]", int64(7), false},
		"a script and WAIT":          {[]any{int64(7)}, acked, "[EVALSHA " + script.Digest() + " 1 k] [2 1500]", 1, false},
		"no connection":              {[]any{errors.New("refused")}, set, "[SET k v NX PX 1500]", false, true},
	}, func(t *testing.T, tt test) {
		words := ""
		d, p := over(adapter.Client{Connections: 2, Waits: true, Send: func(_ context.Context, commands []*adapter.Command) {
			c, answer := commands[0], tt.answers[0]
			tt.answers = tt.answers[1:]
			words = fmt.Sprint(c.Words)
			if c.HasWait() {
				words += fmt.Sprint(" ", c.Wait)
				c.AnswerWait(int64(1), nil)
			}
			if err, failed := answer.(error); failed {
				c.Answer(nil, err)
				return
			}
			c.Begin()
			c.Answer(answer, nil)
		}})
		defer p.Close()
		got, err := tt.call(t.Context(), d)
		check.Equal(t, "words", words, tt.words)
		check.Equal(t, "result", got, tt.want)
		check.Equal(t, "failed", err != nil, tt.failed)
	})
}

// A command of a free lock is allocated together with its words.
func TestCommandAllocates(t *testing.T) {
	d, p := over(adapter.Client{Connections: 2, Send: func(_ context.Context, commands []*adapter.Command) {
		commands[0].Begin()
		commands[0].Answer(nil, nil)
	}})
	defer p.Close()
	ctx, script := context.Background(), driver.NewScript("return 1")
	keys, args := []string{"k", "q"}, []string{"value", "channel"}
	_, _ = d.Eval(ctx, script, keys, args) // loads it
	for name, call := range map[string]func(){
		"SetNX": func() { _, _ = d.SetNX(ctx, "k", "v", time.Millisecond) },
		"Eval":  func() { _, _ = d.Eval(ctx, script, keys, args) },
	} {
		check.Equal(t, "allocations of "+name, testing.AllocsPerRun(100, call), 1)
	}
}

// A begun command may begin again, as when a client sends it to another node. An abandoned one
// never begins.
func TestBegin(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]bool{"begun": true, "abandoned": false}, func(t *testing.T, begun bool) {
		ended := make(chan struct{})
		d, p := over(adapter.Client{Connections: 2, Waits: true, Send: func(ctx context.Context, commands []*adapter.Command) {
			c := commands[0]
			if begun {
				check.Equal(t, "Begin", c.Begin(), true)
			}
			<-ctx.Done()
			for range 2 {
				check.Equal(t, "Begin", c.Begin(), begun)
				check.Equal(t, "Abandoned", c.Abandoned(), !begun)
			}
			c.Answer(nil, ctx.Err())
			check.Equal(t, "not sent", errors.Is(c.Err(), driver.ErrNotSent), !begun)
			close(ended)
		}})
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.Do(ctx, "PING")
		check.Equal(t, "not sent", errors.Is(err, driver.ErrNotSent), !begun)
		<-ended
	})
}

// A command with a WAIT travels alone. It takes as long as the replicas do, and must not delay
// others, with or without a WAIT.
func TestEvalAckedTravelsByItself(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		const replication = 30 * time.Millisecond
		var largest atomic.Int32
		d, p := over(adapter.Client{Connections: 128, Waits: true, Send: func(_ context.Context, commands []*adapter.Command) {
			for _, c := range commands {
				c.Begin()
				c.Answer(c.Key(), nil)
				if c.HasWait() {
					time.Sleep(replication) //nolint:forbidigo // fake time
					c.AnswerWait(int64(2), nil)
					largest.Store(max(largest.Load(), int32(len(commands))))
				}
			}
		}})
		defer p.Close()
		script := driver.NewScript("return 1")
		check.OK(t, check.ErrOf(d.Eval(t.Context(), script, nil, nil))) // the server knows it
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				key := fmt.Sprint(i)
				r, n, err := d.EvalAcked(t.Context(), script, []string{key}, nil, 2, time.Second)
				got, _ := r.Text(0)
				if got != key || n != 2 || err != nil {
					t.Errorf("%s was answered %q by %d replicas, %v", key, got, n, err)
				}
				check.Took(t, "a call with WAIT", began, replication)
			})
			if i%10 == 9 {
				wg.Go(func() {
					check.OK(t, check.ErrOf(d.Eval(t.Context(), script, nil, nil)))
					check.Took(t, "a call beside them", began, 0)
				})
			}
		}
		wg.Wait()
		check.Equal(t, "commands of the largest flight with WAIT", largest.Load(), 1)
	})
}

var _ driver.Driver = (*adapter.Driver)(nil)

// An undeclared ability of a client is reported as unsupported, and nothing is sent for it.
func TestDriverDefaults(t *testing.T) {
	t.Parallel()
	d, _ := over(adapter.Client{Send: func(context.Context, []*adapter.Command) { t.Error("something was sent") }})
	for _, keys := range [][]string{nil, {"k"}} {
		_, _, err := d.EvalAcked(t.Context(), driver.NewScript("return 1"), keys, nil, 1, time.Second)
		check.Error(t, "EvalAcked", err, errors.ErrUnsupported, driver.ErrNotSent)
	}
	_, err := d.Subscribe(t.Context(), "c")
	check.Error(t, "Subscribe", err, errors.ErrUnsupported)
	check.Equal(t, "Delivery", d.Delivery("c"), driver.DeliveryPlain)
	d.OneServer = true
	check.Equal(t, "Delivery of one server", d.Delivery("c"), driver.DeliveryCounted)
	d.ClientInfo = driver.Info{Client: "mine"}
	check.Equal(t, "Info", d.Info(), driver.Info{Client: "mine"})
	check.OK(t, d.Close())
	check.Error(t, "Close again", d.Close(), driver.ErrClosed)
	check.Error(t, "Subscribe after Close", check.ErrOf(d.Subscribe(t.Context(), "c")), driver.ErrClosed)
}

// grain is how much later than its context's deadline a call may return.
const grain = 10 * time.Millisecond

func serverError(text string) error {
	return adapter.NewServerError(text, errors.New("the client's: "+text))
}

// How the ACL refuses a command within a script: Redis 7.2 and later and Valkey, Redis 7.0, Redis
// 6.2.
const (
	refusedInScript   = "ERR ACL failure in script: User app has no permissions to run the 'pexpireat' command"
	refusedInScript70 = "ERR The user executing the script can't run this command or subcommand script: ec22, on @user_script:1."
	refusedInScript62 = "ERR Error running script (call to f_ec22): @user_script:1: The user executing the script can't run this command or subcommand"
)

func TestServerError(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, text, code string }{
		{"WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE"},
		{"ERR unknown command", "ERR unknown command", "ERR"},
		{"unknown command 'X'", "ERR unknown command 'X'", "ERR"}, // "ERR " was stripped
		{"max number of clients reached", "ERR max number of clients reached", "ERR"},
		{"Error running script", "ERR Error running script", "ERR"},
		{"MOVED 3999 127.0.0.1:6381", "MOVED 3999 127.0.0.1:6381", "MOVED"},
		{"NOAUTH", "NOAUTH", "NOAUTH"},
		{"MY_CODE2 text", "MY_CODE2 text", "MY_CODE2"},
		{refusedInScript, refusedInScript, "NOPERM"},
		{refusedInScript70, refusedInScript70, "NOPERM"},
		{refusedInScript70[len("ERR "):], refusedInScript70, "NOPERM"},
		{refusedInScript62, refusedInScript62, "NOPERM"},
		{"", "ERR ", "ERR"},
		{" leading space", "ERR  leading space", "ERR"},
		{"moved lower", "ERR moved lower", "ERR"},
		{"READONLY\nscript", "ERR READONLY\nscript", "ERR"}, // not a code: a reply has one line
	}
	for _, tt := range tests {
		cause := errors.New("cause")
		err := adapter.NewServerError(tt.in, cause)
		if err.Text != tt.text || err.Code() != tt.code || !errors.Is(err, cause) {
			t.Errorf("NewServerError(%q): text %q, code %q, cause %v; want %q, %q", tt.in, err.Text, err.Code(), err.Err, tt.text, tt.code)
		}
		if got := driver.CodeOf(fmt.Errorf("wrapped: %w", err)); got != tt.code {
			t.Errorf("CodeOf(%q) = %q, want %q", tt.in, got, tt.code)
		}
		if got, want := err.Error(), "server error: "+tt.text; got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
	for _, err := range []error{nil, io.EOF, errors.New("MOVED 1 a:1")} {
		if got := driver.CodeOf(err); got != "" {
			t.Errorf("CodeOf(%v) = %q, want none", err, got)
		}
	}
}

// Arguments repeated by a server are in no text, nor in the text of the client's error.
func TestServerErrorShowsNoArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"ERR unknown command 'EVALSHA', with args beginning with: 'e0a9' '1' 'job' 'secret|me' ", "ERR unknown command 'EVALSHA'"},
		{"ERR unknown command `EVALSHA`, with args beginning with: `e0a9`, `1`, `job`, `secret`, ", "ERR unknown command `EVALSHA`"},
		{"unknown command 'EVALSHA', with args beginning with: 'secret' ", "ERR unknown command 'EVALSHA'"}, // "ERR " was stripped
		{"ERR unknown command 'PING', with args beginning with: ", "ERR unknown command 'PING'"},
		{"ERR unknown command", "ERR unknown command"},
	} {
		for _, below := range []error{errors.New(tt.text), fmt.Errorf("hook: %w", errors.New(tt.text)), nil} {
			err := adapter.NewServerError(tt.text, below)
			shown := fmt.Sprintf("%v %+v %#v", err, err, err)
			if err.Err != nil {
				shown += fmt.Sprintf("%v %+v %#v", err.Err, err.Err, err.Err)
			}
			if err.Text != tt.want || strings.Contains(shown, "secret") {
				t.Errorf("%q over %v: text %q, want %q; shown: %s", tt.text, below, err.Text, tt.want, shown)
			}
			if (err.Err == nil) != (below == nil) {
				t.Errorf("%q over %v: the error below is %v", tt.text, below, err.Err)
			}
		}
	}
}

func TestDialFailed(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	read := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for _, tt := range []struct {
		err  error
		want bool
	}{{nil, false}, {io.EOF, false}, {read, false}, {dial, true}, {fmt.Errorf("above: %w", dial), true}, {fmt.Errorf("above: %w", read), false}} {
		if got := adapter.DialFailed(tt.err); got != tt.want {
			t.Errorf("DialFailed(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}
