package peer

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

func TestParse(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro
	for line, want := range map[string]Answer{
		"1 2 ok":              {at(1), at(2), OK, ""},
		"1 2 no":              {at(1), at(2), No, ""},
		"1 2 error WRONG it ": {at(1), at(2), Error, "WRONG it "},
		"":                    {},
		"ready":               {},
		"1 x ok":              {},
		"x 2 ok":              {},
		"1 2 perhaps":         {},
	} {
		got, err := parse(line)
		check.Equal(t, line, got, want)
		check.Equal(t, line+" is an answer", err == nil, want.Outcome != "")
	}
}

func TestHammered(t *testing.T) {
	t.Parallel()
	h, err := Answer{Text: "12 3 45"}.Hammered()
	check.OK(t, err)
	check.Equal(t, "what a hammer did", h, Hammered{12, 3, 45 * time.Millisecond})
	_, err = Answer{Outcome: Error, Text: "no server"}.Hammered()
	check.Equal(t, "an error is a count", err == nil, false)
}
