//go:build unix

package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/bench/peers/load"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Options say how a Work runs.
type Options struct {
	Size   Size
	Rounds int // 0: as many as the work has
}

// nodes is how many servers a quorum has.
const nodes = 5

// ttl is the lease of every lock, except kept ones (keptTTL).
const ttl = 30 * time.Second

// env is the environment of a work: servers, and a folder for the sections.
type env struct {
	size    Size
	servers []*redistest.Server // nodes of a quorum; the first is the server of all others
	dir     string
	files   int
}

func newEnv(ctx context.Context, opts Options) (*env, error) {
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return nil, err
	}
	servers, err := redistest.LaunchN(ctx, nodes, redistest.Options{})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &env{size: opts.Size, servers: servers, dir: dir}, nil
}

func (e *env) close() error {
	var errs []error
	for _, s := range e.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}

// flush empties the servers.
func (e *env) flush() error {
	for _, s := range e.servers {
		if _, err := s.Command("FLUSHALL"); err != nil {
			return err
		}
	}
	return nil
}

// options are a contender's over the first n servers.
func (e *env) options(n int) contender.Options {
	opts := contender.Options{TTL: ttl}
	for _, s := range e.servers[:n] {
		opts.Addrs = append(opts.Addrs, s.Addr())
	}
	return opts
}

// pick returns the value for the size.
func pick[T any](e *env, quick, usual T) T {
	if e.size == Quick {
		return quick
	}
	return usual
}

// job is a Job of one process over one server, measured for so long; a quick one for 50 ms.
func (e *env) job(c contender.Contender, goroutines, names int, measured time.Duration) load.Job {
	measured = pick(e, 50*time.Millisecond, measured)
	return load.Job{
		Contender: c.Name, Options: e.options(1),
		Goroutines: goroutines, Names: names,
		RunIn: measured / 5, For: measured, Grace: 10 * time.Second,
	}
}

// sections creates the sections of a job.
func (e *env) sections(job *load.Job) (*load.Sections, error) {
	e.files++
	job.Sections = filepath.Join(e.dir, fmt.Sprintf("sections-%d", e.files))
	return load.CreateSections(job.Sections, job.Names)
}

// Server returns the name and the version of the works' server.
func Server(ctx context.Context) (string, error) {
	s, err := redistest.Launch(ctx, redistest.Options{})
	if err != nil {
		return "", err
	}
	defer s.Close()
	reply, err := s.Do(ctx, "INFO", "server")
	if err != nil {
		return "", err
	}
	version := ""
	for line := range strings.Lines(fmt.Sprint(reply)) {
		for field, name := range map[string]string{"valkey_version": "Valkey", "redis_version": "Redis"} {
			if v, ok := strings.CutPrefix(line, field+":"); ok && (version == "" || name == "Valkey") {
				version = name + " " + strings.TrimSpace(v) // Valkey tells both
			}
		}
	}
	return version, nil
}
