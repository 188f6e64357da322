package migrate_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	upstream "github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/stub"
	databasetesting "github.com/golang-migrate/migrate/v4/database/testing"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/integrations/internal/adaptertest"
	"github.com/holdfast-go/holdfast/examples/integrations/migrate"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestMain(m *testing.M) {
	// Migrate leaves the migrations read ahead when one fails.
	const readAhead = "github.com/golang-migrate/migrate/v4.(*Migration).Buffer"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(readAhead))
}

const name = "migrate:app"

func newDriver(ctx context.Context, t *testing.T, d database.Driver, l locker.Locker, req locker.Request) *migrate.Driver {
	t.Helper()
	req.Name = name
	if req.MaxWait == 0 {
		req.MaxWait = time.Minute
	}
	adapter := locker.Must(migrate.New(ctx, d, l, req))
	return adapter
}

func TestDriver(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, name, func(ctx context.Context, l locker.Locker, req locker.Request) adaptertest.Mutex {
		d := newDriver(ctx, t, &table{}, l, req)
		return adaptertest.Mutex{Lock: d.Lock, Unlock: d.Unlock}
	})
}

// golang-migrate's own tests of a database driver.
func TestUpstream(t *testing.T) {
	t.Parallel()
	s := adaptertest.Start(t)
	inner := &stub.Stub{CurrentVersion: database.NilVersion}
	d := newDriver(t.Context(), t, inner, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	databasetesting.Test(t, d, []byte("CREATE TABLE t (a int)"))
	s.Empty()
}

func TestUp(t *testing.T) {
	t.Parallel()
	s, shared := adaptertest.Start(t), newTable()
	var wg sync.WaitGroup
	for range 3 {
		m := newMigrate(t, newDriver(t.Context(), t, shared, s.Process(holdfast.Config{}, single.Config{}), locker.Request{}))
		wg.Go(func() {
			if err := m.Up(); err != nil && !errors.Is(err, upstream.ErrNoChange) {
				t.Errorf("Up: %v", err)
			}
		})
	}
	wg.Wait()
	shared.want(t, 2, "one", "two")
	s.Empty()
}

func TestUpWhileLocked(t *testing.T) {
	t.Parallel()
	s, shared := adaptertest.Start(t), newTable()
	holder := newDriver(t.Context(), t, shared, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	check.Must(t, holder.Lock())
	req := locker.Request{NoWait: true, MaxWait: time.Minute}
	m := newMigrate(t, newDriver(t.Context(), t, shared, s.Process(holdfast.Config{}, single.Config{}), req))
	check.Error(t, "Up", m.Up(), database.ErrLocked, locker.ErrNotAcquired)
	shared.want(t, database.NilVersion)
	check.OK(t, holder.Unlock())
	s.Empty()
}

// If the lock is lost during a migration, this one is stored as done, and no other begins.
func TestUpLost(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	s, shared := adaptertest.Start(t), newTable()
	d := newDriver(t.Context(), t, shared, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	shared.run = func() {
		s.MustCommand(t, "DEL", name)
		awaitLoss(t, d, 1)
	}
	check.Is(t, newMigrate(t, d).Up(), locker.ErrLost)
	shared.want(t, 1, "one")
	s.Empty()
}

func TestDropLost(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	s, shared := adaptertest.Start(t), newTable()
	shared.version = 7
	d := newDriver(t.Context(), t, shared, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	check.Must(t, d.Lock())
	s.MustCommand(t, "DEL", name)
	awaitLoss(t, d, 7)
	check.OK(t, d.SetVersion(7, false))
	check.Is(t, d.Drop(), locker.ErrLost)
	shared.want(t, 7)
	check.Is(t, d.Unlock(), locker.ErrLost)
}

// awaitLoss waits until the migration to a version cannot begin.
func awaitLoss(t *testing.T, d *migrate.Driver, version int) {
	t.Helper()
	check.Eventually(t, "after a loss no migration may begin", func() bool {
		return errors.Is(d.SetVersion(version, true), locker.ErrLost)
	})
}

// A Driver does not ask again for a lock that it holds.
func TestLockTwice(t *testing.T) {
	t.Parallel()
	s := adaptertest.Start(t)
	d := newDriver(t.Context(), t, newTable(), s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	check.Is(t, d.Unlock(), database.ErrNotLocked)
	check.Must(t, d.Lock())
	check.Only(t, d.Lock(), database.ErrLocked, locker.ErrNotAcquired)
	check.OK(t, d.Unlock())
	s.Empty()
}

func TestUpInOutage(t *testing.T) {
	t.Parallel()
	s := adaptertest.Start(t)
	req := locker.Request{MaxWait: 300 * time.Millisecond}
	m := newMigrate(t, newDriver(t.Context(), t, newTable(), s.Process(holdfast.Config{}, single.Config{}), req))
	check.Must(t, s.Freeze())
	check.Only(t, m.Up(), locker.ErrMaxWait, database.ErrLocked)
	check.Must(t, s.Thaw())
	s.Empty()
}

// A Driver of Open has the lock too.
func TestOpen(t *testing.T) {
	t.Parallel()
	s := adaptertest.Start(t)
	d := newDriver(t.Context(), t, &stub.Stub{}, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	opened := locker.Must(d.Open("stub://"))
	check.Must(t, opened.Lock())
	check.Equal[any](t, "keys of the lock", s.MustCommand(t, "EXISTS", name), int64(1))
	check.OK(t, opened.Unlock())
	s.Empty()
}

func TestNewWithoutMaxWait(t *testing.T) {
	t.Parallel()
	if _, err := migrate.New(t.Context(), newTable(), nil, locker.Request{Name: name}); err == nil {
		t.Error("New accepted a Lock that may hang for longer than LockTimeout")
	}
}

func newMigrate(t *testing.T, d database.Driver) *upstream.Migrate {
	t.Helper()
	source, err := iofs.New(fstest.MapFS{
		"1_a.up.sql": {Data: []byte("one")},
		"2_b.up.sql": {Data: []byte("two")},
	}, ".")
	check.Must(t, err)
	m := locker.Must(upstream.NewWithInstance("iofs", source, "table", d))
	m.LockTimeout = time.Hour
	t.Cleanup(func() { _, _ = m.Close() })
	return m
}

// table is a database migrated by several processes.
type table struct {
	stub.Stub
	run func() // in each migration, if it is not nil

	mu      sync.Mutex
	version int
	dirty   bool
	applied []string
}

func newTable() *table { return &table{version: database.NilVersion} }

func (d *table) Run(migration io.Reader) error {
	text, err := io.ReadAll(migration)
	if d.run != nil {
		d.run()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applied = append(d.applied, string(text))
	return err
}

func (d *table) SetVersion(version int, dirty bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version, d.dirty = version, dirty
	return nil
}

func (d *table) Version() (version int, dirty bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version, d.dirty, nil
}

func (d *table) Drop() error { return d.SetVersion(database.NilVersion, false) }

func (d *table) want(t *testing.T, version int, applied ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.version != version || d.dirty || !slices.Equal(d.applied, applied) {
		t.Errorf("version %d (dirty: %t) after %q, want %d after %q", d.version, d.dirty, d.applied, version, applied)
	}
}
