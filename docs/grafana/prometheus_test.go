package grafana_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// sample implements chunks.Sample.
type sample struct {
	at    int64 // in milliseconds
	value float64
}

func (s sample) T() int64                    { return s.at }
func (s sample) F() float64                  { return s.value }
func (sample) ST() int64                     { return 0 }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// stored is a time series.
type stored struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// database is a Prometheus' storage in memory, without its limits: it keeps all, and takes samples
// of a series in the order of their times.
type database struct {
	mu     sync.Mutex // while it is written to
	series map[string]*stored
	named  map[string][]*stored // by their names
}

// add appends a sample to the series with these labels.
func (d *database) add(of labels.Labels, at time.Time, value float64) {
	if d.series == nil {
		d.series, d.named = map[string]*stored{}, map[string][]*stored{}
	}
	key := string(of.Bytes(nil))
	s := d.series[key]
	if s == nil {
		s = &stored{labels: of}
		d.series[key] = s
		name := of.Get(model.MetricNameLabel)
		d.named[name] = append(d.named[name], s)
	}
	s.samples = append(s.samples, sample{at.UnixMilli(), value})
}

// Querier implements storage.Queryable.
func (d *database) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found, name := &seriesSet{at: -1}, ""
		for _, m := range matchers {
			if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
				name = m.Value
			}
		}
		for _, s := range d.named[name] { // nothing here asks for series of several names
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
				found.all = append(found.all, s)
			}
		}
		slices.SortFunc(found.all, func(a, b *stored) int { return labels.Compare(a.labels, b.labels) })
		return found
	}}, nil
}

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	all []*stored
	at  int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at < len(s.all) }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
func (s *seriesSet) At() storage.Series {
	return storage.NewListSeries(s.all[s.at].labels, s.all[s.at].samples)
}

var (
	promQL = parser.NewParser(parser.Options{})
	engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, Parser: promQL})
)

// queryAt evaluates an expression at a time.
func (d *database) queryAt(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := engine.NewInstantQuery(ctx, d, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	return q.Exec(ctx).Vector()
}
