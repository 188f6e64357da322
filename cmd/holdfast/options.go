package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// options are the flags of all commands.
type options struct {
	url, nodes, client        string
	strategy, prefix          string
	passwordFile              string
	caFile, certFile, keyFile string
	tlsName                   string

	connectTimeout time.Duration // for each server; 0 is the default

	urlArgument, nodesArgument bool // given as an argument, and not by the environment

	servers []credentials // the result of credentials
}

// fromEnvironment are the flags with an environment variable of the same name.
var fromEnvironment = []string{
	"url", "nodes", "client", "strategy", "prefix", "password-file", "tls-ca", "tls-cert", "tls-key", "tls-name",
}

func (o *options) register(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&o.url, "url", "redis://127.0.0.1:6379", "the server, a Cluster or Sentinels [HOLDFAST_URL]")
	f.StringVar(&o.nodes, "nodes", "",
		"URLs of independent servers, with commas: a quorum of them holds the lock [HOLDFAST_NODES]")
	f.StringVar(&o.client, "client", "goredis", "the client: "+strings.Join(clientNames(), ", ")+" [HOLDFAST_CLIENT]")
	f.StringVar(&o.strategy, "strategy", "",
		"single, reentrant, rwhash, redisson or semaphore:PERMITS; if empty: to acquire single, or rwhash with --shared,\nand otherwise that of the lock [HOLDFAST_STRATEGY]")
	f.StringVar(&o.prefix, "prefix", "", "what the key has before the name [HOLDFAST_PREFIX]")
	f.StringVar(&o.passwordFile, "password-file", "", "file with the password [HOLDFAST_PASSWORD_FILE]")
	f.StringVar(&o.caFile, "tls-ca", "", "file with the certificates to trust, PEM [HOLDFAST_TLS_CA]")
	f.StringVar(&o.certFile, "tls-cert", "", "file with the client's certificate, PEM [HOLDFAST_TLS_CERT]")
	f.StringVar(&o.keyFile, "tls-key", "", "file with its key, PEM [HOLDFAST_TLS_KEY]")
	f.StringVar(&o.tlsName, "tls-name", "",
		"the name in the server's certificate; the host if empty [HOLDFAST_TLS_NAME]")
	complete := func(flag string, values ...string) {
		_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("client", clientNames()...)
	complete("strategy", "single", "reentrant", "rwhash", "redisson", "semaphore:")
}

// readEnvironment sets flags from the environment, except those among the arguments.
func (o *options) readEnvironment(flags *pflag.FlagSet) error {
	o.urlArgument, o.nodesArgument = flags.Changed("url"), flags.Changed("nodes")
	if o.urlArgument && o.nodesArgument {
		return errors.New("give --url or --nodes, not both")
	}
	if !o.urlArgument && !o.nodesArgument && os.Getenv("HOLDFAST_URL") != "" && os.Getenv("HOLDFAST_NODES") != "" {
		return errors.New("set HOLDFAST_URL or HOLDFAST_NODES, not both")
	}
	for _, name := range fromEnvironment {
		variable := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		value := os.Getenv(variable)
		if value == "" || flags.Changed(name) || name == "nodes" && o.urlArgument {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("%s: %w", variable, err)
		}
	}
	return nil
}

// targets returns the servers: one, or the nodes of a quorum.
func (o *options) targets() ([]target, error) {
	urls, argument := []string{o.url}, o.urlArgument
	if o.nodes != "" {
		urls, argument = splitURLs(o.nodes), o.nodesArgument
	}
	password, err := o.password()
	if err != nil {
		return nil, err
	}
	var all []target
	for _, u := range urls {
		t, err := parseTarget(u)
		switch {
		case err != nil:
			return nil, err
		case t.password != "" && argument:
			return nil, errPasswordInArgument
		case t.password == "":
			t.password = password
		}
		all = append(all, t)
	}
	return all, nil
}

// password returns the password for URLs without one.
func (o *options) password() (string, error) {
	if o.passwordFile == "" {
		return os.Getenv("HOLDFAST_PASSWORD"), nil
	}
	text, err := os.ReadFile(o.passwordFile)
	if err != nil {
		return "", fmt.Errorf("the password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", fmt.Errorf("--password-file: %s has no password", o.passwordFile)
	}
	return password, nil
}

// tls returns the configuration of connections with TLS.
func (o *options) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.tlsName}
	if o.caFile != "" {
		pem, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: %s has no certificate in PEM", o.caFile)
		}
	}
	if o.certFile == "" && o.keyFile == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// parseStrategy returns the name of a strategy and, of a semaphore, its permits.
func parseStrategy(s string, shared bool) (name string, permits int, err error) {
	name, number, has := strings.Cut(s, ":")
	switch {
	case s == "" && shared:
		return "rwhash", 0, nil
	case s == "":
		return "single", 0, nil
	case shared && name != "rwhash":
		return "", 0, fmt.Errorf("--shared needs --strategy rwhash, not %s", s)
	case name == "semaphore" && has:
		if permits, err = strconv.Atoi(number); err == nil && permits > 0 {
			return name, permits, nil
		}
	case s == "single" || s == "reentrant" || s == "rwhash" || s == "redisson":
		return s, 0, nil
	}
	return "", 0, fmt.Errorf("--strategy %q: want single, reentrant, rwhash, redisson or semaphore:PERMITS, such as semaphore:3", s)
}
