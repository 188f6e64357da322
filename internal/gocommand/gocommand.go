// Package gocommand runs the go command for tests of the modules of this repository.
package gocommand

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Run runs the go command in the module in dir, whatever GOFLAGS and workspace the caller has, and
// returns its output. It builds with -trimpath, as the Makefile does: otherwise all packages would be
// compiled once more.
func Run(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	noticeChanges(t, dir)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly -buildvcs=false -trimpath", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, &stderr)
	}
	return out
}

// noticeChanges reads the module's folders: so go test's cache sees changes of their files.
func noticeChanges(t *testing.T, dir string) {
	t.Helper()
	check.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		return err
	}))
}
