package main

import (
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Control and invisible characters are printed as escapes: as text and as JSON.
func TestPrintedTextIsEscaped(t *testing.T) {
	t.Parallel()
	const odd = "a\x1b[31m\u009b31m\u202e\U000e0041b\r\xff\u2028"
	for name, write := range map[string]func(w *strings.Builder) error{
		"text": func(w *strings.Builder) error { _, err := fmt.Fprintln(escaper{w}, odd); return err },
		"JSON": func(w *strings.Builder) error { return printJSON(escaper{w}, map[string]string{"note": odd}) },
	} {
		var b strings.Builder
		check.Must(t, write(&b))
		got := b.String()
		for _, want := range []string{`a\u001b[31m\u009b31m\u202e\udb40\udc41b`, `\u2028`, "\n"} {
			check.Contains(t, name, got, want)
		}
		if strings.ContainsAny(got, "\x1b\u009b\u202e\U000e0041\r\u2028") {
			t.Errorf("%s: %q", name, got)
		}
		var back map[string]string
		if name == "JSON" {
			if err := json.Unmarshal([]byte(got), &back); err != nil || back["note"] != strings.ToValidUTF8(odd, "\uFFFD") {
				t.Errorf("it is read back as %q: %v", back["note"], err)
			}
		}
	}
}

// A server cannot send commands to the terminal in its errors. redigo returns them as they are, and
// needs no handshake.
func TestServerTextIsEscaped(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for part := make([]byte, 4096); ; {
					if _, err := c.Read(part); err != nil {
						return
					}
					_, _ = c.Write([]byte("-ERR red \x1b[31m and \u202e back\r\n"))
				}
			}()
		}
	}()
	env := append(at(l.Addr().String()), "HOLDFAST_CLIENT=redigo")
	says(t, statusFailed, `red \u001b[31m and \u202e back`, env, "who", "escaped")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	root := newRoot(&options{})
	root.SetOut(&out)
	root.SetArgs([]string{"--version"})
	check.Must(t, root.Execute())
	if !regexp.MustCompile(`^holdfast version \S+\n$`).MatchString(out.String()) {
		t.Errorf("--version prints %q", out.String())
	}
}
