package main

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode"
)

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

// trimPrefix returns the text of an error without the program's name, and without the empty line of a
// status that another error was joined with.
func trimPrefix(err error) string {
	return strings.TrimPrefix(strings.TrimLeft(err.Error(), "\n"), "holdfast: ")
}
