package goose_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	upstream "github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/integrations/goose"
	"github.com/holdfast-go/holdfast/examples/integrations/internal/adaptertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "migrate:app"

func newLocker(t *testing.T, l locker.Locker, req locker.Request) *goose.Locker {
	t.Helper()
	adapter := locker.Must(goose.New(l, name, req))
	return adapter
}

func TestLocker(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, name, func(ctx context.Context, l locker.Locker, req locker.Request) adaptertest.Mutex {
		adapter := newLocker(t, l, req)
		return adaptertest.Mutex{
			Lock:   func() error { return adapter.Lock(ctx, nil) },
			Unlock: func() error { return adapter.Unlock(ctx, nil) },
		}
	})
}

// goose's own tests of a Locker: of five concurrent lockers, one succeeds.
func TestConcurrentLocking(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	s := adaptertest.Start(t)
	locktesting.TestConcurrentLocking(t, newDatabase(t).db, func(t *testing.T) lock.Locker {
		return newLocker(t, s.Process(holdfast.Config{}, single.Config{}), locker.Request{})
	}, 3*time.Second)
	s.Empty()
}

// goose's own tests of Providers with a Locker: of five concurrent ones, one migrates and the
// others find nothing to do.
func TestProviderLocking(t *testing.T) {
	t.Parallel()
	s, d := adaptertest.Start(t), newDatabase(t)
	locktesting.TestProviderLocking(t, func(t *testing.T) *upstream.Provider {
		return d.provider(t, newLocker(t, s.Process(holdfast.Config{}, single.Config{}), locker.Request{}), 5, nil)
	})
	s.Empty()
}

func TestUp(t *testing.T) {
	t.Parallel()
	type test struct {
		lose bool
		want error
	}
	check.Each(t, map[string]test{
		"the lock is held to the end": {false, nil},
		"the lock is lost meanwhile":  {true, locker.ErrLost},
	}, func(t *testing.T, c test) {
		s, d := adaptertest.Start(t), newDatabase(t)
		migrate := func(context.Context) error {
			check.Equal[any](t, "keys of the lock", s.MustCommand(t, "EXISTS", name), int64(1))
			if c.lose {
				s.MustCommand(t, "DEL", name)
			}
			return nil
		}
		p := d.provider(t, newLocker(t, s.Process(holdfast.Config{}, single.Config{}), locker.Request{}), 1, migrate)
		check.Error(t, "Up", check.ErrOf(p.Up(t.Context())), c.want)
		s.Empty()
	})
}

// memory is a database of goose's versions alone.
type memory struct {
	db *sql.DB

	mu       sync.Mutex
	versions []int64
}

func newDatabase(t *testing.T) *memory {
	t.Helper()
	d := &memory{db: sql.OpenDB(connector{})}
	t.Cleanup(func() { _ = d.db.Close() })
	return d
}

// provider returns a Provider with so many migrations. Each runs migrate.
func (d *memory) provider(t *testing.T, l lock.Locker, migrations int64, migrate func(context.Context) error) *upstream.Provider {
	t.Helper()
	options := []upstream.ProviderOption{
		upstream.WithStore(d),
		upstream.WithSlog(slog.New(slog.DiscardHandler)),
		upstream.WithDisableGlobalRegistry(true),
	}
	if l != nil {
		options = append(options, upstream.WithLocker(l))
	}
	for version := range migrations {
		up := &upstream.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
			if migrate == nil {
				return nil
			}
			return migrate(ctx)
		}}
		options = append(options, upstream.WithGoMigrations(upstream.NewGoMigration(version+1, up, nil)))
	}
	p := locker.Must(upstream.NewProvider(upstream.DialectCustom, d.db, nil, options...))
	return p
}

var _ database.Store = (*memory)(nil)

func (d *memory) Tablename() string { return "versions" }

func (d *memory) CreateVersionTable(context.Context, database.DBTxConn) error { return nil }

func (d *memory) Insert(_ context.Context, _ database.DBTxConn, req database.InsertRequest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Contains(d.versions, req.Version) {
		return errors.New("the version is there already")
	}
	d.versions = append(d.versions, req.Version)
	return nil
}

func (d *memory) Delete(context.Context, database.DBTxConn, int64) error {
	return database.ErrNotImplemented
}

func (d *memory) GetMigration(_ context.Context, _ database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.versions, version) {
		return nil, database.ErrVersionNotFound
	}
	return &database.GetMigrationResult{IsApplied: true}, nil
}

func (d *memory) GetLatestVersion(context.Context, database.DBTxConn) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.versions) == 0 {
		return 0, database.ErrVersionNotFound
	}
	return slices.Max(d.versions), nil
}

func (d *memory) ListMigrations(context.Context, database.DBTxConn) (all []*database.ListMigrationsResult, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range slices.Backward(d.versions) {
		all = append(all, &database.ListMigrationsResult{Version: v, IsApplied: true})
	}
	return all, nil
}

// connector makes connections without effect.
type connector struct{}

func (connector) Connect(context.Context) (driver.Conn, error) { return connector{}, nil }
func (connector) Driver() driver.Driver                        { return nil }
func (connector) Prepare(string) (driver.Stmt, error)          { return nil, io.EOF }
func (connector) Close() error                                 { return nil }
func (connector) Begin() (driver.Tx, error)                    { return connector{}, nil }
func (connector) Commit() error                                { return nil }
func (connector) Rollback() error                              { return nil }
