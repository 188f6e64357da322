package certmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	upstream "github.com/caddyserver/certmagic"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/integrations/certmagic"
	"github.com/holdfast-go/holdfast/examples/integrations/internal/adaptertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "issue_cert_example.com" // as certmagic locks it

func newStorage(t *testing.T, dir string, l locker.Locker, req locker.Request) *certmagic.Storage {
	t.Helper()
	s := locker.Must(certmagic.New(&upstream.FileStorage{Path: dir}, l, req))
	return s
}

func TestStorage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	adaptertest.Run(t, name, func(ctx context.Context, l locker.Locker, req locker.Request) adaptertest.Mutex {
		s := newStorage(t, dir, l, req)
		return adaptertest.Mutex{
			Lock:   func() error { return s.Lock(ctx, name) },
			Unlock: func() error { return s.Unlock(ctx, name) },
		}
	})
}

func TestTryLock(t *testing.T) {
	t.Parallel()
	server, dir := adaptertest.Start(t), t.TempDir()
	here := newStorage(t, dir, server.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	there := newStorage(t, dir, server.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	if ok, err := here.TryLock(t.Context(), name); !ok || err != nil {
		t.Fatalf("TryLock of a free name: %t, %v", ok, err)
	}
	if ok, err := there.TryLock(t.Context(), name); ok || err != nil {
		t.Errorf("TryLock of a name that another process holds: %t, %v", ok, err)
	}
	check.OK(t, here.Unlock(t.Context(), name))
	check.Must(t, server.Freeze())
	hasty := newStorage(t, dir, server.Process(holdfast.Config{}, single.Config{AttemptTimeout: 300 * time.Millisecond}),
		locker.Request{})
	if ok, err := hasty.TryLock(t.Context(), name); ok || err == nil {
		t.Errorf("TryLock in an outage: %t, %v", ok, err)
	}
	check.Must(t, server.Thaw())
	server.Empty()
}

// Of three instances in need of the same certificate at the same time, one asks the CA.
func TestObtain(t *testing.T) {
	t.Parallel()
	server, dir := adaptertest.Start(t), t.TempDir()
	ca := &issuer{issue: func() { server.Waiting(name) }}
	var wg sync.WaitGroup
	for range 3 {
		var cfg *upstream.Config
		cache := upstream.NewCache(upstream.CacheOptions{
			GetConfigForCert: func(upstream.Certificate) (*upstream.Config, error) { return cfg, nil },
			Logger:           zap.NewNop(),
		})
		t.Cleanup(cache.Stop)
		cfg = upstream.New(cache, upstream.Config{
			Storage: newStorage(t, dir, server.Process(holdfast.Config{}, single.Config{}), locker.Request{}),
			Issuers: []upstream.Issuer{ca},
			Logger:  zap.NewNop(),
		})
		wg.Go(func() {
			if err := cfg.ObtainCertSync(t.Context(), "example.com"); err != nil {
				t.Error(err)
				return
			}
			locker.Must(cfg.CacheManagedCertificate(t.Context(), "example.com"))
		})
	}
	wg.Wait()
	check.Equal(t, "certificates that were issued", ca.issued.Load(), 1)
	server.Empty()
}

// issuer is a CA that signs everything.
type issuer struct {
	issue  func() // before the first certificate
	issued atomic.Int32
}

func (*issuer) IssuerKey() string { return "test" }

func (ca *issuer) Issue(_ context.Context, csr *x509.CertificateRequest) (*upstream.IssuedCertificate, error) {
	if ca.issued.Add(1) == 1 {
		ca.issue()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     csr.DNSNames,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, csr.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &upstream.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}
