package adapter_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// A script that the server does not know is sent by source, once.
func TestScriptCacheSendsSource(t *testing.T) {
	t.Parallel()
	cut := errors.New("EOF")
	noscript := adapter.NewServerError("NOSCRIPT No matching script. Please use EVAL.", cut)
	busy := adapter.NewServerError("BUSY Redis is busy running a script.", cut)
	tests := []struct {
		name    string
		answers []error
		sent    []string
	}{
		{"known script", []error{nil}, []string{"EVALSHA"}},
		{"unknown script", []error{noscript, nil}, []string{"EVALSHA", "EVAL"}},
		{"unknown script, wrapped", []error{fmt.Errorf("client: %w", noscript), nil}, []string{"EVALSHA", "EVAL"}},
		{"unknown for ever", []error{noscript, noscript}, []string{"EVALSHA", "EVAL"}},
		{"lost answer", []error{cut}, []string{"EVALSHA"}},
		{"lost answer of the source", []error{noscript, cut}, []string{"EVALSHA", "EVAL"}},
		{"refused", []error{busy}, []string{"EVALSHA"}},
		{"not a server's word", []error{errors.New("NOSCRIPT says the proxy")}, []string{"EVALSHA"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := driver.NewScript("return 2")
			var sent []string
			var scripts adapter.ScriptCache
			r, err := scripts.Eval(t.Context(), s, func(command, body string) (driver.Reply, error) {
				if want := map[string]string{"EVALSHA": s.Digest(), "EVAL": s.Source()}[command]; body != want {
					t.Errorf("%s with %q, want %q", command, body, want)
				}
				sent = append(sent, command)
				if err := tt.answers[len(sent)-1]; err != nil {
					return driver.Reply{}, err
				}
				return driver.NewReply(2)
			})
			if !slices.Equal(sent, tt.sent) {
				t.Errorf("sent %v, want %v", sent, tt.sent)
			}
			last := tt.answers[len(tt.answers)-1]
			if err != last { //nolint:errorlint // the very error, not wrapped
				t.Errorf("error %v, want %v", err, last)
			}
			if n, _ := r.Int(0); last == nil && n != 2 {
				t.Errorf("reply %v, want 2", r)
			}
		})
	}
}
