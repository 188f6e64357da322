package machines

import (
	"time"

	"pgregory.net/rapid"
)

// wait is a step: time passes, often to the instant of an end.
func (m *machine) wait(t *rapid.T) {
	times := []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second, time.Minute}
	if !m.watched {
		times = append(times, 25*time.Hour)
	}
	now := time.Now()
	for _, h := range m.holds {
		for _, end := range []time.Time{h.deadline, h.from} {
			if d := end.Sub(now); d > 0 && !h.gone {
				times = append(times, (d - time.Millisecond).Truncate(time.Millisecond), (d + time.Millisecond - 1).Truncate(time.Millisecond))
			}
		}
	}
	d := rapid.SampledFrom(times).Draw(t, "time")
	m.notef("%v pass", d)
	m.pass(d)
}

// restart is a step: the server comes back empty.
func (m *machine) restart(*rapid.T) {
	m.notef("the server restarts empty")
	m.srv.restart(m.T)
	m.srv.reconnect(m.T)
	m.foreign, m.intents = time.Time{}, time.Time{}
	m.takenAway()
	m.pass(10 * time.Millisecond) // a server with a clock at rest mints the same tokens again
}

func (m *machine) takenAway() {
	m.tenure = 0 // a late acquire begins another
	now := time.Now()
	for _, h := range m.holds {
		h.taken = true
		if late := m.srv.drv.lastLate(); late.After(now) && !h.released { // a command of its acquire may yet bring it back
			h.gone, h.unsure, h.from, h.to = false, true, now, latest(h.to, late.Add(h.lock.TTL()))
			continue
		}
		h.gone = true
	}
}

// outage is a step: for a while nothing reaches the server.
func (m *machine) outage(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, time.Minute}).Draw(t, "time")
	m.notef("for %v nothing reaches the server", d)
	m.srv.drv.cut(true)
	m.pass(d)
	m.srv.drv.cut(false)
	m.haunt(time.Now())
	m.outlasted = d
}

// foreigner is a step: a library without tokens takes the key, takes it by force, or deletes it.
func (m *machine) foreigner(t *rapid.T) {
	switch rapid.SampledFrom([]string{"takes", "seizes", "deletes"}).Draw(t, "what") {
	case "takes":
		if m.srv.Exists(name) {
			t.Skip("taken")
		}
	case "seizes":
		m.takenAway()
	default:
		m.notef("a foreign library deletes the key")
		m.srv.Del(name)
		m.foreign, m.intents = time.Time{}, time.Time{}
		m.takenAway()
		return
	}
	ttl := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "ttl")
	m.notef("a foreign library takes the key for %v", ttl)
	m.srv.Del(name)
	if err := m.srv.Set(name, "theirs"); err != nil {
		m.Fatalf("set: %v", err)
	}
	m.srv.SetTTL(name, ttl)
	m.foreign, m.intents = time.Now().Add(ttl), time.Time{}
}
