package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// stdout and stderr are the program's outputs. Names, notes and error texts are data of others: a
// terminal must not obey them.
var stdout, stderr io.Writer = escaper{os.Stdout}, escaper{os.Stderr}

// escaper writes to w, with JSON's escapes for characters that a terminal may obey or not show. In
// JSON such characters come inside of strings only.
type escaper struct{ w io.Writer }

// Write implements io.Writer. p has whole characters.
func (e escaper) Write(p []byte) (int, error) {
	if _, err := io.WriteString(e.w, escape(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escape returns s with escapes such as \u202e, and U+FFFD for invalid UTF-8.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// printed gives the error of a write to standard output its exit status.
func printed(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{statusFailed, err}
}

// printJSON prints a value on a line of its own.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return printed(e.Encode(v))
}

// printable returns s as it is if a terminal can show it on one line, and quoted otherwise: names
// are data of others, and may have control characters.
func printable(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == ' ' || r == '"' }
	if s == "" || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// trimPrefix returns the text of an error without the program's name, and without the empty line of
// a joined status.
func trimPrefix(err error) string {
	return strings.TrimPrefix(strings.TrimLeft(err.Error(), "\n"), "holdfast: ")
}
