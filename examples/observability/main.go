// Observability: three workers, each on a different Redis client and with telemetry of its own, as
// three processes have it, contend for one lock. Then the first of them loses another lock.
//
//	go run -C examples/observability .                     prints the traces: who waited for whom, and how long
//	go run -C examples/observability . -svg timeline.svg   draws them too
//	go run -C examples/observability . -serve 10m -metrics 127.0.0.1:9464
//	                                                       goes on working, for Prometheus to scrape
//	go run -C examples/observability . -otlp 127.0.0.1:4318
//	                                                       sends traces and metrics to a collector by OTLP over HTTP
//
// It needs nothing but Go; -redis takes a real server. It ends with exit status 0, or with 1 and a
// line on standard error if the server, an address, the collector or the file cannot be used. It is
// a module of its own: its exporters stay out of the downloads of the library's users.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
)

// settings are the flags.
type settings struct {
	redis, metrics, otlp, svg string
	rounds                    int
	serve                     time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.redis, "redis", "", "`URL` of a server, redis://[user:password@]host:port[/db]; empty: an embedded one")
	flag.IntVar(&s.rounds, "rounds", 3, "how often each worker locks, 1 to 100")
	flag.StringVar(&s.metrics, "metrics", "127.0.0.1:0", "`host:port` to serve /metrics at; port 0: any that is free")
	flag.DurationVar(&s.serve, "serve", 0, "how long to go on working and serving /metrics after the traces are printed, or until interrupted")
	flag.StringVar(&s.otlp, "otlp", "", "`host:port` of a collector that takes OTLP over HTTP, often port 4318; empty: none")
	flag.StringVar(&s.svg, "svg", "", "`file` to draw the waiting and holding to, as SVG; empty: none")
	flag.Parse()
	if flag.NArg() > 0 || s.rounds < 1 || s.rounds > 100 || s.serve < 0 {
		fmt.Fprintln(os.Stderr,
			"observability: takes no arguments, -rounds from 1 to 100, and -serve of 0 or more; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, s); err != nil {
		fmt.Fprintln(os.Stderr, "observability:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1) //nolint:gocritic // nothing deferred outlives the process
	}
}

// checkCollector refuses text that the exporters would take for a part of a URL.
func checkCollector(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("-otlp takes host:port, without http:// and without a path: %w", err)
	}
	return nil
}

// run works a shift, prints its traces, and goes on for as long as it is asked to.
func run(ctx context.Context, out io.Writer, s settings) (err error) {
	if err := checkCollector(s.otlp); err != nil {
		return err
	}
	server, err := openServer(s.redis)
	if err != nil {
		return err
	}
	defer server.close()
	all, err := dialClients(ctx, server)
	defer func() { err = errors.Join(err, all.close()) }()
	if err != nil {
		return fmt.Errorf("cannot use %s: %w", server, err)
	}

	var unheard firstError
	otel.SetErrorHandler(&unheard) // it would go to standard error by itself
	record := newRecorder()
	var workers team
	defer func() {
		if ended := workers.shutdown(ctx); err == nil {
			err = errors.Join(ended, unheard.get())
		}
	}()
	for _, c := range all {
		w, err := newWorker(ctx, c, record, s.otlp)
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	page, err := serveMetrics(ctx, s.metrics, workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.close()) }()

	_, _ = fmt.Fprintf(out, "server   %s\nmetrics  %s\n\n", server, page.url)
	if err := workers.shift(ctx, s.rounds); err != nil {
		return err
	}
	record.awaitLoss(ctx)
	done := record.stop()
	printTraces(out, done)
	if s.svg != "" {
		if err := drawTimeline(s.svg, done, orderLock); err != nil {
			return err
		}
	}
	if err := workers.flush(ctx); err != nil {
		return err
	}
	if s.serve == 0 {
		_, _ = fmt.Fprintln(out,
			"\nThe metrics go with this program: -serve 10m keeps them up, at an address that -metrics gives.")
	} else {
		_, _ = fmt.Fprintf(out, "\nworking on, and serving %s, for %v or until interrupted\n", page.url, s.serve)
		return workers.goOn(ctx, s)
	}
	return nil
}
