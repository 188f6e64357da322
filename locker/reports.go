package locker

import "slices"

// maxReports is the maximum number of waiting reports of a lock. Beyond it, the oldest droppable one is
// dropped.
const maxReports = 64

// reports is the queue of a lock's events. One goroutine at a time reports them, in order: a slow
// callback delays only the later reports of its lock. The lock's mutex guards the queue.
type reports struct {
	queue   []report
	running bool
}

// report calls the callbacks of an event.
type report struct {
	run       func()
	droppable bool
}

// add appends r. If there are too many, it drops the oldest droppable one.
func (rs *reports) add(r report) {
	rs.queue = append(rs.queue, r)
	if len(rs.queue) > maxReports {
		if i := slices.IndexFunc(rs.queue, func(r report) bool { return r.droppable }); i >= 0 {
			rs.queue = slices.Delete(rs.queue, i, i+1)
		}
	}
}

// enqueue adds a report. The next unlockAndCall runs it. The mutex is held.
func (l *lockState) enqueue(r report) {
	if l.reports == nil {
		l.reports = &reports{}
	}
	l.reports.add(r)
}

// runReports runs reports until none wait, even if a callback panics. After maxReports of them it
// leaves the rest to a new goroutine, and lets its caller go on.
func (l *lockState) runReports() {
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

// nextReport removes and returns the oldest report. If there is none, ok is false and the reporting has
// ended.
func (l *lockState) nextReport() (r report, ok bool) {
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
