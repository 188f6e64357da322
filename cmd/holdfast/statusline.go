package main

import (
	"fmt"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// redrawEvery is the redraw interval of a status line.
const redrawEvery = 100 * time.Millisecond

// statusLine is the last line of a terminal, redrawn periodically. Elsewhere than at a terminal,
// and in the background of one, it shows nothing.
type statusLine struct {
	file    *os.File
	text    func() string // "": show nothing
	done    chan struct{}
	stopped sync.WaitGroup

	mu    sync.Mutex
	shown bool
}

// startStatusLine begins to show text, if file is a terminal.
func startStatusLine(file *os.File, text func() string) *statusLine {
	l := &statusLine{file: file, text: text, done: make(chan struct{})}
	if !l.atTerminal() {
		return l
	}
	l.stopped.Go(func() {
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.mu.Lock()
				l.draw()
				l.mu.Unlock()
			case <-l.done:
				return
			}
		}
	})
	return l
}

func (l *statusLine) atTerminal() bool { return term.IsTerminal(int(l.file.Fd())) }

// terminalWidth returns the width of a terminal, and 0 if file is none.
func terminalWidth(file *os.File) int {
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// draw replaces the line. The mutex is held.
func (l *statusLine) draw() {
	l.erase()
	text := l.text()
	if !inForeground(l.file) {
		return
	}
	if width := terminalWidth(l.file); width > 0 {
		text = truncate(text, width-1) // a longer one would wrap, and could not be erased
	}
	if text != "" {
		_, _ = fmt.Fprint(l.file, text)
		l.shown = true
	}
}

// erase removes the line. The mutex is held.
func (l *statusLine) erase() {
	if l.shown {
		_, _ = fmt.Fprint(l.file, "\r\x1b[K")
		l.shown = false
	}
}

// above erases the status line and calls do to print whole lines.
func (l *statusLine) above(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return do()
}

// change calls do, which changes the text, and shows the line anew. mu is held during do.
func (l *statusLine) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	if l.atTerminal() {
		l.draw()
	}
}

// stop removes the line and ends the drawing.
func (l *statusLine) stop() {
	close(l.done)
	l.stopped.Wait()
	_ = l.above(func() error { return nil })
}

// truncate returns at most n characters of s.
func truncate(s string, n int) string {
	for utf8.RuneCountInString(s) > max(n, 0) {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
