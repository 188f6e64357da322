package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// certificates are made once per process and never leave it, but for the server's: redis-server
// reads it from its temporary folder.
type certificates struct {
	caPEM, serverPEM, serverKeyPEM []byte
	roots                          *x509.CertPool
	client                         tls.Certificate
}

var certs = sync.OnceValues(func() (*certificates, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	caTemplate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, caTemplate, caTemplate, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(caDER)
	if err != nil {
		return nil, err
	}
	// issue returns a certificate and its key. Servers are clients of each other.
	issue := func(serial int64, name string) (certPEM, keyPEM []byte, err error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: caTemplate.NotBefore, NotAfter: caTemplate.NotAfter,
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		}, ca, key.Public(), caKey)
		if err != nil {
			return nil, nil, err
		}
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		return pemBlock("CERTIFICATE", der), pemBlock("PRIVATE KEY", keyDER), err
	}
	c := &certificates{caPEM: pemBlock("CERTIFICATE", caDER), roots: x509.NewCertPool()}
	c.roots.AddCert(ca)
	if c.serverPEM, c.serverKeyPEM, err = issue(2, "redistest server"); err != nil {
		return nil, err
	}
	clientPEM, clientKeyPEM, err := issue(3, "redistest client")
	if err != nil {
		return nil, err
	}
	c.client, err = tls.X509KeyPair(clientPEM, clientKeyPEM)
	return c, err
})

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// tlsArgs returns the settings for the port of s, plain or TLS, and writes the
// server's certificate to its folder if it needs one.
func tlsArgs(mode TLSMode, s *Server) ([]string, error) {
	port := strconv.Itoa(s.port)
	if mode == NoTLS {
		return []string{"--port", port}, nil
	}
	c, err := certs()
	if err != nil {
		return nil, err
	}
	askClients := "no"
	if mode == MutualTLS {
		askClients = "yes"
	}
	args := []string{"--port", "0", "--tls-port", port, "--tls-replication", "yes", "--tls-auth-clients", askClients}
	for _, f := range []struct {
		setting, name string
		pem           []byte
	}{
		{"--tls-ca-cert-file", "ca.crt", c.caPEM},
		{"--tls-cert-file", "server.crt", c.serverPEM},
		{"--tls-key-file", "server.key", c.serverKeyPEM},
	} {
		path := filepath.Join(s.dir, f.name)
		if err := os.WriteFile(path, f.pem, 0o600); err != nil {
			return nil, err
		}
		args = append(args, f.setting, path)
	}
	return args, nil
}

// clientTLS returns a client's configuration, nil if the server speaks plain TCP.
func clientTLS(mode TLSMode, withCertificate bool) *tls.Config {
	if mode == NoTLS {
		return nil
	}
	c, err := certs()
	if err != nil {
		panic("redistest: certificates that a server runs with: " + err.Error())
	}
	cfg := &tls.Config{RootCAs: c.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	if withCertificate {
		cfg.Certificates = []tls.Certificate{c.client}
	}
	return cfg
}
