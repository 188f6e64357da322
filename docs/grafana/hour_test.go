package grafana_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/metrics"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// The events of the hour, from its beginning.
const (
	nodeFails, nodeRecovers         = 11 * time.Minute, 20 * time.Minute
	releaseFails                    = 24 * time.Minute
	outageBegins, outageEnds        = 25 * time.Minute, 30 * time.Minute
	slowDownBegins, slowDownEnds    = 40 * time.Minute, 54 * time.Minute
	keyDeleted                      = 57 * time.Minute // the export's key
	scrapeInterval, lasting         = 30 * time.Second, time.Hour
	allMeasured                     = outageBegins + 2*time.Minute // every metric has been measured once
	orderLock, exportLock, cronLock = "order:%d", "export:daily", "cron:report"
)

// hour is the Prometheus data of three processes over an hour, from start to start+lasting.
type hour struct {
	database

	start time.Time
}

var anHour struct {
	once sync.Once
	hour
}

// simulatedHour lets three processes work for an hour of fake time, on locks in memory, with real
// middleware and the real exporter. Servers fail on the way. The hour passes once for all tests.
func simulatedHour(t *testing.T) *hour {
	t.Helper()
	anHour.once.Do(func() { synctest.Test(t, anHour.pass) })
	return &anHour.hour
}

func (h *hour) pass(t *testing.T) {
	h.start = time.Now()
	end := lasting
	if !effort.Full() && !*update { // the tests look at the names alone
		end = allMeasured
	}
	ctx, cancel := context.WithTimeout(t.Context(), end+time.Second)
	defer cancel()
	server, nodes := lockertest.New(), make([]*lockertest.Locker, 5)
	for i := range nodes {
		nodes[i] = lockertest.New()
	}
	var work sync.WaitGroup
	for i := range 3 {
		p := &process{
			instance: fmt.Sprintf("10.0.0.%d:9464", i+1), start: h.start, registry: prometheus.NewRegistry(),
			random: rand.New(rand.NewPCG(1, uint64(i))),
		}
		p.connect(t, server, nodes)
		for _, loop := range []func(context.Context) error{p.orders, p.orders, p.export, p.cron, p.stock, p.lead} {
			work.Go(func() {
				for ctx.Err() == nil {
					if err := loop(ctx); errors.Is(err, locker.ErrInvalid) {
						t.Error(err)
					}
				}
			})
		}
		work.Go(func() {
			for range time.Tick(scrapeInterval) {
				if ctx.Err() != nil {
					return
				}
				h.scrape(t, p)
			}
		})
	}
	for _, event := range []struct {
		after time.Duration
		do    func()
	}{
		{nodeFails, func() { nodes[3].SetOutage(lockertest.Refused) }},
		{nodeRecovers, func() { nodes[3].SetOutage(lockertest.NoOutage) }},
		{releaseFails, func() { server.FailRelease(locker.ErrUnknownOutcome) }},
		{outageBegins, func() { server.SetOutage(lockertest.Silent) }},
		{outageEnds, func() { server.SetOutage(lockertest.NoOutage) }},
		{keyDeleted, func() { server.Forget(exportLock) }},
	} {
		if event.after > end {
			break
		}
		<-time.After(time.Until(h.start.Add(event.after)))
		event.do()
	}
	work.Wait()
}

// process is one of the processes that share the locks.
type process struct {
	instance string
	start    time.Time
	registry *prometheus.Registry
	random   *rand.Rand
	mu       sync.Mutex // of random

	single, quorum locker.Locker
}

func (p *process) connect(t *testing.T, server *lockertest.Locker, nodes []*lockertest.Locker) {
	t.Helper()
	exporter, err := prometheusexporter.New(prometheusexporter.WithRegisterer(p.registry))
	check.Must(t, err)
	measured := locker.Must(metrics.New(metrics.Config{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)),
		Group: func(name string) string {
			group, _, _ := strings.Cut(name, ":")
			return group
		},
	}))
	var lockers []locker.Locker
	var names []string
	for i, node := range nodes {
		lockers, names = append(lockers, node), append(names, "redis-"+strconv.Itoa(i+1))
	}
	quorum, err1 := redlock.New(lockers, redlock.Config{Names: names})
	waiting, err2 := holdfast.Wrap(server, holdfast.Config{})
	overQuorum, err3 := holdfast.Wrap(quorum, holdfast.Config{})
	check.Must(t, errors.Join(err1, err2, err3))
	p.single, p.quorum = locker.Chain(waiting, measured), locker.Chain(overQuorum, measured)
}

