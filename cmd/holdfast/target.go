package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// kind says how the servers of a target belong together.
type kind uint8

const (
	oneServer kind = iota
	cluster
	sentinel
)

// target is the content of a URL: the servers, and the login.
type target struct {
	kind           kind
	network        string   // "tcp" or "unix"
	addrs          []string // "host:port", or the path of a socket
	master         string   // the master's name at the Sentinels
	user, password string
	db             int
	tls            bool
}

const urlForms = "redis://, rediss://, unix://, redis+cluster://, rediss+cluster://, redis+sentinel:// or rediss+sentinel://"

// errPasswordInArgument refuses a password that every user of the machine can read.
var errPasswordInArgument = errors.New("the URL in the arguments has a password, which every user of this machine can read there: " +
	"put the URL into HOLDFAST_URL or HOLDFAST_NODES, or the password into HOLDFAST_PASSWORD or a file named by --password-file")

// parseTarget parses the URL of a server, of a Cluster or of Sentinels. Its errors do not repeat
// raw: it may have a password.
func parseTarget(raw string) (target, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return target{}, fmt.Errorf("the URL has no scheme: want %s", urlForms)
	}
	t := target{network: "tcp", tls: strings.HasPrefix(scheme, "rediss")}
	port := "6379"
	switch scheme {
	case "redis", "rediss":
	case "redis+cluster", "rediss+cluster":
		t.kind = cluster
	case "redis+sentinel", "rediss+sentinel":
		t.kind, port = sentinel, "26379"
	case "unix":
		t.network = "unix"
	default:
		return target{}, fmt.Errorf("the URL has an unknown scheme: want %s", urlForms)
	}

	// url.Parse takes one host: the others are parsed one by one.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	login, hosts := "", rest[:end]
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		login, hosts = hosts[:at+1], hosts[at+1:]
	}
	u, err := url.Parse("redis://" + login + "localhost" + rest[end:])
	if err != nil {
		return target{}, errors.New("the URL cannot be parsed: percent-encode special characters of the user, the password and the path")
	}
	t.user = u.User.Username()
	t.password, _ = u.User.Password()

	if t.network == "unix" {
		if hosts != "" || u.Path == "" {
			return target{}, errors.New("the URL of a socket has three slashes and a path, such as unix:///run/redis.sock")
		}
		t.addrs = []string{u.Path}
	} else {
		for host := range strings.SplitSeq(hosts, ",") {
			addr, err := address(strings.TrimSpace(host), port)
			if err != nil {
				return target{}, err
			}
			t.addrs = append(t.addrs, addr)
		}
	}
	return t.readPath(u)
}

// readPath reads the database, and the name of the master.
func (t target) readPath(u *url.URL) (target, error) {
	path, db := strings.Trim(u.Path, "/"), ""
	query := u.Query()
	switch {
	case t.network == "unix":
		db = query.Get("db")
		query.Del("db")
	case t.kind == oneServer:
		db = path
	case t.kind == cluster && path != "":
		return target{}, errors.New("the URL of a Cluster has no path: a Cluster has one database")
	case t.kind == sentinel:
		t.master, db, _ = strings.Cut(path, "/")
		if t.master == "" {
			return target{}, errors.New("the URL lacks the name of the master, such as redis+sentinel://host:26379/mymaster")
		}
	}
	if len(query) > 0 || u.Fragment != "" {
		return target{}, errors.New("the URL has parameters that are not known")
	}
	if t.kind == oneServer && len(t.addrs) != 1 {
		return target{}, errors.New("the URL has several hosts: use redis+cluster://, redis+sentinel://, or --nodes for a quorum")
	}
	if db != "" {
		n, err := strconv.Atoi(db)
		if err != nil || n < 0 {
			return target{}, errors.New("the database in the URL is not a number")
		}
		t.db = n
	}
	return t, nil
}

// address returns the "host:port" of the host of a URL.
func address(host, port string) (string, error) {
	u, err := url.Parse("redis://" + host)
	bare := err == nil && strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(host, "[") // "h:1:2"
	if err != nil || u.Hostname() == "" || u.Host != host || bare {
		return "", errors.New("the URL has a host that is empty or cannot be parsed")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", errors.New("the URL has a port that is not 1 to 65535")
		}
		port = p
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

var nextURL = regexp.MustCompile(`,\s*[a-z+]+://`)

// splitURLs splits URLs at the commas between them, without the spaces around them. The hosts of a
// Cluster have commas too.
func splitURLs(s string) (urls []string) {
	for {
		at := nextURL.FindStringIndex(s)
		if at == nil {
			return append(urls, strings.TrimSpace(s))
		}
		urls = append(urls, strings.TrimSpace(s[:at[0]]))
		s = s[at[0]+1:]
	}
}
