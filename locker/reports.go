package locker

import "slices"

// maxReports bounds the reports of a lock that wait. Beyond that, the oldest that may be dropped
// is.
const maxReports = 64

// reports are the events of a lock that are yet to be reported, in order. One goroutine at a time
// reports them, so that a slow callback delays what follows it and nothing else. The lock's mutex
// guards them.
type reports struct {
	queue   []report
	running bool
}

// report calls the callbacks of an event.
type report struct {
	run       func()
	droppable bool
}

// add appends r. If there are too many, it drops the oldest that may be dropped.
func (rs *reports) add(r report) {
	rs.queue = append(rs.queue, r)
	if len(rs.queue) > maxReports {
		if i := slices.IndexFunc(rs.queue, func(r report) bool { return r.droppable }); i >= 0 {
			rs.queue = slices.Delete(rs.queue, i, i+1)
		}
	}
}

// enqueue adds an event. The mutex is held.
func (l *Lock) enqueue(r report) {
	if l.reports == nil {
		l.reports = &reports{}
	}
	l.reports.add(r)
}

// startReports reports whether the caller is to report, by runReports: some wait, and no goroutine
// reports them.
func (l *Lock) startReports() bool {
	if !l.valid() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reports == nil || l.reports.running {
		return false
	}
	l.reports.running = true
	return true
}

// report runs what waits in the caller's goroutine, after the signals of ended. If another
// goroutine is reporting, it reports that too, in its turn. Callbacks of AfterDone do not wait for
// it: it may be in a callback that blocks.
func (l *Lock) report(ended *ending) {
	ended.signal()
	switch {
	case l.startReports():
		l.runReports()
	case ended.hasAfter():
		go ended.runAfter()
	}
}

// reportInBackground is report in a goroutine of its own.
func (l *Lock) reportInBackground(ended *ending) {
	ended.signal()
	switch {
	case l.startReports():
		go l.runReports()
	case ended.hasAfter():
		go ended.runAfter()
	}
}

// runReports reports until none wait, also if a callback panics. After many, a goroutine of its own
// goes on.
func (l *Lock) runReports() {
	panicked := true
	defer func() {
		if panicked {
			l.runReports()
		}
	}()
	for range maxReports {
		r, ok := l.nextReport()
		if !ok {
			panicked = false
			return
		}
		r.run()
	}
	panicked = false
	go l.runReports()
}

// nextReport takes the oldest report. ok is false if there is none; then the reporting ends.
func (l *Lock) nextReport() (r report, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reports.queue) == 0 {
		l.reports = nil
		return report{}, false
	}
	r = l.reports.queue[0]
	l.reports.queue = l.reports.queue[1:]
	return r, true
}
