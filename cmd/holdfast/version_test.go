package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	root := newRoot(&options{})
	root.SetOut(&out)
	root.SetArgs([]string{"--version"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^holdfast version \S+\n$`).MatchString(out.String()) {
		t.Errorf("--version prints %q", out.String())
	}
}
