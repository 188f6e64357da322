package grafana_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series are the labels of the available series, by name: a histogram is three.
type series map[string][]string

// exampleSeries runs examples/observability and returns the series served to Prometheus.
func exampleSeries(t *testing.T) series {
	t.Helper()
	program := filepath.Join(t.TempDir(), "observability")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "examples", "observability")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, program, "-serve", "1m")
	run.Stderr = os.Stderr
	stdout, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	check.Must(t, err)
	var url string
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "working on") { // after the first shift, and with it the first loss
		if at, ok := strings.CutPrefix(lines.Text(), "metrics "); ok {
			url = strings.TrimSpace(at)
		}
	}
	served := seriesAt(ctx, t, url)
	check.OK(t, run.Process.Signal(os.Interrupt))
	for lines.Scan() { // to its end, before Wait closes the pipe
	}
	check.OK(t, run.Wait())
	return served
}

func seriesAt(ctx context.Context, t *testing.T, url string) series {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	check.Must(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	check.Must(t, err)
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	check.Must(t, err)
	s := series{}
	for name, f := range families {
		labels := labelsOf(f)
		if f.GetType() == dto.MetricType_HISTOGRAM {
			s[name+"_bucket"] = append(labels, "le")
			name += "_count" // and _sum, for which nothing asks
		}
		s[name] = labels
	}
	return s
}

func labelsOf(f *dto.MetricFamily) []string {
	seen := map[string]bool{"job": true, "instance": true} // Prometheus adds those
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			seen[l.GetName()] = true
		}
	}
	labels := make([]string, 0, len(seen)+1)
	for l := range seen {
		labels = append(labels, l)
	}
	return labels
}
