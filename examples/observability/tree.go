package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// printTraces prints each trace as a tree, with the links of waiters to holders.
func printTraces(out io.Writer, r *recorded) {
	p := &printer{out, r}
	_, _ = fmt.Fprint(out, legend)
	p.line("start ms", "took ms", "trace", "span -> linked span")
	for _, root := range r.children(trace.SpanID{}) {
		p.line("", "", "", "")
		p.span(root, root.service()+": ", "", "")
	}
}

const legend = `What each worker's tracing recorded. "-> id" is a link: this acquisition waited for, or was refused because of, the one
with that id, in another process. ` + reportLock + ` is deleted while it is held, so that a loss can be seen.

`

type printer struct {
	out io.Writer
	*recorded
}

func (p *printer) line(start, took, text, id string) {
	line := fmt.Sprintf("%8s %8s  %-56s  %s", start, took, text, id)
	_, _ = fmt.Fprintln(p.out, strings.TrimRight(line, " "))
}

// span prints s and the spans below it. first stands before its own text, rest before theirs.
func (p *printer) span(s span, who, first, rest string) {
	id := s.SpanContext().SpanID()
	p.line(ms(s.StartTime().Sub(p.start())), ms(s.took()), first+who+s.text(), id.String())
	waits, below := p.waits(s), p.children(id)
	verb := "waits for"
	if s.value("holdfast.outcome") == "held" {
		verb = "refused, held by"
	}
	for i, w := range waits {
		corner := "├─ "
		if i == len(waits)-1 && len(below) == 0 {
			corner = "└─ "
		}
		text := fmt.Sprintf("%s%s%s %s, %s", rest, corner, verb, w.holder.service(), p.byID[w.holder.Parent().SpanID()].Name())
		p.line(ms(w.begin.Sub(p.start())), ms(w.end.Sub(w.begin)), text, "-> "+w.holder.SpanContext().SpanID().String())
	}
	for i, child := range below {
		if i == len(below)-1 {
			p.span(child, "", rest+"└─ ", rest+"   ")
		} else {
			p.span(child, "", rest+"├─ ", rest+"│  ")
		}
	}
}

// text names a span and its outcome.
func (s span) text() string {
	outcome := s.value("holdfast.outcome")
	switch s.Name() {
	case "acquire lock":
		return fmt.Sprintf("acquire %s: %s at attempt %s", s.value("holdfast.lock.name"), outcome, s.value("holdfast.attempts"))
	case "hold lock":
		text := fmt.Sprintf("hold %s: %s", s.value("holdfast.lock.name"), outcome)
		if n, _ := strconv.Atoi(s.value("holdfast.renewals")); n > 0 {
			text += fmt.Sprintf(" after %d renewal(s)", n)
		}
		return text
	default:
		return s.Name()
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }
