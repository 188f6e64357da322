// Package install installs the lock libraries of other languages once into the user's cache, by the
// package manager of each language, and returns the commands of their peers.
//
// A folder of the cache is named by a hash of the files that pin the versions, and appears when it
// is complete. Processes that install at the same time wait for one another.
package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/interop/peer"
)

// patience bounds an installation.
const patience = 20 * time.Minute

// Runtime is a language with its peer.
type Runtime struct {
	programs []string // looked up in PATH
	files    []string // in the folder of the language: they determine what is installed
	// install fills dir with what the language's folder asks for.
	install func(ctx context.Context, folder, dir string) error
	// command returns the command of the peer.
	command func(folder, dir string) peer.Command
	once    func() (peer.Command, error)
}

// Runtimes by language, which is also the name of the folder.
var Runtimes = map[string]*Runtime{"python": python, "node": node, "java": java}

func init() {
	for language, r := range Runtimes {
		r.once = sync.OnceValues(func() (peer.Command, error) { return r.get(language) })
	}
}

// Need returns the command of a language's peer, without its arguments. It skips the test if a
// program is missing, and fails it if the environment says CI=true.
func Need(tb testing.TB, language string) peer.Command {
	tb.Helper()
	r := Runtimes[language]
	for _, program := range r.programs {
		_, err := exec.LookPath(program)
		switch {
		case err == nil:
		case os.Getenv("CI") == "true":
			tb.Fatalf("CI=true, but there is no %s: %v", program, err)
		default:
			tb.Skipf("install %s to run this test: %v", program, err)
		}
	}
	c, err := r.once()
	if err != nil {
		tb.Fatalf("install the peers in %s: %v", language, err)
	}
	return c
}

// get installs what is missing.
func (r *Runtime) get(language string) (peer.Command, error) {
	folder, err := filepath.Abs(language) // tests run in the folder of package interop
	if err != nil {
		return peer.Command{}, err
	}
	hash, err := r.hash(folder)
	if err != nil {
		return peer.Command{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return peer.Command{}, err
	}
	dir := filepath.Join(cache, "holdfast", "interop", language+"-"+hash)
	if err := r.fill(folder, dir); err != nil {
		return peer.Command{}, err
	}
	return r.command(folder, dir), nil
}

// hash returns a hash of r.files.
func (r *Runtime) hash(folder string) (string, error) {
	sum := sha256.New()
	for _, pattern := range r.files {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(paths) == 0 {
			return "", errors.Join(fmt.Errorf("no %s in %s", pattern, folder), err)
		}
		for _, path := range slices.Sorted(slices.Values(paths)) {
			b, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			sum.Write(fmt.Appendf(nil, "%s %d\n", filepath.Base(path), len(b)))
			sum.Write(b)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// fill installs into dir, unless it is there.
func (r *Runtime) fill(folder, dir string) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "work.")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.install(ctx, folder, work); err != nil {
		return err
	}
	return os.Rename(work, dir)
}

// run runs a program in dir. Its output is part of the error.
func run(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%q: %w\n%s", args, err, &output)
	}
	return nil
}
