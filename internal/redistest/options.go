package redistest

import (
	"fmt"
	"strings"
)

// TLSMode says whether a server speaks TLS, and whom it lets in.
type TLSMode uint8

// The modes.
const (
	NoTLS     TLSMode = iota // plain TCP
	ServerTLS                // TLS only; a client certificate is not asked for
	MutualTLS                // TLS only; a client must show a certificate of our CA
)

// Options say how servers are configured. The zero value is a server without disk storage, password
// and TLS.
type Options struct {
	// Args are more settings in the form of redis-server's command line, as in
	// []string{"--maxmemory", "1mb", "--appendonly", "yes"}. In a Sentinel setup they are for the
	// Redis servers. Settings of this package (port, bind, dir, requirepass, ...) are refused.
	Args []string

	// Password is the default user's, also used by the servers among each other. Sentinels
	// themselves have none. Server.Command logs in with it, so the default user must stay on.
	Password string

	// TLS is NoTLS by default. Server.TLSConfig is for its clients.
	TLS TLSMode

	// Announce, for clusters only, gives each node another port to announce to clients, such as a
	// proxy's, started by it in front of nodeAddr. It is called before the node starts, and again
	// with another address if the node's port turns out to be taken. The announced address is
	// 127.0.0.1:port.
	Announce func(nodeAddr string) (port int, err error)
}

// reserved are the settings forbidden in Options.Args.
var reserved = map[string]bool{
	"port": true, "bind": true, "dir": true, "logfile": true, "daemonize": true,
	"requirepass": true, "masterauth": true,
	"tls-port": true, "tls-cert-file": true, "tls-key-file": true, "tls-ca-cert-file": true,
	"cluster-enabled": true, "cluster-port": true, "cluster-config-file": true,
	"cluster-announce-port": true, "cluster-announce-tls-port": true, "cluster-announce-bus-port": true,
	"replicaof": true, "slaveof": true,
}

func (o Options) check() error {
	for _, a := range o.Args {
		name, isSetting := strings.CutPrefix(strings.ToLower(a), "--")
		name, _, _ = strings.Cut(name, " ")
		if isSetting && reserved[name] {
			return fmt.Errorf("redistest: Options.Args must not contain %s: this package sets it", a)
		}
	}
	if o.TLS > MutualTLS {
		return fmt.Errorf("redistest: Options.TLS is %d: want NoTLS, ServerTLS or MutualTLS", o.TLS)
	}
	return nil
}

// common returns the settings of every Redis server.
func (o Options) common(s *Server) ([]string, error) {
	args := []string{"--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no"}
	v, err := version()
	if err != nil {
		return nil, err
	}
	if v >= 7 {
		args = append(args, "--enable-debug-command", "local") // DEBUG SLEEP; before 7 always allowed
	}
	tls, err := tlsArgs(o.TLS, s)
	if err != nil {
		return nil, err
	}
	args = append(args, tls...)
	if o.Password != "" {
		args = append(args, "--requirepass", o.Password, "--masterauth", o.Password)
	}
	return append(args, o.Args...), nil
}
