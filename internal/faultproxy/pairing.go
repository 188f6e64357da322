package faultproxy

import (
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
)

// request is a request on its way.
type request struct {
	args []string
	raw  []byte
	trap *Trap     // nil: undisturbed
	at   time.Time // when it came
}

// name returns the command's name in lower case.
func (r *request) name() string {
	if len(r.args) == 0 {
		return ""
	}
	return strings.ToLower(r.args[0])
}

// pairing finds the request answered by a message from the server.
type pairing struct {
	mu      sync.Mutex
	waiting []*request // sent and not answered, in order

	// Pub/Sub: one request has a reply per channel, and the same kind of message
	// is a push in RESP3 and an array, like any reply, in RESP2.
	channels  map[string]bool // subscribed to, as "psubscribe news.*"
	arrays    bool            // confirmations came as arrays: RESP2
	confirmed int             // channels of waiting[0]
	expected  int             // channels of waiting[0]
}

// confirmations maps the Pub/Sub commands to the command that subscribes. The server's
// confirmations have the commands' names.
var confirmations = map[string]string{
	"subscribe": "subscribe", "psubscribe": "psubscribe", "ssubscribe": "ssubscribe",
	"unsubscribe": "subscribe", "punsubscribe": "psubscribe", "sunsubscribe": "ssubscribe",
}

var publications = map[string]bool{"message": true, "pmessage": true, "smessage": true}

// sent notes a request just before it is sent to the server.
func (p *pairing) sent(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, r)
}

// answered returns the request answered by v: nil if there is none, or if v is not the first of its
// answers.
func (p *pairing) answered(v resp.Value) *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var head *request
	if len(p.waiting) > 0 {
		head = p.waiting[0]
	}
	if v.Kind == resp.Push || v.Kind == resp.Array {
		word := ""
		if len(v.Elems) >= 3 {
			word = v.Elems[0].Text
		}
		_, confirms := confirmations[word]
		switch {
		case confirms && head != nil && head.name() == word:
			return p.confirm(word, v)
		case v.Kind == resp.Push:
			return nil
		case p.arrays && len(p.channels) > 0 && (confirms || publications[word]):
			return nil // sunsubscribe comes unasked when a slot moves away
		}
	}
	if v.Kind == resp.Attribute || head == nil {
		return nil
	}
	if head.name() == "reset" {
		p.channels = nil
	}
	p.waiting = p.waiting[1:]
	return head
}

// confirm notes one of the confirmations of the request at the head.
func (p *pairing) confirm(word string, v resp.Value) *request {
	head, command := p.waiting[0], confirmations[word]
	first := p.confirmed == 0
	if first {
		p.expected = len(head.args) - 1
		for c := range p.channels {
			if len(head.args) == 1 && strings.HasPrefix(c, command+" ") { // unsubscribe from all
				p.expected++
			}
		}
	}
	p.arrays = v.Kind == resp.Array
	if channel := command + " " + v.Elems[1].Text; word != command {
		delete(p.channels, channel)
	} else {
		if p.channels == nil {
			p.channels = map[string]bool{}
		}
		p.channels[channel] = true
	}
	p.confirmed++
	if p.confirmed >= p.expected {
		p.confirmed = 0
		p.waiting = p.waiting[1:]
	}
	if first {
		return head
	}
	return nil
}
