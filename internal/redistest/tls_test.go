package redistest_test

import (
	"crypto/tls"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/resp"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode        redistest.TLSMode
		certificate bool
		ok          bool
	}{
		"server, no certificate":   {redistest.ServerTLS, false, true},
		"server, certificate":      {redistest.ServerTLS, true, true},
		"mutual, no certificate":   {redistest.MutualTLS, false, false},
		"mutual, with certificate": {redistest.MutualTLS, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.Options{TLS: tc.mode, Password: "p"})
			s.MustCommand(t, "SET", "k", "v")
			ping := func(cfg *tls.Config) error {
				c, err := (&tls.Dialer{Config: cfg}).DialContext(t.Context(), "tcp", s.Addr())
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = resp.NewConn(c).Do("AUTH", "p")
				return err
			}
			if err := ping(s.TLSConfig(tc.certificate)); (err == nil) != tc.ok {
				t.Errorf("error %v, want success: %v", err, tc.ok)
			}
			if err := ping(&tls.Config{}); err == nil {
				t.Error("a client that does not know our CA trusts the server")
			}
		})
	}
	if cfg := redistest.Start(t, redistest.Options{}).TLSConfig(true); cfg != nil {
		t.Errorf("a plain server's TLS configuration: %v", cfg)
	}
}
