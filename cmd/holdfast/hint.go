package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// probeTimeout bounds how long servers that did not answer are probed.
const probeTimeout = time.Second

// hint returns what to correct in the URL after err, or "" if that is not known.
func (o *options) hint(err error) string {
	all, credErr := o.credentials()
	if credErr != nil {
		return ""
	}
	return hint(err, all...)
}

func hint(err error, all ...credentials) string {
	switch {
	case driver.CodeOf(err) == "MOVED" && all[0].kind == oneServer:
		return clusterAdvice
	case operationStatus(err) != statusUnreachable:
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	for _, cred := range all {
		for _, addr := range cred.addrs {
			switch {
			case cred.network != "tcp":
			case cred.tls && answersPlain(ctx, addr):
				return addr + " answers without TLS: in the URL, write redis instead of rediss."
			case !cred.tls && answersTLS(ctx, addr):
				return addr + " answers with TLS: in the URL, write rediss instead of redis."
			}
		}
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
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
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
