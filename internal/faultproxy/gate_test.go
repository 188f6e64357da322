//nolint:forbidigo // fake time
package faultproxy

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// passing is a function on its way through a gate.
type passing struct{ entered, leave event }

func pass(g *gate) passing {
	p := passing{newEvent(), newEvent()}
	go func() {
		_ = g.pass(func() error {
			p.entered.fire()
			<-p.leave.ch
			return nil
		})
	}()
	synctest.Wait()
	return p
}

// closing calls close, and returns an event for its return.
func closing(g *gate) event {
	closed := newEvent()
	go func() {
		g.close()
		closed.fire()
	}()
	synctest.Wait()
	return closed
}

func want(t *testing.T, what string, e event, fired bool) {
	t.Helper()
	synctest.Wait()
	check.Equal(t, what, e.fired(), fired)
}

func TestGate(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(t *testing.T, g *gate){
		"an open one lets all pass at once": func(t *testing.T, g *gate) {
			for range 2 {
				p := pass(g)
				defer p.leave.fire()
				want(t, "passes", p.entered, true)
			}
			failed := errors.New("failed")
			check.Error(t, "pass", g.pass(func() error { return failed }), failed)
		},
		"close waits until nothing passes": func(t *testing.T, g *gate) {
			first, second := pass(g), pass(g)
			closed := closing(g)
			late := pass(g)
			first.leave.fire()
			want(t, "closed while one passes", closed, false)
			second.leave.fire()
			want(t, "closed", closed, true)
			want(t, "another passes", late.entered, false)
			g.open()
			want(t, "another passes", late.entered, true)
			late.leave.fire()
		},
		"fake time passes while something waits": func(t *testing.T, g *gate) {
			runs := pass(g)
			closed := closing(g)
			time.Sleep(time.Hour)
			want(t, "closed", closed, false)
			runs.leave.fire()
			waits := pass(g)
			time.Sleep(time.Hour)
			want(t, "passes", waits.entered, false)
			waits.leave.fire()
			g.open()
		},
		"open ends a close that waits": func(t *testing.T, g *gate) {
			p := pass(g)
			defer p.leave.fire()
			closed := closing(g)
			g.open()
			want(t, "closed", closed, true)
			next := pass(g)
			defer next.leave.fire()
			want(t, "passes", next.entered, true)
		},
		"one open is enough for two closes": func(t *testing.T, g *gate) {
			g.close()
			want(t, "closed again", closing(g), true)
			p := pass(g)
			defer p.leave.fire()
			g.open()
			g.open()
			want(t, "passes", p.entered, true)
			p.leave.fire()
			want(t, "closed after that", closing(g), true)
			last := pass(g)
			defer last.leave.fire()
			want(t, "passes", last.entered, false)
			g.open()
		},
		"a removed one stays open": func(t *testing.T, g *gate) {
			g.close()
			waiting := pass(g)
			g.remove()
			want(t, "passes", waiting.entered, true)
			want(t, "closed", closing(g), true)
			next := pass(g)
			want(t, "passes", next.entered, true)
			waiting.leave.fire()
			next.leave.fire()
		},
	}, func(t *testing.T, test func(t *testing.T, g *gate)) {
		g := newGate()
		test(t, &g)
	})
}
