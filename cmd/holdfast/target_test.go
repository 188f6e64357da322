package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	t.Parallel()
	one := func(addr string) target { return target{network: "tcp", addrs: []string{addr}} }
	with := func(t target, set func(*target)) target { set(&t); return t }
	for raw, want := range map[string]target{
		"redis://h":        one("h:6379"),
		"redis://h:1":      one("h:1"),
		"redis://[::1]:1":  one("[::1]:1"),
		"redis://[::1]":    one("[::1]:6379"),
		"redis://h/3":      with(one("h:6379"), func(t *target) { t.db = 3 }),
		"redis://u@h":      with(one("h:6379"), func(t *target) { t.user = "u" }),
		"redis://:p%40@h/": with(one("h:6379"), func(t *target) { t.password = "p@" }),
		"rediss://u:p@h:1": with(one("h:1"), func(t *target) { t.user, t.password, t.tls = "u", "p", true }),
		"unix:///run/r":    {network: "unix", addrs: []string{"/run/r"}},
		"unix://u:p@/run/r?db=2": {
			network: "unix", addrs: []string{"/run/r"}, user: "u", password: "p", db: 2,
		},
		"redis+cluster://a , b:1": {kind: cluster, network: "tcp", addrs: []string{"a:6379", "b:1"}},
		"redis+cluster://a,b:1":   {kind: cluster, network: "tcp", addrs: []string{"a:6379", "b:1"}},
		"rediss+cluster://u:p@a":  {kind: cluster, network: "tcp", addrs: []string{"a:6379"}, user: "u", password: "p", tls: true},
		"redis+sentinel://a,b:1/m": {
			kind: sentinel, network: "tcp", addrs: []string{"a:26379", "b:1"}, master: "m",
		},
		"rediss+sentinel://u@a/m/4": {
			kind: sentinel, network: "tcp", addrs: []string{"a:26379"}, master: "m", user: "u", db: 4, tls: true,
		},
	} {
		got, err := parseTarget(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

// No error repeats a wrong URL: it may have a password.
func TestParseTargetErrors(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                          "no scheme",
		"h:6379":                    "no scheme",
		"http://:sesame@h":          "unknown scheme",
		"redis://:sesame@":          "a host that is empty",
		"redis://:sesame@h:port":    "a host that is empty or cannot be parsed",
		"redis://:sesame@h:1:2":     "a host",
		"redis://:sesame@h:0":       "1 to 65535",
		"redis://:sesame@h:65536":   "1 to 65535",
		"redis://:ses%ame@h":        "percent-encode",
		"redis://:sesame@a,b":       "several hosts",
		"redis://:sesame@h/x":       "not a number",
		"redis://:sesame@h/-1":      "not a number",
		"redis://:sesame@h?tls=1":   "not known",
		"redis://:sesame@h#f":       "not known",
		"unix://:sesame@run/r":      "three slashes",
		"unix://":                   "three slashes",
		"redis+cluster://a,/":       "a host that is empty",
		"redis+cluster://a/1":       "has no path",
		"redis+sentinel://a":        "the name of the master",
		"redis+sentinel://:sesame@": "a host that is empty",
	} {
		_, err := parseTarget(raw)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ses") {
			t.Errorf("%s: %v; want %q and no password", raw, err, want)
		}
	}
}

func TestSplitURLs(t *testing.T) {
	t.Parallel()
	for s, want := range map[string][]string{
		"redis://a":            {"redis://a"},
		"redis://a,rediss://b": {"redis://a", "rediss://b"},
		"redis+cluster://a,b:1,redis+cluster://c": {"redis+cluster://a,b:1", "redis+cluster://c"},
		"redis://a, rediss://b ,\nredis://c":      {"redis://a", "rediss://b", "redis://c"},
	} {
		if got := splitURLs(s); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
}
