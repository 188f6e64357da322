package security_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// A client without a certificate, or with another CA's, gets no lock and no subscription, and soon
// an error with the reason. So does a client without trust in the server's certificate.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{TLS: redistest.MutualTLS})
	right := server.TLSConfig(true)
	stranger := right.Clone()
	stranger.Certificates = []tls.Certificate{foreignCertificate(t)}
	distrust := right.Clone()
	distrust.RootCAs = x509.NewCertPool()
	misnamed := right.Clone()
	misnamed.ServerName = "redis.example"
	old := server.TLSConfig(false)
	old.MaxVersion = tls.VersionTLS12
	for name, tc := range map[string]struct {
		config *tls.Config
		judge  func(err error) bool
	}{
		"no certificate":              {server.TLSConfig(false), turnedAway},
		"a certificate of another CA": {stranger, turnedAway},
		"no certificate, TLS 1.2":     {old, alerted},
		"a server of an unknown CA":   {distrust, is[x509.UnknownAuthorityError]},
		"a server of another name":    {misnamed, is[x509.HostnameError]},
		"plain TCP":                   {nil, failed},
	} {
		for _, client := range clients.WithFork {
			t.Run(name+"/"+client.Name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				target := alone(server)
				target.TLS = tc.config
				drv, err := client.Dial(t, target)
				if err != nil { // rueidis and valkey-go connect at once
					if !tc.judge(err) {
						t.Errorf("dial: %v", err)
					}
					return
				}
				defer drv.Close()
				if tc.config == nil { // a Locker tries again after a server hung up: it may come back
					_, err = drv.SetNX(ctx, "lock", "value", time.Minute)
				} else {
					_, err = locker.Must(holdfast.New(drv, holdfast.Config{})).Acquire(ctx, locker.Request{Name: "lock"})
				}
				if !tc.judge(err) || errors.Is(err, locker.ErrNotAcquired) {
					t.Errorf("acquire: %v", err)
				}
				check.Error(t, "acquire: it took long", ctx.Err())
				ctx, cancel = context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := drv.Subscribe(ctx, "channel"); !tc.judge(err) || ctx.Err() != nil {
					t.Errorf("subscribe: %v; context: %v", err, ctx.Err())
				}
			})
		}
	}
}

// turnedAway reports whether err says that the server refused the certificate. With TLS 1.3 the
// server may close the connection before a writing client has read the reason.
func turnedAway(err error) bool { return alerted(err) || hungUp(err) }

func failed(err error) bool { return err != nil }

func alerted(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && strings.HasPrefix(op.Err.Error(), "tls: ")
}

// hungUp reports whether err says that the server closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// foreignCertificate is signed by nobody but itself.
func foreignCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check.Must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
