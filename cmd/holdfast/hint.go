package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// hint returns a correction of the arguments, or of the URLs of servers, after err, or "" if none
// is known.
func hint(ctx context.Context, err error, servers ...credentials) string {
	switch {
	case err == nil || len(servers) == 0:
		return ""
	case driver.CodeOf(err) == "MOVED" && servers[0].kind == oneServer:
		return servers[0].clusterAdvice()
	case driver.CodeOf(err) == "WRONGTYPE" || innermost(err, isOtherType):
		return "If it is a lock, name its strategy by --strategy: holdfast who shows it."
	case refusedLogin(err):
		return loginAdvice(servers)
	case certificateAdvice(err) != "":
		return certificateAdvice(err)
	case driver.CodeOf(err) != "" || errors.Is(err, locker.ErrNotAcquired) || operationStatus(err) != statusUnreachable:
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var all sync.WaitGroup
	hints := make(chan string, 1) // the first one
	for _, cred := range servers {
		for _, addr := range cred.addrs {
			all.Go(func() {
				if advice := probe(ctx, cred, addr); advice != "" {
					select {
					case hints <- advice:
						cancel()
					default:
					}
				}
			})
		}
	}
	all.Wait()
	close(hints)
	return <-hints
}

// isOtherType recognizes the error of a script that found a key of another type.
func isOtherType(text string) bool { return text == "key is of another type" }

// loginAdvice returns the advice after one of the servers refused the login.
func loginAdvice(servers []credentials) string {
	without := func(c credentials) bool { return c.password == "" }
	sentinels := func(c credentials) bool { return c.kind == sentinel }
	advice := "Correct the password (HOLDFAST_PASSWORD, --password-file), or the user in the URL."
	if slices.ContainsFunc(servers, without) {
		advice = "Put the password into HOLDFAST_PASSWORD, or into a file and its name into --password-file."
	}
	if slices.ContainsFunc(servers, sentinels) {
		advice += " That of Sentinels is HOLDFAST_SENTINEL_PASSWORD."
	}
	return advice
}

// certificateAdvice returns the advice after a refused certificate, or "".
func certificateAdvice(err error) string {
	if named, ok := errors.AsType[x509.HostnameError](err); ok && named.Certificate != nil {
		names := slices.Clone(named.Certificate.DNSNames)
		for _, ip := range named.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
		return fmt.Sprintf("The certificate is for %s: if that is the server, give one of its names by --tls-name.",
			strings.Join(names, ", "))
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "If the certificate is signed by an authority of your own, give its file by --tls-ca."
	}
	return ""
}

// probe returns a correction of the URL if the server answers with TLS and the URL is without, or
// the other way round. It sends no password. An answer without TLS is no reason to do without:
// anyone on the way can give it.
func probe(ctx context.Context, cred credentials, addr string) string {
	switch {
	case cred.network != "tcp":
	case cred.tls && answersPlain(ctx, addr):
		return addr + " answers without TLS: if it is meant to, write redis instead of rediss in the URL."
	case !cred.tls && answersTLS(ctx, addr):
		return addr + " answers with TLS: in the URL, write rediss instead of redis."
	}
	return ""
}

// answersPlain reports whether a server answers a command without TLS.
func answersPlain(ctx context.Context, addr string) bool {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer c.Close() //nolint:errcheck // nothing is pending
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })()
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return false
	}
	first := make([]byte, 1)
	_, err = io.ReadFull(c, first)
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// answersTLS reports whether a server answers a TLS handshake, with any certificate.
func answersTLS(ctx context.Context, addr string) bool {
	c, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = c.Close()
		return true
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted
}
