package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// page is the page for Prometheus to scrape.
type page struct {
	url    string
	server *http.Server
	ended  chan error
}

// serveMetrics serves the metrics of all workers.
func serveMetrics(ctx context.Context, address string, workers team) (*page, error) {
	var all prometheus.Gatherers
	for _, w := range workers {
		all = append(all, w.registry)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	// OpenMetrics carries exemplars: from a bucket to the trace of an acquisition in it.
	mux.Handle("/metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	p := &page{
		url:    "http://" + listener.Addr().String() + "/metrics",
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
		ended:  make(chan error, 1),
	}
	go func() { p.ended <- p.server.Serve(listener) }()
	return p, nil
}

func (p *page) close() error {
	err := p.server.Close()
	if ended := <-p.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
