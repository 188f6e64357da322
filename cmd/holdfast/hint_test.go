package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The advice never drops TLS, and only errors without an answer are probed.
func TestHint(t *testing.T) {
	t.Parallel()
	moved := fmt.Errorf("acquire: %w", &driver.ServerError{Text: "MOVED 866 127.0.0.1:7001"})
	const plain, secured = "redis://", "rediss://"
	listening := shared.Get(t).Addr()
	silent := faultproxy.Start(t, listening)
	silent.Freeze()
	for _, test := range []struct {
		name, url string
		err       error
		want      string
	}{
		{"a node of a Cluster", plain + listening, moved,
			"The server is a node of a Cluster: use redis+cluster:// in the URL."},
		{"one with TLS", secured + listening, moved,
			"The server is a node of a Cluster: use rediss+cluster:// in the URL."},
		{"a Cluster", "redis+cluster://" + listening, moved, ""},
		{"no answer", secured + listening, context.DeadlineExceeded,
			listening + " answers without TLS: if it is meant to, write redis instead of rediss in the URL."},
		{"one node is silent", secured + silent.Addr() + "," + secured + listening, context.DeadlineExceeded,
			listening + " answers without TLS: if it is meant to, write redis instead of rediss in the URL."},
		{"an answer", secured + listening, &driver.ServerError{Text: "LOADING Redis is loading"}, ""},
		{"a lock that is held", secured + listening, &statusError{statusUnreachable, locker.ErrNotAcquired}, ""},
		{"a refusal in the text of a pool", secured + listening, errors.New("redisc: all nodes failed\nNOAUTH Authentication required"),
			"Put the password into HOLDFAST_PASSWORD, or into a file and its name into --password-file."},
		{"a refusal in an error with an As of its own", secured + listening, opaqueError{&driver.ServerError{Text: "WRONGPASS wrong"}},
			"Put the password into HOLDFAST_PASSWORD, or into a file and its name into --password-file."},
		{"a holder's note like a refusal", secured + listening, &locker.ContentionError{Note: "WRONGPASS is set"}, ""},
		{"a holder's note like another error", secured + listening, &locker.ContentionError{Note: "key is of another type"}, ""},
	} {
		o := options{client: "goredis", nodes: test.url}
		servers := locker.Must(o.credentials())
		check.Equal(t, test.name+": hint", hint(t.Context(), test.err, servers...), test.want)
	}
	check.Equal(t, "hint before the servers are known", hint(t.Context(), moved), "")
}

// A pipe cannot be read twice.
func TestPasswordFileIsReadOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	check.Must(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	o := options{client: "goredis", url: "redis://127.0.0.1:1", passwordFile: file}
	for range 2 {
		servers, err := o.credentials()
		if err != nil || servers[0].password != "secret" {
			t.Fatalf("credentials = %v, %v", servers, err)
		}
		_ = os.Remove(file)
	}
}

// opaqueError wraps an error without an Unwrap, as one of middleware/retry does.
type opaqueError struct{ err error }

func (opaqueError) Error() string        { return "of an attempt" }
func (e opaqueError) As(target any) bool { return errors.As(e.err, target) }
