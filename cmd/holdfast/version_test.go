package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

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