// between returns a duration between two.
func (p *process) between(least, most time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return least + time.Duration(p.random.Int64N(int64(most-least)))
}

// pause waits for a while, or until ctx ends.
func (p *process) pause(ctx context.Context, least, most time.Duration) error {
	select {
	case <-time.After(p.between(least, most)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// orders is short, contended work. For a while it is slow.
func (p *process) orders(ctx context.Context) error {
	least, most := 200*time.Millisecond, 2*time.Second
	if since := time.Since(p.start); since > slowDownBegins && since < slowDownEnds {
		least, most = 8*time.Second, 20*time.Second
	}
	req := locker.Request{Name: fmt.Sprintf(orderLock, p.between(0, 3)), MaxWait: 15 * time.Second}
	err := locker.Do(ctx, p.single, req, func(ctx context.Context, _ *locker.Lock) error { return p.pause(ctx, least, most) })
	return errors.Join(err, p.pause(ctx, 500*time.Millisecond, 2*time.Second))
}

// export is long work, with renewals, by one process at a time.
func (p *process) export(ctx context.Context) error {
	_, err := locker.Try(ctx, p.single, locker.Request{Name: exportLock, TTL: 30 * time.Second}, func(ctx context.Context, _ *locker.Lock) error {
		return p.pause(ctx, time.Minute, 4*time.Minute)
	})
	return errors.Join(err, p.pause(ctx, 10*time.Second, 50*time.Second))
}

// cron is work tried by all each minute, and done by one.
func (p *process) cron(ctx context.Context) error {
	<-time.After(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
	_, err := locker.Try(ctx, p.single, locker.Request{Name: cronLock, TTL: 15 * time.Second}, func(ctx context.Context, _ *locker.Lock) error {
		return p.pause(ctx, 10*time.Second, 30*time.Second)
	})
	return err
}

// stock is work under a quorum.
func (p *process) stock(ctx context.Context) error {
	err := locker.Do(ctx, p.quorum, locker.Request{Name: "stock:all", TTL: 15 * time.Second}, func(ctx context.Context, _ *locker.Lock) error {
		return p.pause(ctx, 100*time.Millisecond, 2*time.Second)
	})
	return errors.Join(err, p.pause(ctx, 2*time.Second, 9*time.Second))
}

// lead campaigns, and works while it leads.
func (p *process) lead(ctx context.Context) error {
	return leader.Run(ctx, p.single, leader.Config{Name: "leader:shop", TTL: 15 * time.Second, Lead: func(ctx context.Context, _ int64) error {
		<-ctx.Done()
		return ctx.Err()
	}})
}

// scrape stores a process's current metrics.
func (h *hour) scrape(t *testing.T, p *process) {
	families, err := p.registry.Gather()
	check.OK(t, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			add := func(suffix string, value float64, more ...string) {
				of := labels.NewBuilder(labels.FromStrings(append(more, "__name__", f.GetName()+suffix, "job", "shop", "instance", p.instance)...))
				for _, l := range m.GetLabel() {
					of.Set(l.GetName(), l.GetValue())
				}
				h.add(of.Labels(), time.Now(), value)
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				add("", m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				add("", m.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM:
				for _, b := range m.GetHistogram().GetBucket() {
					add("_bucket", float64(b.GetCumulativeCount()), "le", fmt.Sprint(b.GetUpperBound()))
				}
				add("_bucket", float64(m.GetHistogram().GetSampleCount()), "le", "+Inf")
				add("_count", float64(m.GetHistogram().GetSampleCount()))
				add("_sum", m.GetHistogram().GetSampleSum())
			}
		}
	}
}

// served are the names and labels served by the processes, and the label of hand-overs: none
// happened.
func (h *hour) served() series {
	all := series{}
	for _, s := range h.series {
		name := s.labels.Get("__name__")
		s.labels.Range(func(l labels.Label) {
			if l.Name != "__name__" && !slices.Contains(all[name], l.Name) {
				all[name] = append(all[name], l.Name)
			}
		})
	}
	all["holdfast_lock_acquisitions_total"] = append(all["holdfast_lock_acquisitions_total"], "holdfast_handed_over") // lockertest hands no lock over
	return all
}
