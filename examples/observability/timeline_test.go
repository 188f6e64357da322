package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
)

// picture has the counts of an SVG's elements.
type picture struct {
	texts               map[string]int
	holds, waits, links int
}

// readPicture demands well-formed XML.
func readPicture(t *testing.T, raw []byte) picture {
	t.Helper()
	p := picture{texts: map[string]int{}}
	classes := map[string]int{}
	decoder := xml.NewDecoder(strings.NewReader(string(raw)))
	depth := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, raw)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth == 1 && token.Name != (xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}) {
				t.Fatalf("the root is %v", token.Name)
			}
			for _, a := range token.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s has %s=%q", token.Name.Local, a.Name.Local, a.Value)
				}
				if token.Name.Local == "rect" && a.Name.Local == "height" && a.Value == "28" {
					p.holds++
				}
				if a.Name.Local == "class" {
					classes[a.Value]++
				}
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			p.texts[string(token)]++
		}
	}
	p.waits, p.links = classes["wait"]-1, classes["link"]-1 // the key has one of each
	return p
}

func checkPicture(t *testing.T, raw []byte, holds, links int) {
	t.Helper()
	p := readPicture(t, raw)
	for _, text := range []string{"order:17", "worker-go-redis", "worker-rueidis", "worker-redigo", "holds the lock", "0 ms"} {
		check.AtLeast(t, fmt.Sprintf("%q in the picture", text), p.texts[text], 1)
	}
	if p.holds != holds || p.waits != links || p.links != links {
		t.Errorf("%d holds, %d waits, %d links are drawn; want %d, %d, %d", p.holds, p.waits, p.links, holds, links, links)
	}
}

// The picture has a bar for each hold of the trees, and a bar and an arrow for each link.
func TestTimeline(t *testing.T) {
	t.Parallel()
	for _, rounds := range effort.Of([]string{"1"}, []string{"1"}, []string{"1", "3", "20"}) {
		t.Run(rounds+" rounds", func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "timeline.svg")
			out := program.MustRun(t, "-rounds", rounds, "-svg", file)
			raw := locker.Must(os.ReadFile(file))
			checkPicture(t, raw, strings.Count(out, "hold order:17: "), strings.Count(out, " waits for "))
		})
	}
}

// The picture in the documentation is one of those.
func TestTimelineInDocs(t *testing.T) {
	t.Parallel()
	raw := locker.Must(os.ReadFile("../../docs/observability.svg"))
	checkPicture(t, raw, 9, readPicture(t, raw).links)
}

func TestTickStep(t *testing.T) {
	t.Parallel()
	for span, want := range map[time.Duration]time.Duration{
		time.Microsecond: time.Millisecond, 7 * time.Millisecond: time.Millisecond, 9 * time.Millisecond: 2 * time.Millisecond,
		300 * time.Millisecond: 50 * time.Millisecond, time.Minute: 10 * time.Second,
	} {
		check.Equal(t, fmt.Sprintf("tick of a picture of %v", span), tickStep(span), want)
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	if got, err := escape(`<a & "b">`); err != nil || got != `&lt;a &amp; &#34;b&#34;&gt;` {
		t.Errorf("%q, %v", got, err)
	}
}
