package main

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed timeline.svg.tmpl
var timelineText string

var timelineTemplate = template.Must(template.New("timeline").Funcs(template.FuncMap{"xml": escape}).Parse(timelineText))

// The picture, in pixels.
const (
	pictureWidth = 960
	plotLeft     = 150
	plotRight    = pictureWidth - 30
	plotTop      = 48
	rowHeight    = 64
	axisHeight   = 28
	roomForText  = 60 // minimum width of a bar with text in it
	ticks        = 8  // at most
)

// rowColours bear white text, and are seen on white and on black.
var rowColours = []string{"#2f6fd6", "#c4570a", "#15803d"}

// px is a length or a coordinate.
type px float64

func (p px) String() string { return fmt.Sprintf("%.1f", float64(p)) }

// Plus moves a coordinate, for the template.
func (p px) Plus(d float64) px { return p + px(d) }

// The parts of the picture, for the template.
type (
	timeline struct {
		Lock                string
		Width, Height       px
		Left, Top, Bottom   px
		Rows                []*row
		Ticks               []tick
		Waits, Holds        []bar
		Links               []arrow
		origin              time.Time
		pixelsPerNanosecond float64
	}
	row struct {
		Name, Colour string
		Middle       px
		index        int
	}
	tick struct {
		X    px
		Text string
	}
	bar struct {
		Row      *row
		Of       *row // of the lock it is about
		X, Width px
		Text     string
	}
	arrow struct {
		X, From, To  px
		Colour, Head string
	}
)

// drawTimeline draws the waiting for one lock, and the holding of it.
func drawTimeline(file string, r *recorded, lock string) error {
	var b strings.Builder
	if err := writeTimeline(&b, r, lock); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644) //nolint:gosec // a picture for everyone
}

func writeTimeline(out io.Writer, r *recorded, lock string) error {
	t := newTimeline(r, lock)
	for _, s := range r.spans {
		if !s.acquires(lock) {
			continue
		}
		own := t.row(s.service())
		for _, w := range r.waits(s) {
			t.wait(own, w)
		}
		if hold, ok := r.holds[s.SpanContext().SpanID()]; ok {
			t.Holds = append(t.Holds, t.bar(own, own, hold.StartTime(), hold.EndTime()))
		}
	}
	return timelineTemplate.Execute(out, t)
}

func newTimeline(r *recorded, lock string) *timeline {
	var services []string
	var first, last time.Time
	for _, s := range r.spans {
		if !s.acquires(lock) {
			continue
		}
		if !slices.Contains(services, s.service()) {
			services = append(services, s.service())
		}
		if first.IsZero() {
			first = s.StartTime()
		}
		last = latest(last, s.EndTime())
		if hold, ok := r.holds[s.SpanContext().SpanID()]; ok {
			last = latest(last, hold.EndTime())
		}
	}
	slices.Sort(services)
	bottom := px(plotTop + rowHeight*len(services))
	t := &timeline{
		Lock: lock, Width: pictureWidth, Height: bottom + axisHeight, Left: plotLeft, Top: plotTop, Bottom: bottom,
		origin: first, pixelsPerNanosecond: (plotRight - plotLeft) / float64(last.Sub(first)),
	}
	for i, name := range services {
		t.Rows = append(t.Rows, &row{name, rowColours[i%len(rowColours)], plotTop + rowHeight*(px(i)+0.5), i})
	}
	step := tickStep(last.Sub(first))
	for d := time.Duration(0); d <= last.Sub(first); d += step {
		t.Ticks = append(t.Ticks, tick{t.x(first.Add(d)), fmt.Sprintf("%d ms", d.Milliseconds())})
	}
	return t
}

// tickStep is the smallest 1, 2 or 5 times a power of ten with fewer than ticks ticks.
func tickStep(span time.Duration) time.Duration {
	for unit := time.Millisecond; ; unit *= 10 {
		for _, step := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if span/step < ticks {
				return step
			}
		}
	}
}

func (t *timeline) row(name string) *row {
	i := slices.IndexFunc(t.Rows, func(r *row) bool { return r.Name == name })
	return t.Rows[i]
}

func (t *timeline) x(at time.Time) px {
	return plotLeft + px(float64(at.Sub(t.origin))*t.pixelsPerNanosecond)
}

func (t *timeline) bar(own, of *row, begin, end time.Time) bar {
	b := bar{Row: own, Of: of, X: t.x(begin), Width: t.x(end) - t.x(begin)}
	if b.Width >= roomForText {
		b.Text = ms(end.Sub(begin)) + " ms"
	}
	return b
}

// wait draws a wait, and an arrow up or down to its hold.
func (t *timeline) wait(own *row, w wait) {
	holder := t.row(w.holder.service())
	b := t.bar(own, holder, w.begin, w.end)
	t.Waits = append(t.Waits, b)
	// Near the end, where bars have no text; those of several waiters beside each other.
	x := max(b.X+b.Width/2, b.X+b.Width-10-12*px((own.index-holder.index+len(t.Rows))%len(t.Rows)-1))
	a := arrow{X: x, From: own.Middle + 6, To: holder.Middle - 19, Colour: holder.Colour}
	tip, back := holder.Middle-14, "-6"
	if own.index > holder.index {
		a.From, a.To = own.Middle-6, holder.Middle+19
		tip, back = holder.Middle+14, "6"
	}
	a.Head = fmt.Sprintf("M%v %vl-3.5 %sh7z", x, tip, back)
	t.Links = append(t.Links, a)
}

func escape(s string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}
